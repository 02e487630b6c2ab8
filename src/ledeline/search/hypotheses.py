"""Finished hypotheses, read from what was kept at each step once all steps are done.

Legend: B sources, J steps, K places.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ledeline.data.dataset import Ids
from ledeline.text.subwords import EOS

_Floats: TypeAlias = npt.NDArray[np.floating[Any]]


class Hypothesis(NamedTuple):
    """A headline that a search came to."""

    ids: tuple[int, ...]  # without <eos>
    cost: float  # -log p of all of it, <eos> counted
    truncated: bool = False  # the limit came before its end; <eos> is not in the cost

    @property
    def score(self) -> float:
        """Mean log-probability; what headlines of different length are compared by."""
        return -self.cost / max(1, len(self.ids) + (not self.truncated))


class TopK(NamedTuple):
    """The candidates that got a place at a step. All (B, K)."""

    totals: Tensor  # log p so far; -inf where a place is empty
    parents: Tensor  # the place of the hypothesis before
    words: Tensor


class Step(NamedTuple):
    """A step of the sources that were under way."""

    rows: Ids  # (B,): which source each is
    kept: TopK


def read_hypotheses(steps: Sequence[Step], limits: Ids, n_best: int) -> list[list[Hypothesis]]:
    """The n-best list of each source; limits (B,) are steps of the sources."""
    kept = _together(steps, len(limits))
    finished = (kept.words == EOS) & (kept.totals > -np.inf)
    sources, lengths, places = finished.nonzero()  # in the order in which they finished
    scores = kept.totals[finished].astype(np.float64) / (lengths + 1)
    ranked = np.lexsort((-scores, sources))  # stable: ties stay as they finished
    starts = np.searchsorted(sources, np.arange(len(limits)))
    given = ranked[np.arange(len(ranked)) - starts[sources] < n_best]
    lists: list[list[Hypothesis]] = [[] for _ in limits]
    _give(lists, kept, sources[given], lengths[given], places[given], truncated=False)
    without = np.flatnonzero(~finished.any((1, 2)) & (limits <= kept.words.shape[1]))
    last = kept.totals[without, limits[without] - 1] > -np.inf  # (B, K)
    has_some = last.any(1)
    without, first = without[has_some], last[has_some].argmax(1)
    _give(lists, kept, without, limits[without] - 1, first, truncated=True)
    return lists


class _All(NamedTuple):
    """All steps of all sources, (B, J, K) each."""

    totals: _Floats
    parents: npt.NDArray[np.int32]
    words: npt.NDArray[np.int32]


def _together(steps: Sequence[Step], num_sources: int) -> _All:
    shape = num_sources, len(steps), max(step.kept.words.shape[1] for step in steps)
    kind = torch.empty(0, dtype=steps[0].kept.totals.dtype).numpy().dtype
    parents, words = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    every = _All(np.full(shape, -np.inf, kind), parents, words)
    start = 0
    for _, group in groupby(steps, lambda step: (id(step.rows), step.kept.words.shape)):
        some = list(group)
        rows, stop = some[0].rows, start + len(some)
        for all_, each in zip(every, zip(*(step.kept for step in some), strict=True), strict=True):
            values = torch.stack(each, 1)
            small = values if values.is_floating_point() else values.to(torch.int32)
            all_[rows, start:stop, : values.shape[2]] = small.cpu().numpy()
        start = stop
    return every


def _give(
    lists: list[list[Hypothesis]],
    kept: _All,
    sources: Ids,
    steps: Ids,
    places: Ids,
    *,
    truncated: bool,
) -> None:
    """Append to the lists the headlines whose last words were kept at these steps and places."""
    costs = (-kept.totals[sources, steps, places]).tolist()
    ids = np.zeros((len(sources), int(steps.max(initial=-1)) + 1), np.int64)
    for j in range(ids.shape[1] - 1, -1, -1):
        there = np.flatnonzero(steps >= j)
        at = sources[there], j, places[there]
        ids[there, j] = kept.words[at]
        places[there] = kept.parents[at]
    lengths = (steps + truncated).tolist()  # <eos> is no word
    rows = zip(sources.tolist(), ids.tolist(), lengths, costs, strict=True)
    for source, row, length, cost in rows:
        lists[source].append(Hypothesis(tuple(row[:length]), cost, truncated))
