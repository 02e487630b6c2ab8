"""The output layer and the SPM, each with its loss, without a float32 copy of their logits.

The logits of all steps are the largest thing in a training step. They are written once, in the type
of the products, and read where they lie. As soon as the loss is known, their gradient takes their
place: it lacks only one factor a step, what the loss is owed, and that is multiplied into z on the
way back. So the way back is two products for each head, and nothing but them passes over the
logits' width.

V is filled up to a multiple of 64, or no row but the first would start where fast loads may. A bias
of minus infinity keeps the filling at a probability of 0, so that no kernel needs to know V.
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
    source_gradient,
    source_row,
    source_sum,
    target_row,
)
from ledeline.model.gpu.triton_language import triton
from ledeline.model.pairs import Pairs

_FILLED: Final = 64  # V is filled up to a multiple of this
_ALIGNED: Final = 8  # values of 16 bits in the 16 bytes of the widest load

_Finish = Callable[[Tensor, bool], Tensor]


def token_losses(states: Tensor, output: nn.Linear, targets: Tensor) -> Tensor:
    """`-log o_j[y_j]` of each step. z (B, J, H), targets (B, J) -> (B, J)."""
    return _losses(states, output, partial(_finish_target, targets))


def source_losses(states: Tensor, output: nn.Linear, pairs: Pairs, c: float) -> Tensor:
    """`l_src = ||q~ - x~||^2 / C` of each pair. z (B, J, H) -> (B,)."""
    counts = occurrences(pairs, _filled(output.out_features))
    finish = partial(_finish_source, counts, pairs.target_mask, c)
    return _losses(states, output, finish).squeeze(1)


def _losses(states: Tensor, output: nn.Linear, finish: _Finish) -> Tensor:
    """A head's losses; nothing is kept where nothing wants a gradient."""
    states = states.to(dispatch.product_type(states))
    given = (states, output.weight, output.bias)
    with torch.autocast(states.device.type, enabled=False):
        if torch.is_grad_enabled() and any(one.requires_grad for one in given):
            losses: Tensor = _Losses.apply(*given, finish)
            return losses
        return finish(_logits(states, *_fill(output.weight, output.bias, states.dtype)), False)


class _Losses(torch.autograd.Function):
    """A linear layer on z, and the losses of a pair's steps or of a pair, (B, J) or (B, 1)."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor, finish: _Finish) -> Tensor:
        """The losses; what is kept of the logits is their gradient."""
        filled, filled_bias = _fill(weight, bias, states.dtype)
        logits = _logits(states, filled, filled_bias)
        losses = finish(logits, True)
        ctx.save_for_backward(states, filled, logits)
        ctx.vocabulary, ctx.exact = len(weight), weight.dtype
        return losses

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_losses: Tensor) -> tuple[Tensor | None, ...]:
        """The two products; `d_logits` still lacks each step's factor."""
        states, weight, d_logits = ctx.saved_tensors
        steps = d_losses.expand(states.shape[:2]).flatten().contiguous()  # (B, J or 1) -> (B J,)
        d_feeds = d_weight = d_bias = None
        with torch.autocast(states.device.type, enabled=False):
            if ctx.needs_input_grad[0]:
                d_feeds = torch.mm(d_logits.flatten(0, 1), weight)
                _scale(d_feeds, steps, d_feeds)
                d_feeds = d_feeds.view_as(states)
            if any(ctx.needs_input_grad[1:3]):
                both = dispatch.precise_product(
                    d_logits.flatten(0, 1).t(), _weighted(states, steps)
                )
                both = both[: ctx.vocabulary].to(ctx.exact)  # (V, H + 1 and filling)
                d_weight, d_bias = both[:, : states.shape[-1]], both[:, states.shape[-1]]
        return d_feeds, d_weight, d_bias, None


# --- products -----------------------------------------------------------------------------------


def _filled(vocabulary: int) -> int:
    return -(-vocabulary // _FILLED) * _FILLED


def _fill(weight: Tensor, bias: Tensor, kind: torch.dtype) -> tuple[Tensor, Tensor]:
    """(V, H) and (V,) in the type of the products, with rows that never have a probability."""
    vocabulary, size = weight.shape
    filled = weight.new_empty(_filled(vocabulary), size, dtype=kind)
    filled[:vocabulary] = weight
    filled[vocabulary:] = 0.0
    missing = len(filled) - vocabulary
    return filled, functional.pad(bias.to(kind), (0, missing), value=float("-inf"))


def _logits(states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """(B, J, H) -> (B, J, V and filling)."""
    logits = torch.addmm(bias, states.flatten(0, 1), weight.t())
    return logits.view(*states.shape[:2], len(bias))


def _weighted(states: Tensor, steps: Tensor) -> Tensor:
    """Each z times its step's factor, and beside it the factor. (B, J, H) -> (B J, H + 1 ...).

    So the gradient of the bias is one more column of that of the weight.
    """
    rows, size = states.flatten(0, 1), states.shape[-1]
    weighted = rows.new_empty(len(rows), (size // _ALIGNED + 1) * _ALIGNED)
    _scale(rows, steps, weighted)
    return weighted


def _scale(rows: Tensor, factors: Tensor, out: Tensor) -> None:
    """Rows (N, H) times their factors (N,); where `out` is wider, the factors themselves follow."""
    across = triton.next_power_of_2(out.shape[1])
    scale[(len(rows),)](
        *(rows.contiguous(), factors, out, rows.shape[1], out.shape[1]), ACROSS=across, num_warps=1
    )


# --- from logits to losses ----------------------------------------------------------------------


def _finish_target(targets: Tensor, logits: Tensor, gradient: bool) -> Tensor:
    """Logits (B, J, V and filling), overwritten by their gradient if wanted -> losses (B, J)."""
    losses = torch.empty_like(targets, dtype=torch.float32, memory_format=torch.contiguous_format)
    width = logits.shape[-1]
    grid = (targets.numel(),)
    target_row[grid](
        logits, targets.contiguous(), losses, width, GRADIENT=gradient, BLOCK=2048, num_warps=8
    )
    return losses


def _finish_source(
    counts: Tensor, mask: Tensor | None, c: float, logits: Tensor, gradient: bool
) -> Tensor:
    """Logits (B, J, V and filling), overwritten by their gradient if wanted -> losses (B, 1)."""
    batch, steps, width = logits.shape
    block = 512
    tops = counts.new_empty(batch, steps)
    shares, differences = torch.empty_like(tops), torch.empty_like(counts)
    squares = counts.new_empty(batch, triton.cdiv(width, block))
    source_row[(batch * steps,)](logits, tops, shares, width, BLOCK=2048, num_warps=8)
    if mask is not None:
        shares *= mask  # a step that does not count has a q of 0 throughout
    source_sum[squares.shape](
        *(logits, tops, shares, counts, differences, squares, steps, width),
        STEPS=4,
        BLOCK=block,
        num_warps=4,
    )
    if gradient:
        source_gradient[(batch, triton.cdiv(steps, 2))](
            *(logits, tops, shares, differences, 2.0 / c, steps, width),
            STEPS=2,
            BLOCK=2048,
            num_warps=8,
        )
    return squares.sum(1, keepdim=True) / c
