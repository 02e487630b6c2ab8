"""A layer of the encoder: both directions at once, a launch for each step.

The definition is `ledeline.model.layers.encoder`; here all sources have one length. Buffers have
the steps first: (I, B, ...). In those of the directions, direction 0 goes from the first step to
the last, direction 1 back.
"""

from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from ledeline.model.gpu import dispatch
from ledeline.model.gpu.cell import (
    ONES,
    Tile,
    by_rows,
    cell_backward,
    cell_forward,
    gate_by_gate,
    packed,
    product,
    with_ones,
)
from ledeline.model.gpu.triton_language import tl, triton

FORWARD: Final = Tile(64, 16, 64, warps=4, stages=4)
BACKWARD: Final = Tile(64, 16, 128, warps=4, stages=4)


def bidirectional_sum(
    layer: nn.LSTM,
    values: Tensor,
    lengths: Tensor | None = None,  # noqa: ARG001 - all are equal here
) -> tuple[Tensor, Tensor, Tensor]:
    """Values (B, I, D) -> the sums of both directions: states (B, I, H), last state, last cell.

    Under autocast the products have its type, and with them gates and states; cells do not.
    """
    names = [f"{name}_l0{end}" for name in _NAMES for end in ("", "_reverse")]
    weights = [getattr(layer, name) for name in names]
    low = dispatch.product_type(values)
    with torch.autocast(values.device.type, enabled=False):
        states, hidden, cell = _Layer.apply(low, values, *weights)
    return states, hidden, cell


_NAMES: Final = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


