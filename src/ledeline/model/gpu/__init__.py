"""Fused Triton kernels for parts of the model.

The plain PyTorch functions elsewhere are the definitions. A function here of the same name gives
the same values and gradients up to rounding; `dispatch` says when it runs instead.
"""
