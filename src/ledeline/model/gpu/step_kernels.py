"""The LSTM cell of a decoder step in inference; `step_model` uses it."""

import torch
from torch import Tensor

from ledeline.model.gpu.cell import tanh
from ledeline.model.gpu.triton_language import tl, triton

_UNITS = 256  # of a program


def lstm_cell(
    gates: Tensor, biases: Tensor, words: Tensor | None, cells: Tensor, own: Tensor, above: Tensor
) -> Tensor:
    """As `ledeline.model.gpu.gpu_step_model.plain_lstm_cell`, in one pass."""
    number, size = cells.shape
    after = torch.empty_like(cells)
    strides = own.stride(0), above.stride(0)
    _lstm_cell[(number, triton.cdiv(size, _UNITS))](
        gates, biases, words, cells, after, own, above, *strides, size, UNITS=_UNITS, num_warps=4
    )
    return after


@triton.jit
def _lstm_cell(
    gates,
    biases,
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
    gates_at = gates + row * 4 * size + units
    biases_at = biases + units
    if words is not None:
        biases_at += tl.load(words + row) * 4 * size
    in_gate = tl.load(gates_at, mask=inside) + tl.load(biases_at, mask=inside)
    forget = tl.load(gates_at + size, mask=inside) + tl.load(biases_at + size, mask=inside)
    candidate = tl.load(gates_at + 2 * size, mask=inside) + tl.load(
        biases_at + 2 * size, mask=inside
    )
    out_gate = tl.load(gates_at + 3 * size, mask=inside) + tl.load(
        biases_at + 3 * size, mask=inside
    )
    before = tl.load(cells + row * size + units, mask=inside)
    now = tl.sigmoid(forget) * before + tl.sigmoid(in_gate) * tanh(candidate)
    hidden = tl.sigmoid(out_gate) * tanh(now)
    tl.store(after + row * size + units, now, mask=inside)
    tl.store(own + row * own_stride + units, hidden, mask=inside)
    tl.store(above + row * above_stride + units, hidden, mask=inside)
