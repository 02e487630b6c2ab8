"""The output layer and the SPM, each with its loss, without a float32 copy of their logits.

The logits of all steps are the largest tensor of a training step. They are written once, in the
type of the products. When the loss is computed, their gradient overwrites them, but for one factor
per step, the incoming gradient of the loss. The backward pass multiplies z by that factor. So it is
two products for each output layer, and nothing else in it has the width of the vocabulary.

V is padded to a multiple of 64, so that every row is aligned for fast loads. A bias of minus
infinity gives the padding a probability of 0, so that no kernel needs to know V.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from ledeline.model.addons.spm import occurrences
from ledeline.model.gpu import dispatch
from ledeline.model.gpu.loss_kernels import (
    scale,
    smoothed_row,
    source_gradient,
    source_row,
    source_sum,
    target_row,
)
from ledeline.model.gpu.triton_language import triton
from ledeline.model.loss import NEVER_WRITTEN
from ledeline.model.pairs import Pairs

_VOCABULARY_MULTIPLE: Final = 64  # V is padded to a multiple of this
_ALIGNMENT: Final = 8  # values of 16 bits in the 16 bytes of the widest load

_LossesOfLogits = Callable[[Tensor, bool], Tensor]  # logits, whether with gradient -> losses


def token_losses(states: Tensor, output: nn.Linear, targets: Tensor) -> Tensor:
    """`-log o_j[y_j]` of each step. z (B, J, H), targets (B, J) -> (B, J)."""
    return _linear_losses(states, output, partial(_target_losses_of, targets))


def smoothed_token_losses(
    states: Tensor, output: nn.Linear, targets: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """The losses of each step with label smoothing, and without it. As `token_losses`, twice."""
    plain = torch.empty_like(targets, dtype=torch.float32, memory_format=torch.contiguous_format)
    num_types = len(output.bias) - len(NEVER_WRITTEN)
    losses_of = partial(_smoothed_losses_of, targets, smoothing, num_types, plain)
    return _linear_losses(states, output, losses_of), plain


def source_losses(states: Tensor, output: nn.Linear, pairs: Pairs, c: float) -> Tensor:
    """`l_src = ||q~ - x~||^2 / C` of each pair. z (B, J, H) -> (B,)."""
    counts = occurrences(pairs, _padded_size(output.out_features))
    losses_of = partial(_source_losses_of, counts, pairs.target_mask, c)
    return _linear_losses(states, output, losses_of).squeeze(1)


def _linear_losses(states: Tensor, output: nn.Linear, losses_of: _LossesOfLogits) -> Tensor:
    """The losses of a linear layer on z; nothing is saved where no gradient is needed."""
    states = states.to(dispatch.product_dtype(states))
    inputs = (states, output.weight, output.bias)
    with torch.autocast(states.device.type, enabled=False):
        if torch.is_grad_enabled() and any(one.requires_grad for one in inputs):
            losses: Tensor = _LinearLosses.apply(*inputs, losses_of)
            return losses
        padded = _pad_vocabulary(output.weight, output.bias, states.dtype)
        return losses_of(_logits(states, *padded), False)


class _LinearLosses(torch.autograd.Function):
    """A linear layer on z, and the losses of a pair's steps or of a pair, (B, J) or (B, 1)."""

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, bias: Tensor, losses_of: _LossesOfLogits
    ) -> Tensor:
        """The losses; the gradient of the logits is saved in their place."""
        padded, padded_bias = _pad_vocabulary(weight, bias, states.dtype)
        logits = _logits(states, padded, padded_bias)
        losses = losses_of(logits, True)
        ctx.save_for_backward(states, padded, logits)
        ctx.vocabulary, ctx.weight_dtype = len(weight), weight.dtype
        return losses

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_losses: Tensor) -> tuple[Tensor | None, ...]:
        """The two products; `d_logits` still lacks the factor of each step."""
        states, weight, d_logits = ctx.saved_tensors
        d_steps = d_losses.expand(states.shape[:2]).flatten().contiguous()  # (B, J or 1) -> (B J,)
        d_states = d_weight = d_bias = None
        with torch.autocast(states.device.type, enabled=False):
            if ctx.needs_input_grad[0]:
                d_states = torch.mm(d_logits.flatten(0, 1), weight)
                _scale(d_states, d_steps, d_states)
                d_states = d_states.view_as(states)
            if any(ctx.needs_input_grad[1:3]):
                both = dispatch.mm_in_float32(
                    d_logits.flatten(0, 1).t(), _scaled_with_factor(states, d_steps)
                )
                both = both[: ctx.vocabulary].to(ctx.weight_dtype)  # (V, H + 1 and padding)
                d_weight, d_bias = both[:, : states.shape[-1]], both[:, states.shape[-1]]
        return d_states, d_weight, d_bias, None


