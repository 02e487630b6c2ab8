"""The parts of a decoder's step as kernels, forth and back; `decoder` says how they go together.

Each works on step j of buffers with all steps. B rows in a batch, H values in a state.
"""

from ledeline.model.gpu.cell import cell_backward, cell_forward, product, tanh
from ledeline.model.gpu.triton_language import tl, triton

# --- forth ------------------------------------------------------------------------------------


@triton.jit(do_not_specialize=["j", "steps", "batch"])
def layer_forward(
    inputs,
    weight,
    gates,
    cells,
    bias,
    above,
    factor,
    j,
    steps,
    batch,
    size,
    TALL: tl.constexpr,
    WIDE: tl.constexpr,
    DEEP: tl.constexpr,
    EXACT: tl.constexpr,
):
    """A layer's gates and cell; without a bias, `gates` has its part of the sums.

    The state goes to the layer's own input of the next step and, times the factor, to the layer
    above.
    """
    step = j.to(tl.int64) * batch
    rows = tl.program_id(0) * TALL + tl.arange(0, TALL)
    units = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    columns = tl.program_id(1) * 4 * WIDE + tl.arange(0, 4 * WIDE)
    mask = (rows < batch)[:, None] & (units < size)[None, :]
    wide_mask = (rows < batch)[:, None] & (columns < 4 * size)[None, :]
    gates_at = gates + (step + rows)[:, None] * 4 * size + columns[None, :]
    if bias is None:
        brought = tl.load(gates_at, mask=wide_mask, other=0.0)
    else:
        brought = tl.load(bias + columns, mask=columns < 4 * size, other=0.0)[None, :]
    cell_at = cells + (step + rows)[:, None] * size + units[None, :]
    cell = tl.load(cell_at, mask=mask, other=0.0)
    if factor is not None:
        factor_at = factor + (rows.to(tl.int64) * steps + j)[:, None] * size + units[None, :]
        scale = tl.load(factor_at, mask=mask, other=0.0).to(tl.float32)
    sums = brought.to(tl.float32) + product(
        inputs + step * 2 * size,
        2 * size,
        weight,
        tl.minimum(rows, batch - 1),
        tl.minimum(columns, 4 * size - 1),
        2 * size,
        True,
        TALL,
        4 * WIDE,
        DEEP,
        EXACT,
    )
    values, state, cell = cell_forward(sums, cell, TALL, WIDE)
    own_at = inputs + (step + batch + rows)[:, None] * 2 * size + size + units[None, :]
    tl.store(own_at, state, mask=mask)
    if above is not None:
        if factor is not None:
            state *= scale
        tl.store(above + (step + rows)[:, None] * 2 * size + units[None, :], state, mask=mask)
    tl.store(cell_at + batch * size, cell, mask=mask)
    tl.store(gates_at, values, mask=wide_mask)


@triton.jit(do_not_specialize=["j", "steps", "batch"])
def mix(
    inputs,
    weight,
    context,
    first_inputs,
    z,
    j,
    steps,
    batch,
    size,
    TALL: tl.constexpr,
    WIDE: tl.constexpr,
    DEEP: tl.constexpr,
    EXACT: tl.constexpr,
):
    """`z_j`, for those who asked for it, and as input of the next step."""
    step = j.to(tl.int64) * batch
    rows = tl.program_id(0) * TALL + tl.arange(0, TALL)
    units = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    mask = (rows < batch)[:, None] & (units < size)[None, :]
    context_at = context + (step + rows)[:, None] * size + units[None, :]
    sums = tl.load(context_at, mask=mask, other=0.0)
    sums += product(
        inputs + (step + batch) * 2 * size + size,
        2 * size,
        weight,
        tl.minimum(rows, batch - 1),
        tl.minimum(units, size - 1),
        size,
        True,
        TALL,
        WIDE,
        DEEP,
        EXACT,
    )
    attentional = tanh(sums)
    tl.store(
        z + (rows.to(tl.int64) * steps + j)[:, None] * size + units[None, :], attentional, mask=mask
    )
    next_at = first_inputs + (step + batch + rows)[:, None] * 2 * size + units[None, :]
    tl.store(next_at, attentional, mask=mask)


# --- back -------------------------------------------------------------------------------------


@triton.jit
def load_cell(d_own, gates, cells, d_cells, step, places, at, mask, wide_mask, batch, size):
    """What it takes to go back through the cell of a layer."""
    values = tl.load(gates + at, mask=wide_mask, other=0.0)
    before = tl.load(cells + step * size + places, mask=mask, other=0.0)
    cell = tl.load(cells + (step + batch) * size + places, mask=mask, other=0.0)
    d_cell = tl.load(d_cells + places, mask=mask, other=0.0)
    owed = tl.load(d_own + places, mask=mask, other=0.0)
    return values, before, cell, d_cell, owed


@triton.jit
def through_weight(
    d_gates,
    weight,
    step,
    half,
    rows,
    units,
    batch,
    size,
    TALL: tl.constexpr,
    WIDE: tl.constexpr,
    DEEP: tl.constexpr,
    EXACT: tl.constexpr,
):
    """From a layer's gates to one half of its input: 0 is what came from below, 1 its own state."""
    return product(
        d_gates + step * 4 * size,
        4 * size,
        weight + half * 4 * size * size,
        tl.minimum(rows, batch - 1),
        tl.minimum(units, size - 1),
        4 * size,
        True,
        TALL,
        WIDE,
        DEEP,
        EXACT,
    )


