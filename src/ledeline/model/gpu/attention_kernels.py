"""Attention of a decoder's step as kernels, forth and back: a program for each row of the batch.

A row is multiplied with its source's memory, as one of sixteen rows of which the others are 0: the
units that do products have nothing else to do meanwhile, and need no sums across threads.
"""

from ledeline.model.gpu.triton_language import tl, triton


@triton.jit
def row_size(length):
    """Of a row of scores, whole 16 bytes also in 16 bits."""
    return tl.cdiv(length, 8) * 8


@triton.jit
def one_row(at, inside, DEEP: tl.constexpr):
    """A row of values in a tile of sixteen, as products want it; the others are 0."""
    first = tl.arange(0, 16) == 0
    places = at + tl.zeros((16, 1), tl.int32) + tl.arange(0, DEEP)[None, :]
    return tl.load(places, mask=first[:, None] & inside[None, :], other=0.0)


@triton.jit
def scored(
    query, memory, row, length, size, PLACES: tl.constexpr, DEEP: tl.constexpr, EXACT: tl.constexpr
):
    """`query . m_i` at each place i of a source, (PLACES,)."""
    places, terms = tl.arange(0, PLACES), tl.arange(0, DEEP)
    at = memory + (row.to(tl.int64) * length + places)[None, :] * size + terms[:, None]
    sums = tl.zeros((16, PLACES), tl.float32)
    for k in range(0, size, DEEP):
        inside = terms < size - k
        left = one_row(query + k, inside, DEEP)
        right = tl.load(at + k, mask=inside[:, None] & (places < length)[None, :], other=0.0)
        sums = tl.dot(left, right, sums, input_precision="ieee" if EXACT else "tf32")
    return tl.sum(sums, 0)


@triton.jit
def weighed(
    weights,
    memory,
    out,
    row,
    length,
    size,
    PLACES: tl.constexpr,
    DEEP: tl.constexpr,
    EXACT: tl.constexpr,
):
    """`sum_i weight_i m_i`, to `out`."""
    places, terms = tl.arange(0, PLACES), tl.arange(0, DEEP)
    first = tl.arange(0, 16) == 0
    left = tl.where(first[:, None], weights[None, :], 0.0).to(memory.dtype.element_ty)
    at = memory + (row.to(tl.int64) * length + places)[:, None] * size + terms[None, :]
    for k in range(0, size, DEEP):
        inside = terms < size - k
        right = tl.load(at + k, mask=(places < length)[:, None] & inside[None, :], other=0.0)
        sums = tl.dot(left, right, input_precision="ieee" if EXACT else "tf32")
        tl.store(out + k + terms, tl.sum(sums, 0), mask=inside)


@triton.jit(do_not_specialize=["j", "length", "batch"])
def attend(
    inputs,
    keys,
    values,
    scores,
    logsums,
    context,
    j,
    length,
    batch,
    size,
    PLACES: tl.constexpr,
    DEEP: tl.constexpr,
    EXACT: tl.constexpr,
):
    """Attention of one row: its scores, the log of their sum, and the weighed values."""
    row = tl.program_id(0)
    step = j.to(tl.int64) * batch + row
    places = tl.arange(0, PLACES)
    query = inputs + (step + batch) * 2 * size + size
    score = scored(query, keys, row, length, size, PLACES, DEEP, EXACT)
    tl.store(scores + step * row_size(length) + places, score, mask=places < length)
    score = tl.where(places < length, score, -float("inf"))
    highest = tl.max(score, 0)
    weights = tl.exp(score - highest)
    total = tl.sum(weights, 0)
    tl.store(logsums + step, highest + tl.log(total))
    out = context + step * size
    weighed(weights / total, values, out, row, length, size, PLACES, DEEP, EXACT)


@triton.jit(do_not_specialize=["j", "length", "batch"])
def attend_back(
    d_sums,
    keys,
    values,
    scores,
    logsums,
    context,
    d_scores,
    d_query,
    j,
    length,
    batch,
    size,
    PLACES: tl.constexpr,
    ACROSS: tl.constexpr,
    DEEP: tl.constexpr,
    EXACT: tl.constexpr,
):
    """From what the weighed values are owed to the scores and the query."""
    row = tl.program_id(0)
    step = j.to(tl.int64) * batch + row
    places, units = tl.arange(0, PLACES), tl.arange(0, ACROSS)
    owed_at = d_sums + (step + batch) * size
    owed = tl.load(owed_at + units, mask=units < size, other=0.0).to(tl.float32)
    mean = tl.sum(owed * tl.load(context + step * size + units, mask=units < size, other=0.0), 0)
    score = tl.load(
        scores + step * row_size(length) + places, mask=places < length, other=-float("inf")
    )
    alpha = tl.exp(score - tl.load(logsums + step))
    d_alpha = scored(owed_at, values, row, length, size, PLACES, DEEP, EXACT)
    d_score = alpha * (d_alpha - mean)
    tl.store(d_scores + step * row_size(length) + places, d_score, mask=places < length)
    weighed(d_score, keys, d_query + row * size, row, length, size, PLACES, DEEP, EXACT)
