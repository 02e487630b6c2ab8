"""The kernels of a decoder step, forward and backward; `decoder` launches them.

Each works on step j of buffers that hold all steps. `batch` is B, `size` is H.
"""

from ledeline.model.gpu.cell import cell_backward, cell_forward, matmul_tile, tanh
from ledeline.model.gpu.triton_language import tl, triton

# --- forward pass -----------------------------------------------------------------------------


@triton.jit(do_not_specialize=["j", "steps", "batch"])
def layer_forward(
    inputs,
    weight,
    gates,
    cells,
    bias,
    above,
    dropout_mask,
    j,
    steps,
    batch,
    size,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    FLOAT32: tl.constexpr,
):
    """A layer's gates and cell; without a bias, `gates` already holds the words' part.

    The hidden state is written to the layer's own input of the next step and, times the dropout
    mask, to the input of the layer above.
    """
    step = j.to(tl.int64) * batch
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    units = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    columns = tl.program_id(1) * 4 * BLOCK_N + tl.arange(0, 4 * BLOCK_N)
    mask = (rows < batch)[:, None] & (units < size)[None, :]
    gates_mask = (rows < batch)[:, None] & (columns < 4 * size)[None, :]
    gates_at = gates + (step + rows)[:, None] * 4 * size + columns[None, :]
    if bias is None:
        addend = tl.load(gates_at, mask=gates_mask, other=0.0)
    else:
        addend = tl.load(bias + columns, mask=columns < 4 * size, other=0.0)[None, :]
    cell_at = cells + (step + rows)[:, None] * size + units[None, :]
    cell = tl.load(cell_at, mask=mask, other=0.0)
    if dropout_mask is not None:
        dropout_at = dropout_mask + (rows.to(tl.int64) * steps + j)[:, None] * size + units[None, :]
        scale = tl.load(dropout_at, mask=mask, other=0.0).to(tl.float32)
    sums = addend.to(tl.float32) + matmul_tile(
        inputs + step * 2 * size,
        2 * size,
        weight,
        tl.minimum(rows, batch - 1),
        tl.minimum(columns, 4 * size - 1),
        2 * size,
        True,
        BLOCK_M,
        4 * BLOCK_N,
        BLOCK_K,
        FLOAT32,
    )
    values, state, cell = cell_forward(sums, cell, BLOCK_M, BLOCK_N)
    own_at = inputs + (step + batch + rows)[:, None] * 2 * size + size + units[None, :]
    tl.store(own_at, state, mask=mask)
    if above is not None:
        if dropout_mask is not None:
            state *= scale
        tl.store(above + (step + rows)[:, None] * 2 * size + units[None, :], state, mask=mask)
    tl.store(cell_at + batch * size, cell, mask=mask)
    tl.store(gates_at, values, mask=gates_mask)


@triton.jit(do_not_specialize=["j", "steps", "batch"])
def mix_forward(
    inputs,
    weight,
    context,
    first_inputs,
    z,
    j,
    steps,
    batch,
    size,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    FLOAT32: tl.constexpr,
):
    """`z_j`, written to the result and to the input of the next step."""
    step = j.to(tl.int64) * batch
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    units = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows < batch)[:, None] & (units < size)[None, :]
    context_at = context + (step + rows)[:, None] * size + units[None, :]
    sums = tl.load(context_at, mask=mask, other=0.0)
    sums += matmul_tile(
        inputs + (step + batch) * 2 * size + size,
        2 * size,
        weight,
        tl.minimum(rows, batch - 1),
        tl.minimum(units, size - 1),
        size,
        True,
        BLOCK_M,
        BLOCK_N,
        BLOCK_K,
        FLOAT32,
    )
    attentional = tanh(sums)
    tl.store(
        z + (rows.to(tl.int64) * steps + j)[:, None] * size + units[None, :], attentional, mask=mask
    )
    next_at = first_inputs + (step + batch + rows)[:, None] * 2 * size + units[None, :]
    tl.store(next_at, attentional, mask=mask)


# --- backward pass ----------------------------------------------------------------------------


@triton.jit
def load_cell(
    d_own, gates, cells, d_cells, step, offsets, gates_offsets, mask, gates_mask, batch, size
):
    """Load what the backward pass through the cell of a layer needs."""
    values = tl.load(gates + gates_offsets, mask=gates_mask, other=0.0)
    before = tl.load(cells + step * size + offsets, mask=mask, other=0.0)
    cell = tl.load(cells + (step + batch) * size + offsets, mask=mask, other=0.0)
    d_cell = tl.load(d_cells + offsets, mask=mask, other=0.0)
    d_hidden = tl.load(d_own + offsets, mask=mask, other=0.0)
    return values, before, cell, d_cell, d_hidden


@triton.jit
def input_gradient(
    d_gates,
    weight,
    step,
    half,
    rows,
    units,
    batch,
    size,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    FLOAT32: tl.constexpr,
):
    """Gradient of one half of a layer's input: 0 is the input from below, 1 its own state."""
    return matmul_tile(
        d_gates + step * 4 * size,
        4 * size,
        weight + half * 4 * size * size,
        tl.minimum(rows, batch - 1),
        tl.minimum(units, size - 1),
        4 * size,
        True,
        BLOCK_M,
        BLOCK_N,
        BLOCK_K,
        FLOAT32,
    )


