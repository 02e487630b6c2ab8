"""The kernels of `heads`: from logits to losses and to the logits' gradient.

`width` is V and its filling, a multiple of 64. A row is read from memory once, and again from the
cache. Exponentials are of differences to the row's largest logit, so that no size is too much.
"""

from ledeline.model.gpu.triton_language import tl, triton


@triton.jit
def _top_and_total(row, width, BLOCK: tl.constexpr):
    """The largest logit of a row, and the sum of exp(x - largest)."""
    columns = tl.arange(0, BLOCK)
    tops = tl.full((BLOCK,), float("-inf"), tl.float32)
    for start in range(0, width, BLOCK):
        inside = start + columns < width
        x = tl.load(row + start + columns, mask=inside, other=float("-inf"))
        tops = tl.maximum(tops, x.to(tl.float32))
    top = tl.max(tops, 0)
    totals = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, width, BLOCK):
        inside = start + columns < width
        x = tl.load(row + start + columns, mask=inside, other=float("-inf"))
        totals += tl.exp(x.to(tl.float32) - top)
    return top, tl.sum(totals, 0)


@triton.jit
def target_row(
    logits,  # (B J, width): x, then its gradient o - 1[y]
    targets,  # (B J,)
    losses,  # (B J,)
    width,
    GRADIENT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """A step: `-log o[y]`."""
    number = tl.program_id(0).to(tl.int64)
    row = logits + number * width
    target = tl.load(targets + number)
    own = tl.load(row + target).to(tl.float32)
    top, total = _top_and_total(row, width, BLOCK)
    tl.store(losses + number, top - own + tl.log(total))
    if GRADIENT:
        share = 1.0 / total
        for start in range(0, width, BLOCK):
            columns = start + tl.arange(0, BLOCK)
            x = tl.load(row + columns, mask=columns < width, other=float("-inf"))
            o = tl.exp(x.to(tl.float32) - top) * share
            gradient = tl.where(columns == target, o - 1.0, o)
            tl.store(row + columns, gradient.to(logits.dtype.element_ty), mask=columns < width)


@triton.jit
def source_row(
    logits,  # (B J, width)
    tops,  # (B J,): the largest logit
    shares,  # (B J,): such that q = exp(x - top) share
    width,
    BLOCK: tl.constexpr,
):
    """A step: what makes logits probabilities."""
    number = tl.program_id(0).to(tl.int64)
    top, total = _top_and_total(logits + number * width, width, BLOCK)
    tl.store(tops + number, top)
    tl.store(shares + number, 1.0 / total)


@triton.jit
def _probabilities(logits, tops, shares, rows, valid, columns, width):
    """The q of some steps and types; 0 where there are none."""
    top = tl.load(tops + rows, mask=valid, other=0.0)
    share = tl.load(shares + rows, mask=valid, other=0.0)
    places = rows[:, None] * width + columns[None, :]
    inside = valid[:, None] & (columns < width)[None, :]
    x = tl.load(logits + places, mask=inside, other=float("-inf"))
    return tl.exp(x.to(tl.float32) - top[:, None]) * share[:, None]


@triton.jit(do_not_specialize=["steps"])
def source_sum(
    logits,  # (B J, width)
    tops,
    shares,
    counts,  # (B, width): x~
    differences,  # (B, width): q~ - x~
    squares,  # (B, number of blocks): their part of ||q~ - x~||^2
    steps,
    width,
    STEPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """A block of types of a pair: over all steps, some at once."""
    pair, block = tl.program_id(0).to(tl.int64), tl.program_id(1)
    columns = block * BLOCK + tl.arange(0, BLOCK)
    sums = tl.zeros((STEPS, BLOCK), tl.float32)
    for start in range(0, steps, STEPS):
        step = start + tl.arange(0, STEPS)
        rows = pair * steps + step
        sums += _probabilities(logits, tops, shares, rows, step < steps, columns, width)
    inside = columns < width
    difference = tl.sum(sums, 0) - tl.load(counts + pair * width + columns, mask=inside, other=0.0)
    tl.store(differences + pair * width + columns, difference, mask=inside)
    square = tl.sum(difference * difference, 0)
    tl.store(squares + pair * tl.num_programs(1) + block, square)


@triton.jit(do_not_specialize=["steps"])
def source_gradient(
    logits,  # (B J, width): x, then its gradient q (d_q - sum of q d_q)
    tops,
    shares,
    differences,  # (B, width): d_q, but for the factor
    factor,  # 2 / C
    steps,
    width,
    STEPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Some steps of a pair, all types."""
    pair = tl.program_id(0).to(tl.int64)
    step = tl.program_id(1) * STEPS + tl.arange(0, STEPS)
    rows, valid = pair * steps + step, step < steps
    means = tl.zeros((STEPS, BLOCK), tl.float32)
    for start in range(0, width, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        q = _probabilities(logits, tops, shares, rows, valid, columns, width)
        d_q = tl.load(differences + pair * width + columns, mask=columns < width, other=0.0)
        means += q * d_q[None, :]
    mean = tl.sum(means, 1)
    for start in range(0, width, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        q = _probabilities(logits, tops, shares, rows, valid, columns, width)
        d_q = tl.load(differences + pair * width + columns, mask=columns < width, other=0.0)
        gradient = q * (d_q[None, :] - mean[:, None]) * factor
        places = rows[:, None] * width + columns[None, :]
        inside = valid[:, None] & (columns < width)[None, :]
        tl.store(logits + places, gradient.to(logits.dtype.element_ty), mask=inside)


@triton.jit
def scale(rows, factors, out, size, width, ACROSS: tl.constexpr):
    """A row times its factor; the factor itself in what columns `out` has more."""
    row, columns = tl.program_id(0).to(tl.int64), tl.arange(0, ACROSS)
    factor = tl.load(factors + row)
    values = tl.load(rows + row * size + columns, mask=columns < size, other=1.0).to(tl.float32)
    tl.store(out + row * width + columns, values * factor, mask=columns < width)