@triton.jit(do_not_specialize=["j", "batch"])
def mix_back(
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
    TALL: tl.constexpr,
    WIDE: tl.constexpr,
    DEEP: tl.constexpr,
    EXACT: tl.constexpr,
):
    """Through W_z, and through the cell of the top layer."""
    step = j.to(tl.int64) * batch
    rows = tl.program_id(0) * TALL + tl.arange(0, TALL)
    units = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    columns = tl.program_id(1) * 4 * WIDE + tl.arange(0, 4 * WIDE)
    mask = (rows < batch)[:, None] & (units < size)[None, :]
    wide_mask = (rows < batch)[:, None] & (columns < 4 * size)[None, :]
    places = rows[:, None] * size + units[None, :]
    at = (step + rows)[:, None] * 4 * size + columns[None, :]
    values, before, cell, d_cell, owed = load_cell(
        d_own, gates, cells, d_cells, step, places, at, mask, wide_mask, batch, size
    )
    owed += tl.load(d_query + places, mask=mask, other=0.0)
    d_hidden = owed + product(
        d_sums + (step + batch) * size,
        size,
        weight,
        tl.minimum(rows, batch - 1),
        tl.minimum(units, size - 1),
        size,
        True,
        TALL,
        WIDE,
        DEEP,
        EXACT,
    )
    d_values, d_cell = cell_backward(values, before, cell, d_hidden, d_cell, TALL, WIDE)
    tl.store(d_gates + at, d_values, mask=wide_mask)
    tl.store(d_cells + places, d_cell, mask=mask)


@triton.jit(do_not_specialize=["j", "steps", "batch"])
def layer_back(
    d_gates,
    weight,
    d_own,
    factor,
    d_own_below,
    gates_below,
    cells_below,
    d_gates_below,
    d_cells_below,
    j,
    steps,
    batch,
    size,
    TALL: tl.constexpr,
    WIDE: tl.constexpr,
    DEEP: tl.constexpr,
    EXACT: tl.constexpr,
):
    """Through a layer's weight: half the tiles on to the cell below, half to its step before."""
    step = j.to(tl.int64) * batch
    rows = tl.program_id(0) * TALL + tl.arange(0, TALL)
    tiles = tl.num_programs(1) // 2
    half = tl.program_id(1) // tiles
    units = (tl.program_id(1) % tiles) * WIDE + tl.arange(0, WIDE)
    columns = (tl.program_id(1) % tiles) * 4 * WIDE + tl.arange(0, 4 * WIDE)
    mask = (rows < batch)[:, None] & (units < size)[None, :]
    to_below = mask & (half == 0)
    wide_mask = (rows < batch)[:, None] & (columns < 4 * size)[None, :] & (half == 0)
    places = rows[:, None] * size + units[None, :]
    at = (step + rows)[:, None] * 4 * size + columns[None, :]
    values, before, cell, d_cell, owed = load_cell(
        d_own_below,
        gates_below,
        cells_below,
        d_cells_below,
        step,
        places,
        at,
        to_below,
        wide_mask,
        batch,
        size,
    )
    if factor is not None:
        factor_at = factor + (rows.to(tl.int64) * steps + j)[:, None] * size + units[None, :]
        scale = tl.load(factor_at, mask=to_below, other=0.0).to(tl.float32)
    d_input = through_weight(
        d_gates, weight, step, half, rows, units, batch, size, TALL, WIDE, DEEP, EXACT
    )
    if half == 1:
        tl.store(d_own + places, d_input, mask=mask)
    else:
        if factor is not None:
            d_input *= scale
        owed += d_input
        d_values, d_cell = cell_backward(values, before, cell, owed, d_cell, TALL, WIDE)
        tl.store(d_gates_below + at, d_values, mask=wide_mask)
        tl.store(d_cells_below + places, d_cell, mask=mask)


@triton.jit(do_not_specialize=["j", "steps", "batch"])
def first_back(
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
    TALL: tl.constexpr,
    WIDE: tl.constexpr,
    DEEP: tl.constexpr,
    EXACT: tl.constexpr,
):
    """Through the weight of layer 1: half the tiles on to z of the step before, through its tanh.

    Before the first step there is no tanh, and `z_0` gets what it is owed.
    """
    step = j.to(tl.int64) * batch
    rows = tl.program_id(0) * TALL + tl.arange(0, TALL)
    tiles = tl.num_programs(1) // 2
    half = tl.program_id(1) // tiles
    units = (tl.program_id(1) % tiles) * WIDE + tl.arange(0, WIDE)
    mask = (rows < batch)[:, None] & (units < size)[None, :]
    later = mask & (half == 0) & (j > 0)
    d_z_at = d_z + (rows.to(tl.int64) * steps + j - 1)[:, None] * size + units[None, :]
    z_at = inputs + (step + rows)[:, None] * 2 * size + units[None, :]
    attentional = tl.load(z_at, mask=later, other=0.0).to(tl.float32)
    owed = tl.load(d_z_at, mask=later, other=0.0).to(tl.float32)
    d_input = through_weight(
        d_gates, weight, step, half, rows, units, batch, size, TALL, WIDE, DEEP, EXACT
    )
    if half == 1:
        tl.store(d_own + rows[:, None] * size + units[None, :], d_input, mask=mask)
    else:
        d_input = (owed + d_input) * (1 - attentional * attentional)
        tl.store(d_sums + (step + rows)[:, None] * size + units[None, :], d_input, mask=mask)
