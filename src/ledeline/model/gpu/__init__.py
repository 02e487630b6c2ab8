"""Parts of the model as fused kernels in Triton; each is another way to what plain PyTorch does.

Nothing here defines anything. A plain function is the definition; the one here of the same name
gives the same values and gradients up to rounding, and is taken where `use_triton` says so.
"""
