"""The cell of a layer while headlines are written; `writer` says how it is used."""

import torch
from torch import Tensor

from ledeline.model.gpu.cell import tanh
from ledeline.model.gpu.triton_language import tl, triton

_UNITS = 256  # of a program


def cell(
    sums: Tensor, rows: Tensor, words: Tensor | None, cells: Tensor, own: Tensor, above: Tensor
) -> Tensor:
    """As `ledeline.model.gpu.step_model.plain_cell`, in one pass."""
    number, size = cells.shape
    after = torch.empty_like(cells)
    strides = own.stride(0), above.stride(0)
    _cell[(number, triton.cdiv(size, _UNITS))](
        sums, rows, words, cells, after, own, above, *strides, size, UNITS=_UNITS, num_warps=4
    )
    return after


@triton.jit
def _cell(
    sums,
    rows,
    words,
    cells,
    after,
    own,
    above,
    own_stride,
    above_stride,
    size,
    UNITS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    units = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    inside = units < size
    sums_at = sums + row * 4 * size + units
    rows_at = rows + units
    if words is not None:
        rows_at += tl.load(words + row) * 4 * size
    enter = tl.load(sums_at, mask=inside) + tl.load(rows_at, mask=inside)
    forget = tl.load(sums_at + size, mask=inside) + tl.load(rows_at + size, mask=inside)
    candidate = tl.load(sums_at + 2 * size, mask=inside) + tl.load(rows_at + 2 * size, mask=inside)
    leave = tl.load(sums_at + 3 * size, mask=inside) + tl.load(rows_at + 3 * size, mask=inside)
    before = tl.load(cells + row * size + units, mask=inside)
    now = tl.sigmoid(forget) * before + tl.sigmoid(enter) * tanh(candidate)
    hidden = tl.sigmoid(leave) * tanh(now)
    tl.store(after + row * size + units, now, mask=inside)
    tl.store(own + row * own_stride + units, hidden, mask=inside)
    tl.store(above + row * above_stride + units, hidden, mask=inside)
