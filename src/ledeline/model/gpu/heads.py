"""Multi-head attention of whole sentences, in one kernel each way.

Plain PyTorch splits and joins heads, writes all weights several times and reads them back. Torch's
own fused attention adds up gradients in no fixed order; these do not.
"""

import math
from typing import Any, Final

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ledeline.model.gpu.heads_kernels import heads_backward, heads_forward
from ledeline.model.gpu.triton_language import triton

_LEAST_BLOCK: Final = 16  # rows of a product on tensor cores


def attend_self(
    of_state: Tensor, heads: int, mask: Tensor | None, causal: bool, dropout: object
) -> Tensor:
    """Queries, keys and values side by side (B, I, 3d), mask (B, I) -> contexts (B, I, d)."""
    del dropout  # nothing is dropped where this is used
    mixed: Tensor = _Heads.apply(of_state, None, heads, mask, causal)
    return mixed


def attend_source(
    queries: Tensor, keys_values: Tensor, heads: int, mask: Tensor | None, dropout: object
) -> Tensor:
    """Queries (B, Q, d), keys and values side by side (B, I, 2d) -> contexts (B, Q, d)."""
    del dropout
    mixed: Tensor = _Heads.apply(queries, keys_values, heads, mask, False)
    return mixed


class _Heads(torch.autograd.Function):
    """Attention, and the gradients of what it was given, in the same layout."""

    @staticmethod
    def forward(
        ctx: Any,
        own: Tensor,  # (B, Q, d), or (B, I, 3d) without `other`
        other: Tensor | None,  # (B, I, 2d)
        heads: int,
        mask: Tensor | None,
        causal: bool,
    ) -> Tensor:
        """The contexts."""
        own = own.contiguous()
        other = None if other is None else other.contiguous().to(own.dtype)
        queries, keys, _ = parts = _parts(own, other)
        size = queries.shape[-1]
        contexts = own.new_empty(*queries.shape[:2], size)
        ctx.launch = _launch(queries, keys, heads, mask, causal)
        given = mask if mask is not None else contexts  # not read where there is none
        heads_forward[(len(own) * heads,)](*parts, given, contexts, **ctx.launch)
        ctx.save_for_backward(own, other, mask)
        return contexts

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_contexts: Tensor) -> Any:
        """Gradients in the layout of what they belong to."""
        own, other, mask = ctx.saved_tensors
        d_own = torch.empty_like(own)
        d_other = None if other is None else torch.empty_like(other)
        given = mask if mask is not None else own
        heads_backward[(len(own) * ctx.launch["HEADS"],)](
            d_contexts.contiguous().to(own.dtype),
            *_parts(own, other),
            given,
            *_parts(d_own, d_other),
            **ctx.launch,
        )
        return d_own, d_other, None, None, None


def _parts(own: Tensor, other: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values, as views."""
    if other is None:
        queries, keys, values = own.chunk(3, -1)
        return queries, keys, values
    return own, *other.chunk(2, -1)  # type: ignore[return-value]


def _launch(
    queries: Tensor, keys: Tensor, heads: int, mask: Tensor | None, causal: bool
) -> dict[str, Any]:
    """The numbers that both kernels take."""
    size, longest = queries.shape[-1] // heads, max(queries.shape[1], keys.shape[1])
    return {
        "query_stride": queries.stride(1),
        "key_stride": keys.stride(1),
        "num_queries": queries.shape[1],
        "num_places": keys.shape[1],
        "scale": 1 / math.sqrt(size),
        "HEADS": heads,
        "SIZE": size,
        "MASKED": mask is not None,
        "CAUSAL": causal,
        "BLOCK_Q": max(_LEAST_BLOCK, triton.next_power_of_2(queries.shape[1])),
        "BLOCK_I": max(_LEAST_BLOCK, triton.next_power_of_2(keys.shape[1])),
        "num_warps": 4 if longest <= 64 else 8,
    }
