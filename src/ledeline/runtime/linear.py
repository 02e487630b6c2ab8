"""Linear layers with fixed weights, packed once so that each is fast on a CPU: float32 or int8.

Both give each row the same bits whatever the other rows are. In float32, oneDNN sums a row in the
same order in a batch of any size but one, so batches of one are padded. In int8, the order of a sum
of integers does not matter.
"""

from typing import Final, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from ledeline.core.errors import ModelError
from ledeline.model.format.int8 import MAX_LEVEL, quantize
from ledeline.runtime import cpu, kernels

_ZERO: Final = 128  # the unsigned level of zero
_ROWS: Final = 640  # the batch size that weights are packed for; any other works, too
_MULTIPLE: Final = 32  # large batches are padded to a multiple of so many rows


class Linear(Protocol):
    """`x W^T + b` for values of x between -bound and bound, which are quantized first."""

    def quantize(self, values: Tensor, bound: float = 1.0) -> Tensor:
        """Values (..., K) in the type that the layer multiplies."""

    def quantize_into(self, values: Tensor, out: Tensor, bound: float = 1.0) -> None:
        """As `quantize`, written to `out`."""

    def restore(self, quantized: Tensor, bound: float = 1.0) -> Tensor:
        """Quantized values (..., K), with the same bound, in float32."""

    def __call__(self, quantized: Tensor, bound: float = 1.0) -> Tensor:
        """Quantized values (..., K), with the same bound -> (..., M) in float32."""


def _padded_rows(values: Tensor) -> tuple[Tensor, int]:
    """Values (..., K) as padded rows, and the number of padding rows.

    oneDNN compiles a kernel for every number of rows, so large numbers are rounded up; and for a
    single row it sums in another order on some processors.
    """
    rows = values.flatten(0, -2)
    number = rows.shape[0]
    num_padding = -number % _MULTIPLE if number > 2 * _MULTIPLE else int(number == 1)
    return functional.pad(rows, (0, 0, 0, num_padding)) if num_padding else rows, num_padding


def _unpadded(product: Tensor, num_padding: int, values: Tensor) -> Tensor:
    """Remove padding rows, and restore the shape of the values. (N, M) -> (..., M)."""
    if num_padding:
        product = product[:-num_padding]
    return product.view(*values.shape[:-1], -1) if values.dim() > 2 else product


class LinearType(Protocol):
    """`Float32Linear` or `Int8Linear`."""

    def __call__(self, weight: Tensor, bias: Tensor | None = None) -> Linear:
        """A layer with a weight (M, K) and a bias (M,)."""


class Float32Linear:
    """In float32; weights have oneDNN's own layout where torch was built with it."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self._weight = weight.detach().float().contiguous()
        self._bias = None if bias is None else bias.detach().float().contiguous()
        self._packed = None
        if torch._C._has_mkldnn:
            self._packed = torch.ops.mkldnn._reorder_linear_weight(self._weight, _ROWS)

    def quantize(self, values: Tensor, bound: float = 1.0) -> Tensor:  # noqa: ARG002
        """The values themselves: float32 is not quantized."""
        return values

    def quantize_into(self, values: Tensor, out: Tensor, bound: float = 1.0) -> None:  # noqa: ARG002
        """Copy values."""
        out.copy_(values)

    def restore(self, quantized: Tensor, bound: float = 1.0) -> Tensor:  # noqa: ARG002
        """A copy of the values."""
        return quantized.clone()

    def __call__(self, quantized: Tensor, bound: float = 1.0) -> Tensor:  # noqa: ARG002
        """(..., K) -> (..., M)."""
        if self._packed is None:
            return functional.linear(quantized, self._weight, self._bias)
        rows, num_padding = _padded_rows(quantized)
        product: Tensor = torch.ops.mkldnn._linear_pointwise(
            rows, self._packed, self._bias, "none", [], ""
        )
        return _unpadded(product, num_padding, quantized)


class Int8Linear:
    """In int8: one scale for each row of the weights, and one for the values, from their bound.

    The inputs of a system's layers have known bounds (tanh, a sum of two LSTM states, a row of a
    table), so how a value is quantized does not depend on other values.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        if not cpu.has_int8():
            raise ModelError(cpu.NO_INT8)
        levels, self._scales = quantize(weight)
        self._packed = torch.ops.onednn.qlinear_prepack(levels, [_ROWS, weight.shape[1]])
        self._zeros = torch.zeros(len(weight), dtype=torch.int32)
        self._bias = None if bias is None else bias.detach().float().contiguous()

    def quantize(self, values: Tensor, bound: float = 1.0) -> Tensor:
        """Values as levels from 1 to 255, zero at 128."""
        quantized = torch.empty(values.shape, dtype=torch.uint8)
        self.quantize_into(values, quantized, bound)
        return quantized

    def quantize_into(self, values: Tensor, out: Tensor, bound: float = 1.0) -> None:
        """As `quantize`, written to `out`."""
        kernels.quantize_into(values, out, MAX_LEVEL / bound)

    def restore(self, quantized: Tensor, bound: float = 1.0) -> Tensor:
        """Levels as values."""
        return (quantized.float() - _ZERO) * (bound / MAX_LEVEL)

    def __call__(self, quantized: Tensor, bound: float = 1.0) -> Tensor:
        """Levels (..., K) -> (..., M)."""
        rows, num_padding = _padded_rows(quantized)
        product: Tensor = torch.ops.onednn.qlinear_pointwise(
            rows,
            bound / MAX_LEVEL,
            _ZERO,
            self._packed,
            self._scales,
            self._zeros,
            self._bias,
            1.0,  # scale and zero point of an output in int8, which ours is not
            0,
            torch.float32,
            "none",
            [],
            "",
        )
        return _unpadded(product, num_padding, quantized)
