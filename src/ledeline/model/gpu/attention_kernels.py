"""Attention of one decoder step, forward and backward: one program per row of the batch.

A row is multiplied with its source's memory as the first row of a tile of sixteen, whose others are
0. The tensor cores would be idle otherwise, and no sums across threads are needed.
"""

from ledeline.model.gpu.triton_language import tl, triton


@triton.jit
def padded_length(length):
    """Length of a row of scores in memory: whole 16 bytes, also with 16-bit values."""
    return tl.cdiv(length, 8) * 8


@triton.jit
def load_as_tile(at, inside, BLOCK_K: tl.constexpr):
    """A row of values as the first of sixteen rows, as `tl.dot` needs them; the rest is 0."""
    first = tl.arange(0, 16) == 0
    rows_at = at + tl.zeros((16, 1), tl.int32) + tl.arange(0, BLOCK_K)[None, :]
    return tl.load(rows_at, mask=first[:, None] & inside[None, :], other=0.0)


@triton.jit
def row_scores(
    query,
    memory,
    row,
    length,
    size,
    BLOCK_POSITIONS: tl.constexpr,
    BLOCK_K: tl.constexpr,
    FLOAT32: tl.constexpr,
):
    """`query . m_i` at each position i of a source, (BLOCK_POSITIONS,)."""
    positions, terms = tl.arange(0, BLOCK_POSITIONS), tl.arange(0, BLOCK_K)
    at = memory + (row.to(tl.int64) * length + positions)[None, :] * size + terms[:, None]
    sums = tl.zeros((16, BLOCK_POSITIONS), tl.float32)
    for k in range(0, size, BLOCK_K):
        inside = terms < size - k
        left = load_as_tile(query + k, inside, BLOCK_K)
        right = tl.load(at + k, mask=inside[:, None] & (positions < length)[None, :], other=0.0)
        sums = tl.dot(left, right, sums, input_precision="ieee" if FLOAT32 else "tf32")
    return tl.sum(sums, 0)


@triton.jit
def weighted_sum(
    weights,
    memory,
    out,
    row,
    length,
    size,
    BLOCK_POSITIONS: tl.constexpr,
    BLOCK_K: tl.constexpr,
    FLOAT32: tl.constexpr,
):
    """Write `sum_i weight_i m_i` to `out`."""
    positions, terms = tl.arange(0, BLOCK_POSITIONS), tl.arange(0, BLOCK_K)
    first = tl.arange(0, 16) == 0
    left = tl.where(first[:, None], weights[None, :], 0.0).to(memory.dtype.element_ty)
    at = memory + (row.to(tl.int64) * length + positions)[:, None] * size + terms[None, :]
    for k in range(0, size, BLOCK_K):
        inside = terms < size - k
        right = tl.load(at + k, mask=(positions < length)[:, None] & inside[None, :], other=0.0)
        sums = tl.dot(left, right, input_precision="ieee" if FLOAT32 else "tf32")
        tl.store(out + k + terms, tl.sum(sums, 0), mask=inside)


@triton.jit(do_not_specialize=["j", "length", "batch"])
def attention_forward(
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
    BLOCK_POSITIONS: tl.constexpr,
    BLOCK_K: tl.constexpr,
    FLOAT32: tl.constexpr,
):
    """Attention of one row: its scores, their log-sum-exp, and the weighted sum of the values."""
    row = tl.program_id(0)
    step = j.to(tl.int64) * batch + row
    positions = tl.arange(0, BLOCK_POSITIONS)
    query = inputs + (step + batch) * 2 * size + size
    score = row_scores(query, keys, row, length, size, BLOCK_POSITIONS, BLOCK_K, FLOAT32)
    tl.store(scores + step * padded_length(length) + positions, score, mask=positions < length)
    score = tl.where(positions < length, score, -float("inf"))
    highest = tl.max(score, 0)
    weights = tl.exp(score - highest)
    total = tl.sum(weights, 0)
    tl.store(logsums + step, highest + tl.log(total))
    out = context + step * size
    weighted_sum(weights / total, values, out, row, length, size, BLOCK_POSITIONS, BLOCK_K, FLOAT32)


@triton.jit(do_not_specialize=["j", "length", "batch"])
def attention_backward(
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
    BLOCK_POSITIONS: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    BLOCK_K: tl.constexpr,
    FLOAT32: tl.constexpr,
):
    """From the gradient of the weighted sum to the gradients of the scores and the query."""
    row = tl.program_id(0)
    step = j.to(tl.int64) * batch + row
    positions, units = tl.arange(0, BLOCK_POSITIONS), tl.arange(0, BLOCK_SIZE)
    d_context_at = d_sums + (step + batch) * size
    d_context = tl.load(d_context_at + units, mask=units < size, other=0.0).to(tl.float32)
    mean = tl.sum(
        d_context * tl.load(context + step * size + units, mask=units < size, other=0.0), 0
    )
    score = tl.load(
        scores + step * padded_length(length) + positions,
        mask=positions < length,
        other=-float("inf"),
    )
    alpha = tl.exp(score - tl.load(logsums + step))
    d_alpha = row_scores(d_context_at, values, row, length, size, BLOCK_POSITIONS, BLOCK_K, FLOAT32)
    d_score = alpha * (d_alpha - mean)
    tl.store(d_scores + step * padded_length(length) + positions, d_score, mask=positions < length)
    weighted_sum(
        d_score, keys, d_query + row * size, row, length, size, BLOCK_POSITIONS, BLOCK_K, FLOAT32
    )
