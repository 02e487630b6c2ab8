"""A layer of the encoder: both directions at once, one kernel launch per step.

The definition is `ledeline.model.layers.encoder.bidirectional_sum`; here all sources have one
length. Buffers have the steps first: (I, B, ...). Direction 0 reads from the first word to the
last, direction 1 from the last to the first.
"""

from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from ledeline.model.gpu import dispatch
from ledeline.model.gpu.cell import (
    BIAS_COLUMNS,
    Tile,
    batch_first,
    cell_backward,
    cell_forward,
    deinterleave,
    matmul_tile,
    pack_weights,
    with_bias_columns,
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

    Under autocast products, gates and states have its type; cells are float32.
    """
    names = [f"{name}_l0{end}" for name in _NAMES for end in ("", "_reverse")]
    weights = [getattr(layer, name) for name in names]
    dtype = dispatch.product_dtype(values)
    with torch.autocast(values.device.type, enabled=False):
        states, hidden, cell = _BidirectionalSum.apply(dtype, values, *weights)
    return states, hidden, cell


_NAMES: Final = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


class _BidirectionalSum(torch.autograd.Function):
    """See `bidirectional_sum`."""

    @staticmethod
    def forward(
        ctx: Any, dtype: torch.dtype, values: Tensor, *weights: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Values (B, I, D); of each direction (4H, D) and (4H, H), and two biases (4H,)."""
        (batch, length, _), size = values.shape, weights[2].shape[1]
        biases = [weights[4::2], weights[5::2]]
        weight = pack_weights(weights[:2], biases, dtype).weights.flatten(0, 1)
        own, inputs = pack_weights(weights[2:4], [], dtype), with_bias_columns(values, dtype)
        gates = (inputs.flatten(0, 1) @ weight.t()).view(length, batch, -1)  # (I, B, 8H)
        hidden = inputs.new_empty(2, length, batch, size)
        cells = torch.empty_like(hidden, dtype=torch.float32)
        step_forward = FORWARD.launcher(_forward_step, dtype, batch, size, 2)
        for step in range(length):
            step_forward(gates, own.weights, hidden, cells, step, length, batch, size)
        ctx.save_for_backward(inputs, hidden, cells, gates, weight, own.transposed)
        ctx.dtype = values.dtype
        states = inputs.new_empty(batch, length, size)
        _sum_directions[(length, batch)](
            hidden, states, size, SIZE=triton.next_power_of_2(size), num_warps=1
        )
        return states, hidden[0, -1] + hidden[1, 0], cells[0, -1] + cells[1, 0]

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, d_states: Tensor, d_last: Tensor, d_last_cell: Tensor
    ) -> tuple[Tensor | None, ...]:
        """All steps, from the last to the first; then the gradients of the weights."""
        inputs, hidden, cells, gates, weight, own = ctx.saved_tensors
        (_, length, batch, size), dtype = hidden.shape, inputs.dtype
        d_states, d_last = d_states.contiguous(), d_last.contiguous()
        d_cell = d_last_cell.expand(2, batch, size).contiguous()
        d_gates = torch.empty_like(gates)
        gradients = (d_gates, d_states, d_last, d_cell)
        step_backward = BACKWARD.launcher(_backward_step, dtype, batch, size, 2)
        for step in reversed(range(length)):
            step_backward(gates, own, cells, *gradients, step, length, batch, size)
        d_sums, (d_forward, d_backward) = d_gates.flatten(0, 1), d_gates.split(4 * size, -1)
        d_inputs = (d_sums @ weight[:, :-BIAS_COLUMNS]).view(length, batch, -1)
        both = dispatch.mm_in_float32(d_sums.t(), inputs.flatten(0, 1))  # (8H, D + BIAS_COLUMNS)
        d_weights = both.chunk(2)
        d_own = (
            dispatch.mm_in_float32(d_forward[1:].flatten(0, 1).t(), hidden[0, :-1].flatten(0, 1)),
            dispatch.mm_in_float32(d_backward[:-1].flatten(0, 1).t(), hidden[1, 1:].flatten(0, 1)),
        )
        return (
            None,
            batch_first(d_inputs, ctx.dtype),
            *(deinterleave(d_weight[:, :-BIAS_COLUMNS]) for d_weight in d_weights),
            *map(deinterleave, d_own),
            *(deinterleave(d_weight[:, -BIAS_COLUMNS]) for d_weight in (*d_weights, *d_weights)),
        )


