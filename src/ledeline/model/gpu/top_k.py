"""The best candidates of each source, selected in the same kernel as the softmax.

The definition is `ledeline.search.top_k.select_top_k`. One program has all hypotheses of a source.
For each hypothesis it computes log-probabilities block by block, in registers, and lets the best
candidate replace the worst of the k so far until none is better. So log-probabilities are never
written to memory, and a hypothesis whose best candidate cannot be among the k costs only its
softmax.
"""

import torch
from torch import Tensor

from ledeline.model.gpu.triton_language import tl, triton

_MIN_RANKS = 16  # no kernel is compiled for fewer, as beams get smaller during a search
_COLUMNS = 2048  # words at a time; more would need too many registers


def select_top_k(
    scores: Tensor,
    totals: Tensor,
    beam_sizes: Tensor,
    k: int,
    penalty: Tensor,
    repeats: Tensor | None = None,
    bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Scores (B, K, V), totals (B, K), beam sizes (B,) -> totals, parents and words, (B, k) each.

    To each log-probability is added `penalty` (V,), which is 0 or -inf. Words in `repeats`
    (B, K, N) are impossible, too. Scores are log-probabilities; with a bias (V,) they are logits,
    and the log-softmax of `scores + bias` is computed here. Slots beyond the beam size of a source,
    or without a possible candidate, have -inf and zeros.
    """
    sources, num_hypotheses, types = scores.shape
    best = totals.new_empty(sources, k)
    parents = torch.empty(sources, k, dtype=torch.long, device=totals.device)
    words = torch.empty_like(parents)
    _select[(sources,)](
        scores.contiguous(),
        totals.contiguous(),
        beam_sizes,
        penalty,
        None if repeats is None else repeats.contiguous(),
        bias,
        best,
        parents,
        words,
        num_hypotheses,
        types,
        0 if repeats is None else repeats.shape[-1],
        k,
        COLUMNS=min(_COLUMNS, triton.next_power_of_2(types)),
        RANKS=max(_MIN_RANKS, triton.next_power_of_2(k)),
        num_warps=4,
    )
    return best, parents, words


@triton.jit(do_not_specialize=["num_hypotheses", "num_repeats", "k"])
def _select(
    scores,
    totals,
    beam_sizes,
    penalty,
    repeats,
    bias,
    best,
    parents,
    words,
    num_hypotheses,
    types,
    num_repeats,
    k,
    COLUMNS: tl.constexpr,
    RANKS: tl.constexpr,
):
    """The k best are unordered until the end; ties are broken by the flat index."""
    source = tl.program_id(0).to(tl.int64)
    slots = tl.arange(0, RANKS)
    beam_size = tl.minimum(tl.load(beam_sizes + source).to(tl.int32), k)
    in_beam = slots < beam_size
    # A slot outside the beam is never the worst; an empty one is worse than anything.
    values = tl.where(in_beam, float("-inf"), float("inf"))
    flat = slots + num_hypotheses * types
    for hypothesis in range(num_hypotheses):
        row = source * num_hypotheses + hypothesis
        total = tl.load(totals + row)
        if total > float("-inf"):
            row_at = scores + row * types
            worst = tl.min(values)
            highest, log_sum = 0.0, 0.0
            if bias is not None:
                highest, log_sum = _softmax(row_at, bias, types, COLUMNS)
            upper_bound = total - log_sum  # of its best candidate
            if (bias is None) | (upper_bound > worst):
                for start in range(0, types, COLUMNS):
                    columns = start + tl.arange(0, COLUMNS)
                    logs = _biased(row_at, bias, columns, types) - highest - log_sum
                    logs += tl.load(penalty + columns, mask=columns < types, other=float("-inf"))
                    if repeats is not None:
                        for number in range(num_repeats):
                            repeat = tl.load(repeats + row * num_repeats + number)
                            logs = tl.where(columns == repeat, float("-inf"), logs)
                    logs += total
                    candidate = tl.max(logs)
                    while candidate > worst:
                        word = tl.min(tl.where(logs == candidate, columns, types))
                        # Of equal ones the last is replaced.
                        last = tl.max(tl.where(values == worst, flat, -1))
                        replaced = (values == worst) & (flat == last)
                        values = tl.where(replaced, candidate, values)
                        flat = tl.where(replaced, hypothesis * types + word, flat)
                        logs = tl.where(columns == word, float("-inf"), logs)
                        worst, candidate = tl.min(values), tl.max(logs)
    better = (values[:, None] > values[None, :]) | (
        (values[:, None] == values[None, :]) & (flat[:, None] < flat[None, :])
    )
    rank = tl.sum((better & in_beam[:, None]).to(tl.int32), 0)
    rank = tl.where(in_beam, rank, slots)  # slots outside the beam come last
    is_possible = in_beam & (values > float("-inf"))
    at = source * k + rank
    tl.store(best + at, tl.where(is_possible, values, float("-inf")), mask=slots < k)
    flat = tl.where(is_possible, flat, 0)
    tl.store(parents + at, (flat // types).to(tl.int64), mask=slots < k)
    tl.store(words + at, (flat % types).to(tl.int64), mask=slots < k)


@triton.jit
def _softmax(row_at, bias, types, COLUMNS: tl.constexpr):
    """The highest score of a row, and the log of the sum of exp(score - highest)."""
    columns = tl.arange(0, COLUMNS)
    maxima = _biased(row_at, bias, columns, types)
    for start in range(COLUMNS, types, COLUMNS):
        maxima = tl.maximum(maxima, _biased(row_at, bias, start + columns, types))
    highest = tl.max(maxima)
    sums = tl.zeros((COLUMNS,), tl.float32)
    for start in range(0, types, COLUMNS):
        sums += tl.exp(_biased(row_at, bias, start + columns, types) - highest)
    return highest, tl.log(tl.sum(sums))


@triton.jit
def _biased(row_at, bias, columns, types):
    """The scores of a row at some columns, with the bias; -inf beyond the last."""
    inside = columns < types
    scores = tl.load(row_at + columns, mask=inside, other=float("-inf")).to(tl.float32)
    if bias is not None:
        scores += tl.load(bias + columns, mask=inside, other=0.0)
    return scores