class _Layer(torch.autograd.Function):
    """See `bidirectional_sum`."""

    @staticmethod
    def forward(
        ctx: Any, low: torch.dtype, values: Tensor, *weights: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Values (B, I, D); of each direction (4H, D) and (4H, H), and two biases (4H,)."""
        (batch, length, _), size = values.shape, weights[2].shape[1]
        weight = packed(weights[:2], [weights[4::2], weights[5::2]], low).forth.flatten(0, 1)
        own, inputs = packed(weights[2:4], [], low), with_ones(values, low)
        gates = (inputs.flatten(0, 1) @ weight.t()).view(length, batch, -1)  # (I, B, 8H)
        hidden = inputs.new_empty(2, length, batch, size)
        cells = torch.empty_like(hidden, dtype=torch.float32)
        advance = FORWARD.launcher(_forward, low, batch, size, 2)
        for step in range(length):
            advance(gates, own.forth, hidden, cells, step, length, batch, size)
        ctx.save_for_backward(inputs, hidden, cells, gates, weight, own.back)
        ctx.dtype = values.dtype
        states = inputs.new_empty(batch, length, size)
        _add[(length, batch)](hidden, states, size, SIZE=triton.next_power_of_2(size), num_warps=1)
        return states, hidden[0, -1] + hidden[1, 0], cells[0, -1] + cells[1, 0]

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, d_states: Tensor, d_last: Tensor, d_last_cell: Tensor
    ) -> tuple[Tensor | None, ...]:
        """The steps back; then the weights."""
        inputs, hidden, cells, gates, weight, own = ctx.saved_tensors
        (_, length, batch, size), low = hidden.shape, inputs.dtype
        d_states, d_last = d_states.contiguous(), d_last.contiguous()
        d_cell = d_last_cell.expand(2, batch, size).contiguous()
        d_gates = torch.empty_like(gates)
        owed = (d_gates, d_states, d_last, d_cell)
        go_back = BACKWARD.launcher(_backward, low, batch, size, 2)
        for step in reversed(range(length)):
            go_back(gates, own, cells, *owed, step, length, batch, size)
        d_sums, (ones, back) = d_gates.flatten(0, 1), d_gates.split(4 * size, -1)
        d_inputs = (d_sums @ weight[:, :-ONES]).view(length, batch, -1)
        both = dispatch.precise_product(d_sums.t(), inputs.flatten(0, 1))  # (8H, D + ONES)
        d_weights = both.chunk(2)
        d_own = (
            dispatch.precise_product(ones[1:].flatten(0, 1).t(), hidden[0, :-1].flatten(0, 1)),
            dispatch.precise_product(back[:-1].flatten(0, 1).t(), hidden[1, 1:].flatten(0, 1)),
        )
        return (
            None,
            by_rows(d_inputs, ctx.dtype),
            *(gate_by_gate(d_weight[:, :-ONES]) for d_weight in d_weights),
            *map(gate_by_gate, d_own),
            *(gate_by_gate(d_weight[:, -ONES]) for d_weight in (*d_weights, *d_weights)),
        )


@triton.jit
def _add(hidden, states, size, SIZE: tl.constexpr):
    """The states of both directions of one row at one step, (2, I, B, H) -> (B, I, H)."""
    step, row = tl.program_id(0).to(tl.int64), tl.program_id(1)
    length, batch = tl.num_programs(0), tl.num_programs(1)
    units = tl.arange(0, SIZE)
    at = hidden + (step * batch + row) * size + units
    one = tl.load(at, mask=units < size, other=0.0).to(tl.float32)
    other = tl.load(at + length.to(tl.int64) * batch * size, mask=units < size, other=0.0)
    tl.store(states + (row * length + step) * size + units, one + other, mask=units < size)


@triton.jit(do_not_specialize=["step", "length", "batch"])
def _forward(
    gates,
    own,
    hidden,
    cells,
    step,
    length,
    batch,
    size,
    TALL: tl.constexpr,
    WIDE: tl.constexpr,
    DEEP: tl.constexpr,
    EXACT: tl.constexpr,
):
    """One step of both directions; `gates` has what the inputs bring to the sums."""
    way = tl.program_id(2)
    here = (step + way * (length - 1 - 2 * step)).to(tl.int64)
    before = here - 1 + 2 * way
    rows = tl.program_id(0) * TALL + tl.arange(0, TALL)
    units = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    columns = tl.program_id(1) * 4 * WIDE + tl.arange(0, 4 * WIDE)
    sums = product(
        hidden + (way * length + before) * batch * size,
        size,
        own + way * 4 * size * size,
        tl.minimum(rows, batch - 1),
        tl.minimum(columns, 4 * size - 1),
        size,
        step > 0,
        TALL,
        4 * WIDE,
        DEEP,
        EXACT,
    )
    mask = (rows < batch)[:, None] & (units < size)[None, :]
    wide_mask = (rows < batch)[:, None] & (columns < 4 * size)[None, :]
    places = rows[:, None] * size + units[None, :]
    gates_at = gates + ((here * batch + rows) * 2 + way)[:, None] * 4 * size + columns[None, :]
    sums += tl.load(gates_at, mask=wide_mask, other=0.0).to(tl.float32)
    cell_before = cells + (way * length + before) * batch * size + places
    cell = tl.load(cell_before, mask=mask & (step > 0), other=0.0)
    values, state, cell = cell_forward(sums, cell, TALL, WIDE)
    now = (way * length + here) * batch * size + places
    tl.store(hidden + now, state, mask=mask)
    tl.store(cells + now, cell, mask=mask)
    tl.store(gates_at, values, mask=wide_mask)


@triton.jit(do_not_specialize=["step", "length", "batch"])
def _backward(
    gates,
    own,
    cells,
    d_gates,
    d_states,
    d_last,
    d_cells,
    step,
    length,
    batch,
    size,
    TALL: tl.constexpr,
    WIDE: tl.constexpr,
    DEEP: tl.constexpr,
    EXACT: tl.constexpr,
):
    """One step of both directions back, from the step behind it."""
    way = tl.program_id(2)
    here = (step + way * (length - 1 - 2 * step)).to(tl.int64)
    before, behind = here - 1 + 2 * way, here + 1 - 2 * way
    last = step == length - 1
    rows = tl.program_id(0) * TALL + tl.arange(0, TALL)
    units = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    columns = tl.program_id(1) * 4 * WIDE + tl.arange(0, 4 * WIDE)
    mask = (rows < batch)[:, None] & (units < size)[None, :]
    wide_mask = (rows < batch)[:, None] & (columns < 4 * size)[None, :]
    places = rows[:, None] * size + units[None, :]
    owed = d_states + (rows.to(tl.int64) * length + here)[:, None] * size + units[None, :]
    d_hidden = tl.load(owed, mask=mask, other=0.0).to(tl.float32)
    d_hidden += tl.load(d_last + places, mask=mask & last, other=0.0)
    now = ((here * batch + rows) * 2 + way)[:, None] * 4 * size + columns[None, :]
    values = tl.load(gates + now, mask=wide_mask, other=0.0)
    of_way = cells + way * length * batch * size + places
    cell = tl.load(of_way + here * batch * size, mask=mask, other=0.0)
    cell_before = tl.load(of_way + before * batch * size, mask=mask & (step > 0), other=0.0)
    d_cell_at = d_cells + way * batch * size + places
    d_cell = tl.load(d_cell_at, mask=mask, other=0.0)
    d_hidden += product(
        d_gates + (behind * batch * 2 + way) * 4 * size,
        8 * size,
        own + way * 4 * size * size,
        tl.minimum(rows, batch - 1),
        tl.minimum(units, size - 1),
        4 * size,
        step < length - 1,
        TALL,
        WIDE,
        DEEP,
        EXACT,
    )
    d_sums, d_cell = cell_backward(values, cell_before, cell, d_hidden, d_cell, TALL, WIDE)
    tl.store(d_gates + now, d_sums, mask=wide_mask)
    tl.store(d_cell_at, d_cell, mask=mask)
