"""The kernels of `norm`: a residual connection, its dropout and the next norm, a row at a time.

A row is a place of a sentence, with all its values. Random numbers follow from a seed and from the
number of the value in the whole batch, so the backward pass draws them again instead of reading a
mask.
"""

from ledeline.model.gpu.triton_language import tl, triton


@triton.jit
def _factors(seed, row, columns, size, rate, rank, world_size, places):
    """What dropout multiplies a row with: 0, or 1 / (1 - rate)."""
    pair = (row // places) * world_size + rank  # in the batch of all processes
    offsets = (pair * places + row % places) * size + columns
    return tl.where(tl.rand(seed, offsets) < rate, 0.0, 1.0 / (1.0 - rate))


@triton.jit(do_not_specialize=["rank", "world_size", "places"])
def add_and_norm_forward(
    states,  # (N, size): x
    added,  # (N, size)
    seeds,  # (1,)
    weight,  # (size,)
    bias,  # (size,)
    sums,  # (N, size): x' = x + dropout(added)
    normed,  # (N, size)
    means,  # (N,)
    inverse_deviations,  # (N,)
    size,
    rate,
    epsilon,
    rank,
    world_size,
    places,  # rows of a pair
    DROPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """A row."""
    row, columns = tl.program_id(0), tl.arange(0, BLOCK)
    inside, start = columns < size, row.to(tl.int64) * size
    more = tl.load(added + start + columns, mask=inside, other=0.0).to(tl.float32)
    if DROPS:
        more *= _factors(tl.load(seeds), row, columns, size, rate, rank, world_size, places)
    x = tl.load(states + start + columns, mask=inside, other=0.0).to(tl.float32) + more
    tl.store(sums + start + columns, x, mask=inside)
    x = x.to(sums.dtype.element_ty).to(tl.float32)  # as it is stored, and read again
    mean = tl.sum(x, 0) / size
    centred = tl.where(inside, x - mean, 0.0)
    inverse = 1.0 / tl.sqrt(tl.sum(centred * centred, 0) / size + epsilon)
    gain = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    shift = tl.load(bias + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(normed + start + columns, centred * inverse * gain + shift, mask=inside)
    tl.store(means + row, mean)
    tl.store(inverse_deviations + row, inverse)


@triton.jit(do_not_specialize=["num_rows", "rank", "world_size", "places"])
def add_and_norm_backward(
    d_sums,  # (N, size), unless it is 0
    d_normed,  # (N, size)
    sums,  # (N, size)
    seeds,  # (1,)
    weight,  # (size,)
    means,  # (N,)
    inverse_deviations,  # (N,)
    d_states,  # (N, size)
    d_added,  # (N, size)
    d_weights,  # (programs, size): their parts of the gradient
    d_biases,  # (programs, size)
    num_rows,
    size,
    rate,
    rank,
    world_size,
    places,
    HAS_SUMS: tl.constexpr,
    DROPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Every so many-th row, from the number of the program on: sums have one order."""
    program, columns = tl.program_id(0), tl.arange(0, BLOCK)
    inside = columns < size
    gain = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    d_weight = tl.zeros((BLOCK,), tl.float32)
    d_bias = tl.zeros((BLOCK,), tl.float32)
    for turn in range(0, tl.cdiv(num_rows - program, tl.num_programs(0))):
        row = program + turn * tl.num_programs(0)
        start = row.to(tl.int64) * size
        mean, inverse = tl.load(means + row), tl.load(inverse_deviations + row)
        x = tl.load(sums + start + columns, mask=inside, other=0.0).to(tl.float32)
        above = tl.load(d_normed + start + columns, mask=inside, other=0.0).to(tl.float32)
        standard = tl.where(inside, (x - mean) * inverse, 0.0)
        d_weight += above * standard
        d_bias += above
        scaled = above * gain
        along = tl.sum(scaled * standard, 0) / size
        d_x = (scaled - tl.sum(scaled, 0) / size - standard * along) * inverse
        if HAS_SUMS:
            d_x += tl.load(d_sums + start + columns, mask=inside, other=0.0).to(tl.float32)
        tl.store(d_states + start + columns, d_x, mask=inside)
        if DROPS:
            d_x *= _factors(tl.load(seeds), row, columns, size, rate, rank, world_size, places)
        tl.store(d_added + start + columns, d_x, mask=inside)
    tl.store(d_weights + program * size + columns, d_weight, mask=inside)
    tl.store(d_biases + program * size + columns, d_bias, mask=inside)
