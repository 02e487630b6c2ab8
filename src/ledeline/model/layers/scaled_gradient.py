"""Values as they are, whose gradient is scaled."""

from typing import Any

import torch
from torch import Tensor


def scale_gradient(values: Tensor, factor: float) -> Tensor:
    """The same values, bit for bit; their gradient is multiplied by the factor."""
    same: Tensor = _ScaledGradient.apply(values, factor)  # type: ignore[no-untyped-call]
    return same


class _ScaledGradient(torch.autograd.Function):
    """See `scale_gradient`."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, factor: float) -> Tensor:
        """A view of the values."""
        ctx.factor = factor
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """The gradient times the factor."""
        return gradient * ctx.factor, None
