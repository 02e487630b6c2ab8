"""The kernels of `losses`: from logits to losses, and to the gradient of the logits.

`width` is V with padding, a multiple of 64. A row is read from memory once, and again from the
cache. The largest logit of a row is subtracted before exponentials, so that none overflows.
"""

from ledeline.model.gpu.triton_language import tl, triton


@triton.jit
def _maximum_and_total(row, width, BLOCK: tl.constexpr):
    """The largest logit of a row, and the sum of exp(x - largest)."""
    columns = tl.arange(0, BLOCK)
    maxima = tl.full((BLOCK,), float("-inf"), tl.float32)
    for start in range(0, width, BLOCK):
        inside = start + columns < width
        x = tl.load(row + start + columns, mask=inside, other=float("-inf"))
        maxima = tl.maximum(maxima, x.to(tl.float32))
    maximum = tl.max(maxima, 0)
    totals = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, width, BLOCK):
        inside = start + columns < width
        x = tl.load(row + start + columns, mask=inside, other=float("-inf"))
        totals += tl.exp(x.to(tl.float32) - maximum)
    return maximum, tl.sum(totals, 0)


@triton.jit
def _step_of(logits, targets, width, BLOCK: tl.constexpr):
    """A program's step: its number, row and target, the target's logit, and how to normalise."""
    number = tl.program_id(0).to(tl.int64)
    row = logits + number * width
    target = tl.load(targets + number)
    own = tl.load(row + target).to(tl.float32)
    maximum, total = _maximum_and_total(row, width, BLOCK)
    return number, row, target, own, maximum, total


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
    number, row, target, own, maximum, total = _step_of(logits, targets, width, BLOCK)
    tl.store(losses + number, maximum - own + tl.log(total))
    if GRADIENT:
        inverse_total = 1.0 / total
        for start in range(0, width, BLOCK):
            columns = start + tl.arange(0, BLOCK)
            x = tl.load(row + columns, mask=columns < width, other=float("-inf"))
            o = tl.exp(x.to(tl.float32) - maximum) * inverse_total
            gradient = tl.where(columns == target, o - 1.0, o)
            tl.store(row + columns, gradient.to(logits.dtype.element_ty), mask=columns < width)


@triton.jit
def smoothed_row(
    logits,  # (B J, width): x, then its gradient
    targets,  # (B J,)
    losses,  # (B J,): with smoothing
    plain,  # (B J,): without
    width,
    smoothing,
    num_types,  # over which the smoothed share is spread
    FIRST: tl.constexpr,  # the two types over which it is not
    SECOND: tl.constexpr,
    GRADIENT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """A step: `-(1 - s) log o[y] - s mean log o`; padding, at minus infinity, does not count."""
    number, row, target, own, maximum, total = _step_of(logits, targets, width, BLOCK)
    log_total = maximum + tl.log(total)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, width, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(row + columns, mask=columns < width, other=float("-inf")).to(tl.float32)
        counts = (x > float("-inf")) & (columns != FIRST) & (columns != SECOND)
        sums += tl.where(counts, x - log_total, 0.0)
    tl.store(plain + number, log_total - own)
    mean = tl.sum(sums, 0) / num_types
    tl.store(losses + number, (1.0 - smoothing) * (log_total - own) - smoothing * mean)
    if GRADIENT:
        spread = smoothing / num_types
        for start in range(0, width, BLOCK):
            columns = start + tl.arange(0, BLOCK)
            x = tl.load(row + columns, mask=columns < width, other=float("-inf")).to(tl.float32)
            counts = (x > float("-inf")) & (columns != FIRST) & (columns != SECOND)
            gradient = tl.exp(x - log_total) - tl.where(counts, spread, 0.0)
            gradient = tl.where(columns == target, gradient - (1.0 - smoothing), gradient)
            tl.store(row + columns, gradient.to(logits.dtype.element_ty), mask=columns < width)


@triton.jit
def source_row(
    logits,  # (B J, width)
    maxima,  # (B J,): the largest logit
    inverse_totals,  # (B J,): q = exp(x - maximum) * inverse_total
    width,
    BLOCK: tl.constexpr,
):
    """A step: the maximum and the inverse sum that turn logits into probabilities."""
    number = tl.program_id(0).to(tl.int64)
    maximum, total = _maximum_and_total(logits + number * width, width, BLOCK)
    tl.store(maxima + number, maximum)
    tl.store(inverse_totals + number, 1.0 / total)


@triton.jit
def _probabilities(logits, maxima, inverse_totals, rows, valid, columns, width):
    """The q of some steps and types; 0 where there are none."""
    maximum = tl.load(maxima + rows, mask=valid, other=0.0)
    inverse_total = tl.load(inverse_totals + rows, mask=valid, other=0.0)
    offsets = rows[:, None] * width + columns[None, :]
    inside = valid[:, None] & (columns < width)[None, :]
    x = tl.load(logits + offsets, mask=inside, other=float("-inf"))
    return tl.exp(x.to(tl.float32) - maximum[:, None]) * inverse_total[:, None]


@triton.jit(do_not_specialize=["steps"])
def source_sum(
    logits,  # (B J, width)
    maxima,
    inverse_totals,
    counts,  # (B, width): x~
    differences,  # (B, width): q~ - x~
    squares,  # (B, number of blocks): their part of ||q~ - x~||^2
    steps,
    width,
    STEPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """A block of types of a pair: the sum over all steps, several at a time."""
    pair, block = tl.program_id(0).to(tl.int64), tl.program_id(1)
    columns = block * BLOCK + tl.arange(0, BLOCK)
    sums = tl.zeros((STEPS, BLOCK), tl.float32)
    for start in range(0, steps, STEPS):
        step = start + tl.arange(0, STEPS)
        rows = pair * steps + step
        sums += _probabilities(logits, maxima, inverse_totals, rows, step < steps, columns, width)
    inside = columns < width
    difference = tl.sum(sums, 0) - tl.load(counts + pair * width + columns, mask=inside, other=0.0)
    tl.store(differences + pair * width + columns, difference, mask=inside)
    square = tl.sum(difference * difference, 0)
    tl.store(squares + pair * tl.num_programs(1) + block, square)


@triton.jit(do_not_specialize=["steps"])
def source_gradient(
    logits,  # (B J, width): x, then its gradient q (d_q - sum of q d_q)
    maxima,
    inverse_totals,
    differences,  # (B, width): d_q without the factor
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
        q = _probabilities(logits, maxima, inverse_totals, rows, valid, columns, width)
        d_q = tl.load(differences + pair * width + columns, mask=columns < width, other=0.0)
        means += q * d_q[None, :]
    mean = tl.sum(means, 1)
    for start in range(0, width, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        q = _probabilities(logits, maxima, inverse_totals, rows, valid, columns, width)
        d_q = tl.load(differences + pair * width + columns, mask=columns < width, other=0.0)
        gradient = q * (d_q[None, :] - mean[:, None]) * factor
        offsets = rows[:, None] * width + columns[None, :]
        inside = valid[:, None] & (columns < width)[None, :]
        tl.store(logits + offsets, gradient.to(logits.dtype.element_ty), mask=inside)


@triton.jit
def scale(rows, factors, out, size, width, BLOCK: tl.constexpr):
    """A row times its factor; further columns of `out` get the factor itself."""
    row, columns = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    factor = tl.load(factors + row)
    values = tl.load(rows + row * size + columns, mask=columns < size, other=1.0).to(tl.float32)
    tl.store(out + row * width + columns, values * factor, mask=columns < width)