# --- products -----------------------------------------------------------------------------------


def _padded_size(vocabulary: int) -> int:
    return -(-vocabulary // _VOCABULARY_MULTIPLE) * _VOCABULARY_MULTIPLE


def _pad_vocabulary(weight: Tensor, bias: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """(V, H) and (V,) in the type of the products, padded with types of probability 0."""
    vocabulary, size = weight.shape
    padded = weight.new_empty(_padded_size(vocabulary), size, dtype=dtype)
    padded[:vocabulary] = weight
    padded[vocabulary:] = 0.0
    padding = len(padded) - vocabulary
    return padded, functional.pad(bias.to(dtype), (0, padding), value=float("-inf"))


def _logits(states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """(B, J, H) -> (B, J, V with padding)."""
    logits = torch.addmm(bias, states.flatten(0, 1), weight.t())
    return logits.view(*states.shape[:2], len(bias))


def _scaled_with_factor(states: Tensor, steps: Tensor) -> Tensor:
    """Each z times its step's factor, then the factor itself. (B, J, H) -> (B J, H + 1 ...).

    So the gradient of the bias is one more column of the gradient of the weight.
    """
    rows, size = states.flatten(0, 1), states.shape[-1]
    weighted = rows.new_empty(len(rows), (size // _ALIGNMENT + 1) * _ALIGNMENT)
    _scale(rows, steps, weighted)
    return weighted


def _scale(rows: Tensor, factors: Tensor, out: Tensor) -> None:
    """Rows (N, H) times their factors (N,); further columns of `out` get the factors themselves."""
    block = triton.next_power_of_2(out.shape[1])
    scale[(len(rows),)](
        *(rows.contiguous(), factors, out, rows.shape[1], out.shape[1]), BLOCK=block, num_warps=1
    )


# --- from logits to losses ----------------------------------------------------------------------


def _target_losses_of(targets: Tensor, logits: Tensor, gradient: bool) -> Tensor:
    """Logits (B, J, V with padding), overwritten by their gradient if wanted -> losses (B, J)."""
    losses = torch.empty_like(targets, dtype=torch.float32, memory_format=torch.contiguous_format)
    width = logits.shape[-1]
    grid = (targets.numel(),)
    target_row[grid](
        logits, targets.contiguous(), losses, width, GRADIENT=gradient, BLOCK=2048, num_warps=8
    )
    return losses


def _smoothed_losses_of(
    targets: Tensor, smoothing: float, num_types: int, plain: Tensor, logits: Tensor, gradient: bool
) -> Tensor:
    """As `_target_losses_of`, with label smoothing; `plain` (B, J) gets the losses without it."""
    losses, width = torch.empty_like(plain), logits.shape[-1]
    smoothed_row[(targets.numel(),)](
        *(logits, targets.contiguous(), losses, plain, width, smoothing, num_types),
        FIRST=NEVER_WRITTEN[0],
        SECOND=NEVER_WRITTEN[1],
        GRADIENT=gradient,
        BLOCK=2048,
        num_warps=8,
    )
    return losses


def _source_losses_of(
    counts: Tensor, mask: Tensor | None, c: float, logits: Tensor, gradient: bool
) -> Tensor:
    """Logits (B, J, V with padding), overwritten by their gradient if wanted -> losses (B, 1)."""
    batch, steps, width = logits.shape
    block = 512
    maxima = counts.new_empty(batch, steps)
    inverse_totals, differences = torch.empty_like(maxima), torch.empty_like(counts)
    squares = counts.new_empty(batch, triton.cdiv(width, block))
    source_row[(batch * steps,)](logits, maxima, inverse_totals, width, BLOCK=2048, num_warps=8)
    if mask is not None:
        inverse_totals *= mask  # q is 0 at a step that does not count
    source_sum[squares.shape](
        *(logits, maxima, inverse_totals, counts, differences, squares, steps, width),
        STEPS=4,
        BLOCK=block,
        num_warps=4,
    )
    if gradient:
        source_gradient[(batch, triton.cdiv(steps, 2))](
            *(logits, maxima, inverse_totals, differences, 2.0 / c, steps, width),
            STEPS=2,
            BLOCK=2048,
            num_warps=8,
        )
    return squares.sum(1, keepdim=True) / c