@triton.jit(do_not_specialize=["j", "batch"])
def mix_backward(
    d_sums,
    weight,
    d_query,
    d_own,
    gates,
    cells,
    d_gates,
    d_cells,
    j,
    batch,
    size,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    FLOAT32: tl.constexpr,
):
    """Backward through W_z, then through the cell of the top layer."""
    step = j.to(tl.int64) * batch
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    units = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    columns = tl.program_id(1) * 4 * BLOCK_N + tl.arange(0, 4 * BLOCK_N)
    mask = (rows < batch)[:, None] & (units < size)[None, :]
    gates_mask = (rows < batch)[:, None] & (columns < 4 * size)[None, :]
    offsets = rows[:, None] * size + units[None, :]
    gates_offsets = (step + rows)[:, None] * 4 * size + columns[None, :]
    values, before, cell, d_cell, d_hidden = load_cell(
        d_own, gates, cells, d_cells, step, offsets, gates_offsets, mask, gates_mask, batch, size
    )
    d_hidden += tl.load(d_query + offsets, mask=mask, other=0.0)
    d_hidden = d_hidden + matmul_tile(
        d_sums + (step + batch) * size,
        size,
        weight,
        tl.minimum(rows, batch - 1),
        tl.minimum(units, size - 1),
        size,
        True,
        BLOCK_M,
        BLOCK_N,
        BLOCK_K,
        FLOAT32,
    )
    d_values, d_cell = cell_backward(values, before, cell, d_hidden, d_cell, BLOCK_M, BLOCK_N)
    tl.store(d_gates + gates_offsets, d_values, mask=gates_mask)
    tl.store(d_cells + offsets, d_cell, mask=mask)


@triton.jit(do_not_specialize=["j", "steps", "batch"])
def layer_backward(
    d_gates,
    weight,
    d_own,
    dropout_mask,
    d_own_below,
    gates_below,
    cells_below,
    d_gates_below,
    d_cells_below,
    j,
    steps,
    batch,
    size,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    FLOAT32: tl.constexpr,
):
    """Backward through a layer's weight.

    Half of the tiles continue through the cell of the layer below; the others are the gradient of
    the layer's own state before the step.
    """
    step = j.to(tl.int64) * batch
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    tiles = tl.num_programs(1) // 2
    half = tl.program_id(1) // tiles
    units = (tl.program_id(1) % tiles) * BLOCK_N + tl.arange(0, BLOCK_N)
    columns = (tl.program_id(1) % tiles) * 4 * BLOCK_N + tl.arange(0, 4 * BLOCK_N)
    mask = (rows < batch)[:, None] & (units < size)[None, :]
    to_below = mask & (half == 0)
    gates_mask = (rows < batch)[:, None] & (columns < 4 * size)[None, :] & (half == 0)
    offsets = rows[:, None] * size + units[None, :]
    gates_offsets = (step + rows)[:, None] * 4 * size + columns[None, :]
    values, before, cell, d_cell, d_hidden = load_cell(
        d_own_below,
        gates_below,
        cells_below,
        d_cells_below,
        step,
        offsets,
        gates_offsets,
        to_below,
        gates_mask,
        batch,
        size,
    )
    if dropout_mask is not None:
        dropout_at = dropout_mask + (rows.to(tl.int64) * steps + j)[:, None] * size + units[None, :]
        scale = tl.load(dropout_at, mask=to_below, other=0.0).to(tl.float32)
    d_input = input_gradient(
        d_gates,
        weight,
        step,
        half,
        rows,
        units,
        batch,
        size,
        BLOCK_M,
        BLOCK_N,
        BLOCK_K,
        FLOAT32,
    )
    if half == 1:
        tl.store(d_own + offsets, d_input, mask=mask)
    else:
        if dropout_mask is not None:
            d_input *= scale
        d_hidden += d_input
        d_values, d_cell = cell_backward(values, before, cell, d_hidden, d_cell, BLOCK_M, BLOCK_N)
        tl.store(d_gates_below + gates_offsets, d_values, mask=gates_mask)
        tl.store(d_cells_below + offsets, d_cell, mask=mask)


@triton.jit(do_not_specialize=["j", "steps", "batch"])
def first_layer_backward(
    d_gates,
    weight,
    d_own,
    inputs,
    d_z,
    d_sums,
    j,
    steps,
    batch,
    size,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    FLOAT32: tl.constexpr,
):
    """Backward through the weight of layer 1.

    Half of the tiles continue to z of the step before, through its tanh; `z_0` has no tanh. The
    others are the gradient of the layer's own state before the step.
    """
    step = j.to(tl.int64) * batch
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    tiles = tl.num_programs(1) // 2
    half = tl.program_id(1) // tiles
    units = (tl.program_id(1) % tiles) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows < batch)[:, None] & (units < size)[None, :]
    has_z = mask & (half == 0) & (j > 0)
    d_z_at = d_z + (rows.to(tl.int64) * steps + j - 1)[:, None] * size + units[None, :]
    z_at = inputs + (step + rows)[:, None] * 2 * size + units[None, :]
    attentional = tl.load(z_at, mask=has_z, other=0.0).to(tl.float32)
    d_z_before = tl.load(d_z_at, mask=has_z, other=0.0).to(tl.float32)
    d_input = input_gradient(
        d_gates,
        weight,
        step,
        half,
        rows,
        units,
        batch,
        size,
        BLOCK_M,
        BLOCK_N,
        BLOCK_K,
        FLOAT32,
    )
    if half == 1:
        tl.store(d_own + rows[:, None] * size + units[None, :], d_input, mask=mask)
    else:
        d_input = (d_z_before + d_input) * (1 - attentional * attentional)
        tl.store(d_sums + (step + rows)[:, None] * size + units[None, :], d_input, mask=mask)
