"""Products with fixed weights, arranged once so that each is fast on a CPU: float32 or int8.

Both give each row the same bits whatever rows stand beside it: oneDNN adds up a row in the same
order in a batch of any size but one, which is therefore never asked of it, and integers add up
alike in every order.
"""

from typing import Final, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from ledeline.core.errors import ModelError
from ledeline.model.format.int8 import LEVELS, quantize
from ledeline.runtime import cpu, kernels

_ZERO: Final = 128  # where zero lies among the unsigned levels
_ROWS: Final = 640  # the batch the weights are laid out for; any other works, too
_ROUND: Final = 32  # rows


class Product(Protocol):
    """`x W^T + b` for x none of whose values is beyond a bound."""

    def prepared(self, values: Tensor, bound: float = 1.0) -> Tensor:
        """Values (..., K) as the product takes them."""

    def put(self, values: Tensor, place: Tensor, bound: float = 1.0) -> None:
        """Prepare values into a place that is there already."""

    def __call__(self, values: Tensor, bound: float = 1.0) -> Tensor:
        """Prepared values (..., K), of the bound they were prepared for -> (..., M) in float32."""


def _rows(values: Tensor) -> tuple[Tensor, int]:
    """Values (..., K) as rows, with some more behind them, and how many those are.

    oneDNN keeps a program for every number of rows, so beyond some there are only round numbers;
    and for one row alone it has another way on some processors.
    """
    rows = values.flatten(0, -2)
    number = rows.shape[0]
    more = -number % _ROUND if number > 2 * _ROUND else int(number == 1)
    return functional.pad(rows, (0, 0, 0, more)) if more else rows, more


def _shaped(product: Tensor, num_more: int, values: Tensor) -> Tensor:
    """The rows of a product that belong to the values, in their shape. (N, M) -> (..., M)."""
    if num_more:
        product = product[:-num_more]
    return product.view(*values.shape[:-1], -1) if values.dim() > 2 else product


class Maker(Protocol):
    """Makes a product of one kind."""

    def __call__(self, weight: Tensor, bias: Tensor | None = None) -> Product:
        """Of a weight (M, K) and a bias (M,)."""


class Float32Product:
    """In float32; in oneDNN's layout of the weights where the build of torch has it."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self._weight = weight.detach().float().contiguous()
        self._bias = None if bias is None else bias.detach().float().contiguous()
        self._packed = None
        if torch._C._has_mkldnn:
            self._packed = torch.ops.mkldnn._reorder_linear_weight(self._weight, _ROWS)

    def prepared(self, values: Tensor, bound: float = 1.0) -> Tensor:  # noqa: ARG002
        """The values themselves."""
        return values

    def put(self, values: Tensor, place: Tensor, bound: float = 1.0) -> None:  # noqa: ARG002
        """Copy values."""
        place.copy_(values)

    def __call__(self, values: Tensor, bound: float = 1.0) -> Tensor:  # noqa: ARG002
        """(..., K) -> (..., M)."""
        if self._packed is None:
            return functional.linear(values, self._weight, self._bias)
        rows, num_more = _rows(values)
        product: Tensor = torch.ops.mkldnn._linear_pointwise(
            rows, self._packed, self._bias, "none", [], ""
        )
        return _shaped(product, num_more, values)


class Int8Product:
    """In int8: a scale for each row of the weights, and the one that the bound gives for values.

    What goes into the products of a system is bounded by its making (tanh, a sum of two states of
    LSTMs, a row of a table), so the scale of a value does not hang on the values beside it.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        if not cpu.has_int8():
            raise ModelError(cpu.NO_INT8)
        levels, self._scales = quantize(weight)
        self._packed = torch.ops.onednn.qlinear_prepack(levels, [_ROWS, weight.shape[1]])
        self._zeros = torch.zeros(len(weight), dtype=torch.int32)
        self._bias = None if bias is None else bias.detach().float().contiguous()

    def prepared(self, values: Tensor, bound: float = 1.0) -> Tensor:
        """Values as levels from 1 to 255, zero at 128."""
        places = torch.empty(values.shape, dtype=torch.uint8)
        self.put(values, places, bound)
        return places

    def put(self, values: Tensor, place: Tensor, bound: float = 1.0) -> None:
        """Write values as levels."""
        kernels.put_levels(values, place, LEVELS / bound)

    def __call__(self, values: Tensor, bound: float = 1.0) -> Tensor:
        """(..., K) in levels -> (..., M)."""
        rows, num_more = _rows(values)
        product: Tensor = torch.ops.onednn.qlinear_pointwise(
            rows,
            bound / LEVELS,
            _ZERO,
            self._packed,
            self._scales,
            self._zeros,
            self._bias,
            1.0,  # the scale and the zero of an output in int8, which ours is not
            0,
            torch.float32,
            "none",
            [],
            "",
        )
        return _shaped(product, num_more, values)
