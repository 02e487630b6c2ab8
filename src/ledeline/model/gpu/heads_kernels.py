"""The kernels of `heads`: attention of one head in one pair, whole in a program.

Sentences are short, so all scores of a head fit next to the arithmetic: they are never written, and
the backward pass computes them again. Each program writes gradients that no other touches, so their
sums have one order.

Legend: Q queries, I places that are attended to, SIZE of a head.
"""

from ledeline.model.gpu.triton_language import tl, triton


@triton.jit
def _tile(at, first, stride, number, BLOCK: tl.constexpr, SIZE: tl.constexpr):
    """The rows of a head, `number` of them, and zeros below. (BLOCK, SIZE)."""
    rows, columns = tl.arange(0, BLOCK)[:, None], tl.arange(0, SIZE)[None, :]
    return tl.load(at + first + rows * stride + columns, mask=rows < number, other=0.0)


@triton.jit
def _store(at, first, stride, number, values, BLOCK: tl.constexpr, SIZE: tl.constexpr):
    """Write the rows of a head."""
    rows, columns = tl.arange(0, BLOCK)[:, None], tl.arange(0, SIZE)[None, :]
    tl.store(at + first + rows * stride + columns, values, mask=rows < number)


@triton.jit
def _weights(
    queries,
    keys,
    mask,  # (B, I), True at valid places
    pair,
    num_places,
    scale,
    MASKED: tl.constexpr,
    CAUSAL: tl.constexpr,
    BLOCK_Q: tl.constexpr,
    BLOCK_I: tl.constexpr,
):
    """`softmax_i(scale q . k_i)`, 0 at places that do not count. (BLOCK_Q, BLOCK_I)."""
    scores = tl.dot(queries, tl.trans(keys), input_precision="ieee") * scale
    places = tl.arange(0, BLOCK_I)
    counts = places < num_places
    if MASKED:
        counts &= tl.load(mask + pair * num_places + places, mask=counts, other=0) != 0
    counts = counts[None, :] & (tl.arange(0, BLOCK_Q)[:, None] >= 0)
    if CAUSAL:
        counts &= places[None, :] <= tl.arange(0, BLOCK_Q)[:, None]
    scores = tl.where(counts, scores, float("-inf"))
    powers = tl.exp(scores - tl.max(scores, 1)[:, None])
    return powers / tl.sum(powers, 1)[:, None]


@triton.jit(do_not_specialize=["num_queries", "num_places"])
def heads_forward(
    queries,  # (B, Q, ...): rows of `query_stride`
    keys,  # (B, I, ...): rows of `key_stride`
    values,  # as the keys
    mask,  # (B, I), unless all places are valid
    contexts,  # (B, Q, HEADS * SIZE)
    query_stride,
    key_stride,
    num_queries,
    num_places,
    scale,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    MASKED: tl.constexpr,
    CAUSAL: tl.constexpr,
    BLOCK_Q: tl.constexpr,
    BLOCK_I: tl.constexpr,
):
    """A head of a pair."""
    pair, head = (tl.program_id(0) // HEADS).to(tl.int64), tl.program_id(0) % HEADS
    own = pair * num_queries * query_stride + head * SIZE
    others = pair * num_places * key_stride + head * SIZE
    asked = _tile(queries, own, query_stride, num_queries, BLOCK_Q, SIZE)
    known = _tile(keys, others, key_stride, num_places, BLOCK_I, SIZE)
    weights = _weights(
        asked, known, mask, pair, num_places, scale, MASKED, CAUSAL, BLOCK_Q, BLOCK_I
    )
    mixed = _tile(values, others, key_stride, num_places, BLOCK_I, SIZE)
    context = tl.dot(weights.to(mixed.dtype), mixed, input_precision="ieee")
    whole = HEADS * SIZE
    start = pair * num_queries * whole + head * SIZE
    _store(contexts, start, whole, num_queries, context, BLOCK_Q, SIZE)


@triton.jit(do_not_specialize=["num_queries", "num_places"])
def heads_backward(
    d_contexts,  # (B, Q, HEADS * SIZE)
    queries,
    keys,
    values,
    mask,
    d_queries,  # rows of the strides of what they belong to
    d_keys,
    d_values,
    query_stride,
    key_stride,
    num_queries,
    num_places,
    scale,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    MASKED: tl.constexpr,
    CAUSAL: tl.constexpr,
    BLOCK_Q: tl.constexpr,
    BLOCK_I: tl.constexpr,
):
    """A head of a pair."""
    pair, head = (tl.program_id(0) // HEADS).to(tl.int64), tl.program_id(0) % HEADS
    own = pair * num_queries * query_stride + head * SIZE
    others = pair * num_places * key_stride + head * SIZE
    asked = _tile(queries, own, query_stride, num_queries, BLOCK_Q, SIZE)
    known = _tile(keys, others, key_stride, num_places, BLOCK_I, SIZE)
    weights = _weights(
        asked, known, mask, pair, num_places, scale, MASKED, CAUSAL, BLOCK_Q, BLOCK_I
    )
    whole = HEADS * SIZE
    start = pair * num_queries * whole + head * SIZE
    above = _tile(d_contexts, start, whole, num_queries, BLOCK_Q, SIZE)
    mixed = _tile(values, others, key_stride, num_places, BLOCK_I, SIZE)
    d_value = tl.dot(tl.trans(weights.to(above.dtype)), above, input_precision="ieee")
    _store(d_values, others, key_stride, num_places, d_value, BLOCK_I, SIZE)
    d_weights = tl.dot(above, tl.trans(mixed), input_precision="ieee")
    d_scores = weights * (d_weights - tl.sum(weights * d_weights, 1)[:, None]) * scale
    d_scores = d_scores.to(asked.dtype)
    d_query = tl.dot(d_scores, known, input_precision="ieee")
    _store(d_queries, own, query_stride, num_queries, d_query, BLOCK_Q, SIZE)
    d_key = tl.dot(tl.trans(d_scores), asked, input_precision="ieee")
    _store(d_keys, others, key_stride, num_places, d_key, BLOCK_I, SIZE)
