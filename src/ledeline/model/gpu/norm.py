"""A residual connection with dropout, and the norm after it, in one kernel each way.

Plain PyTorch reads and writes the states of all places eight times for it, and keeps a mask. Here
they are read once and written once, and the norm comes out in the type of the products.
"""

from typing import Any, Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from ledeline.model.gpu import dispatch
from ledeline.model.gpu.norm_kernels import add_and_norm_backward, add_and_norm_forward
from ledeline.model.gpu.triton_language import triton
from ledeline.model.layers.dropout import Dropout, Share

_MAX_PROGRAMS: Final = 1024  # of the backward pass; each has a part of the gradient of the gains
_SEEDS: Final = 2**31 - 1


class _Drawn(NamedTuple):
    """How the random mask is drawn."""

    rate: float  # 0: nothing is dropped
    share: Share
    places: int  # rows of a pair


def add_and_norm(
    states: Tensor, added: Tensor, dropout: Dropout, norm: nn.LayerNorm
) -> tuple[Tensor, Tensor]:
    """`x' = x + dropout(added)` and `norm(x')`. (B, I, d) twice -> (B, I, d) twice."""
    rate = dropout.rate if dropout.training else 0.0
    drawn = _Drawn(rate, dropout.share, states.shape[1])
    both: tuple[Tensor, Tensor] = _AddAndNorm.apply(
        states, added, norm.weight, norm.bias, norm.eps, dispatch.product_dtype(added), drawn
    )
    return both


class _AddAndNorm(torch.autograd.Function):
    """Values of both outputs, and the gradients of states, added, gains and biases."""

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        added: Tensor,
        weight: Tensor,
        bias: Tensor,
        epsilon: float,
        dtype: torch.dtype,
        drawn: _Drawn,
    ) -> tuple[Tensor, Tensor]:
        """The sums in the type of the states, their norm in the type of the products."""
        states, added = states.contiguous(), added.contiguous()
        seeds = torch.zeros(1, dtype=torch.int64, device=states.device)
        if drawn.rate:
            seeds.random_(_SEEDS)
        sums, normed = torch.empty_like(states), torch.empty_like(states, dtype=dtype)
        rows = states.numel() // states.shape[-1]
        means = states.new_empty(rows, dtype=torch.float32)
        inverse = torch.empty_like(means)
        add_and_norm_forward[(rows,)](
            *(states, added, seeds, weight, bias, sums, normed, means, inverse),
            *(states.shape[-1], drawn.rate, epsilon, *_where(drawn)),
            DROPS=bool(drawn.rate),
            **_launch(states),
        )
        ctx.save_for_backward(sums, weight, means, inverse, seeds)
        ctx.drawn, ctx.dtypes = drawn, (added.dtype, bias.dtype)
        ctx.set_materialize_grads(False)
        return sums, normed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_sums: Tensor | None, d_normed: Tensor | None) -> Any:
        """Gradients in the types of what they belong to."""
        sums, weight, means, inverse, seeds = ctx.saved_tensors
        added_dtype, bias_dtype = ctx.dtypes
        if d_normed is None:
            d_normed = torch.zeros_like(sums)
        rows, size = len(means), sums.shape[-1]
        programs = min(rows, _MAX_PROGRAMS)
        d_states, d_added = torch.empty_like(sums), torch.empty_like(sums, dtype=added_dtype)
        d_weights = means.new_empty(programs, size)
        d_biases = torch.empty_like(d_weights)
        above = sums if d_sums is None else d_sums.contiguous()  # not read where it is None
        add_and_norm_backward[(programs,)](
            *(above, d_normed.contiguous(), sums, seeds, weight, means, inverse),
            *(d_states, d_added, d_weights, d_biases, rows, size, ctx.drawn.rate),
            *_where(ctx.drawn),
            HAS_SUMS=d_sums is not None,
            DROPS=bool(ctx.drawn.rate),
            **_launch(sums),
        )
        d_weight, d_bias = d_weights.sum(0).to(weight.dtype), d_biases.sum(0).to(bias_dtype)
        return d_states, d_added, d_weight, d_bias, None, None, None


def _where(drawn: _Drawn) -> tuple[int, int, int]:
    """Which rows of the whole batch these are."""
    return drawn.share.rank, drawn.share.world_size, drawn.places


def _launch(states: Tensor) -> dict[str, int]:
    block = triton.next_power_of_2(states.shape[-1])
    return {"BLOCK": block, "num_warps": 4 if block <= 1024 else 8}
