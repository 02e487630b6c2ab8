"""The best candidates of each source, chosen while the softmax is worked out.

The definition is `ledeline.search.top_k.select_top_k`. One program has all hypotheses of a source.
It takes them in turn, some words at a time, works out log-probabilities in its registers, and lets
the best replace the worst of those kept so far, until none is better. So log-probabilities are
never written, and a hypothesis whose likeliest word is not good enough costs no more than its
softmax.
"""

import torch
from torch import Tensor

from ledeline.model.gpu.triton_language import tl, triton

_FEWEST_RANKS = 16  # as the places grow fewer, kernels are not made anew for every power of two
_COLUMNS = 2048  # words at a time: with more, registers would leave room for few programs


def select_top_k(
    scores: Tensor,
    totals: Tensor,
    widths: Tensor,
    k: int,
    allowed: Tensor,
    repeats: Tensor | None = None,
    bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Scores (B, K, V), totals (B, K), places of each source (B,) -> totals, parents, words (B, k).

    To each log-probability is added `allowed` (V,), which is 0 or -inf; words in `repeats`
    (B, K, N) are impossible, too. With a bias (V,) the softmax of `scores + bias` is still to come.
    Places beyond those of a source, or for which nothing was possible, have -inf and zeros.
    """
    sources, places, types = scores.shape
    kept = totals.new_empty(sources, k)
    parents = torch.empty(sources, k, dtype=torch.long, device=totals.device)
    words = torch.empty_like(parents)
    _select[(sources,)](
        scores.contiguous(),
        totals.contiguous(),
        widths,
        allowed,
        None if repeats is None else repeats.contiguous(),
        bias,
        kept,
        parents,
        words,
        places,
        types,
        0 if repeats is None else repeats.shape[-1],
        k,
        COLUMNS=min(_COLUMNS, triton.next_power_of_2(types)),
        RANKS=max(_FEWEST_RANKS, triton.next_power_of_2(k)),
        num_warps=4,
    )
    return kept, parents, words


@triton.jit(do_not_specialize=["places", "num_repeats", "k"])
def _select(
    scores,
    totals,
    widths,
    allowed,
    repeats,
    bias,
    kept,
    parents,
    words,
    places,
    types,
    num_repeats,
    k,
    COLUMNS: tl.constexpr,
    RANKS: tl.constexpr,
):
    """Those kept lie in no order until the end; equal ones are told apart by their flat places."""
    source = tl.program_id(0).to(tl.int64)
    slots = tl.arange(0, RANKS)
    width = tl.minimum(tl.load(widths + source).to(tl.int32), k)
    is_place = slots < width
    # A slot that is no place is never the worst; an empty place is worse than anything.
    values = tl.where(is_place, float("-inf"), float("inf"))
    flat = slots + places * types
    for place in range(places):
        row = source * places + place
        total = tl.load(totals + row)
        if total > float("-inf"):
            row_at = scores + row * types
            worst = tl.min(values)
            highest, log_sum = 0.0, 0.0
            if bias is not None:
                highest, log_sum = _softmax(row_at, bias, types, COLUMNS)
            hope = total - log_sum  # of the likeliest word
            if (bias is None) | (hope > worst):
                for start in range(0, types, COLUMNS):
                    columns = start + tl.arange(0, COLUMNS)
                    logs = _biased(row_at, bias, columns, types) - highest - log_sum
                    logs += tl.load(allowed + columns, mask=columns < types, other=float("-inf"))
                    if repeats is not None:
                        for number in range(num_repeats):
                            repeat = tl.load(repeats + row * num_repeats + number)
                            logs = tl.where(columns == repeat, float("-inf"), logs)
                    logs += total
                    candidate = tl.max(logs)
                    while candidate > worst:
                        word = tl.min(tl.where(logs == candidate, columns, types))
                        # Of equal ones the last in rank goes.
                        last = tl.max(tl.where(values == worst, flat, -1))
                        goes = (values == worst) & (flat == last)
                        values = tl.where(goes, candidate, values)
                        flat = tl.where(goes, place * types + word, flat)
                        logs = tl.where(columns == word, float("-inf"), logs)
                        worst, candidate = tl.min(values), tl.max(logs)
    better = (values[:, None] > values[None, :]) | (
        (values[:, None] == values[None, :]) & (flat[:, None] < flat[None, :])
    )
    rank = tl.sum((better & is_place[:, None]).to(tl.int32), 0)
    rank = tl.where(is_place, rank, slots)  # what is no place has the ranks behind
    is_kept = is_place & (values > float("-inf"))
    at = source * k + rank
    tl.store(kept + at, tl.where(is_kept, values, float("-inf")), mask=slots < k)
    flat = tl.where(is_kept, flat, 0)
    tl.store(parents + at, (flat // types).to(tl.int64), mask=slots < k)
    tl.store(words + at, (flat % types).to(tl.int64), mask=slots < k)


@triton.jit
def _softmax(row_at, bias, types, COLUMNS: tl.constexpr):
    """The highest score of a row, and the log of the sum of e to what the others are below it."""
    columns = tl.arange(0, COLUMNS)
    tops = _biased(row_at, bias, columns, types)
    for start in range(COLUMNS, types, COLUMNS):
        tops = tl.maximum(tops, _biased(row_at, bias, start + columns, types))
    highest = tl.max(tops)
    sums = tl.zeros((COLUMNS,), tl.float32)
    for start in range(0, types, COLUMNS):
        sums += tl.exp(_biased(row_at, bias, start + columns, types) - highest)
    return highest, tl.log(tl.sum(sums))


@triton.jit
def _biased(row_at, bias, columns, types):
    """The scores of a row at some columns, with the bias; -inf behind the last."""
    inside = columns < types
    scores = tl.load(row_at + columns, mask=inside, other=float("-inf")).to(tl.float32)
    if bias is not None:
        scores += tl.load(bias + columns, mask=inside, other=0.0)
    return scores