@triton.jit
def _sum_directions(hidden, states, size, SIZE: tl.constexpr):
    """Sum the states of both directions of one row at one step, (2, I, B, H) -> (B, I, H)."""
    step, row = tl.program_id(0).to(tl.int64), tl.program_id(1)
    length, batch = tl.num_programs(0), tl.num_programs(1)
    units = tl.arange(0, SIZE)
    at = hidden + (step * batch + row) * size + units
    one = tl.load(at, mask=units < size, other=0.0).to(tl.float32)
    other = tl.load(at + length.to(tl.int64) * batch * size, mask=units < size, other=0.0)
    tl.store(states + (row * length + step) * size + units, one + other, mask=units < size)


@triton.jit(do_not_specialize=["step", "length", "batch"])
def _forward_step(
    gates,
    own,
    hidden,
    cells,
    step,
    length,
    batch,
    size,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    FLOAT32: tl.constexpr,
):
    """One step of both directions; `gates` already holds the part of the inputs."""
    direction = tl.program_id(2)
    position = (step + direction * (length - 1 - 2 * step)).to(tl.int64)
    before = position - 1 + 2 * direction
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    units = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    columns = tl.program_id(1) * 4 * BLOCK_N + tl.arange(0, 4 * BLOCK_N)
    sums = matmul_tile(
        hidden + (direction * length + before) * batch * size,
        size,
        own + direction * 4 * size * size,
        tl.minimum(rows, batch - 1),
        tl.minimum(columns, 4 * size - 1),
        size,
        step > 0,
        BLOCK_M,
        4 * BLOCK_N,
        BLOCK_K,
        FLOAT32,
    )
    mask = (rows < batch)[:, None] & (units < size)[None, :]
    gates_mask = (rows < batch)[:, None] & (columns < 4 * size)[None, :]
    offsets = rows[:, None] * size + units[None, :]
    gates_at = (
        gates + ((position * batch + rows) * 2 + direction)[:, None] * 4 * size + columns[None, :]
    )
    sums += tl.load(gates_at, mask=gates_mask, other=0.0).to(tl.float32)
    cell_before = cells + (direction * length + before) * batch * size + offsets
    cell = tl.load(cell_before, mask=mask & (step > 0), other=0.0)
    values, state, cell = cell_forward(sums, cell, BLOCK_M, BLOCK_N)
    offsets_now = (direction * length + position) * batch * size + offsets
    tl.store(hidden + offsets_now, state, mask=mask)
    tl.store(cells + offsets_now, cell, mask=mask)
    tl.store(gates_at, values, mask=gates_mask)


@triton.jit(do_not_specialize=["step", "length", "batch"])
def _backward_step(
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
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    FLOAT32: tl.constexpr,
):
    """One backward step of both directions; it needs the gates' gradients of the step after."""
    direction = tl.program_id(2)
    position = (step + direction * (length - 1 - 2 * step)).to(tl.int64)
    before, after = position - 1 + 2 * direction, position + 1 - 2 * direction
    last = step == length - 1
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    units = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    columns = tl.program_id(1) * 4 * BLOCK_N + tl.arange(0, 4 * BLOCK_N)
    mask = (rows < batch)[:, None] & (units < size)[None, :]
    gates_mask = (rows < batch)[:, None] & (columns < 4 * size)[None, :]
    offsets = rows[:, None] * size + units[None, :]
    d_hidden_at = (
        d_states + (rows.to(tl.int64) * length + position)[:, None] * size + units[None, :]
    )
    d_hidden = tl.load(d_hidden_at, mask=mask, other=0.0).to(tl.float32)
    d_hidden += tl.load(d_last + offsets, mask=mask & last, other=0.0)
    offsets_now = ((position * batch + rows) * 2 + direction)[:, None] * 4 * size + columns[None, :]
    values = tl.load(gates + offsets_now, mask=gates_mask, other=0.0)
    of_direction = cells + direction * length * batch * size + offsets
    cell = tl.load(of_direction + position * batch * size, mask=mask, other=0.0)
    cell_before = tl.load(of_direction + before * batch * size, mask=mask & (step > 0), other=0.0)
    d_cell_at = d_cells + direction * batch * size + offsets
    d_cell = tl.load(d_cell_at, mask=mask, other=0.0)
    d_hidden += matmul_tile(
        d_gates + (after * batch * 2 + direction) * 4 * size,
        8 * size,
        own + direction * 4 * size * size,
        tl.minimum(rows, batch - 1),
        tl.minimum(units, size - 1),
        4 * size,
        step < length - 1,
        BLOCK_M,
        BLOCK_N,
        BLOCK_K,
        FLOAT32,
    )
    d_sums, d_cell = cell_backward(values, cell_before, cell, d_hidden, d_cell, BLOCK_M, BLOCK_N)
    tl.store(d_gates + offsets_now, d_sums, mask=gates_mask)
    tl.store(d_cell_at, d_cell, mask=mask)
