"""Hypotheses, read from what each step selected once all steps are done.

Legend: B sources, J steps, K slots of a beam.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ledeline.data.dataset import Ids
from ledeline.search.hypothesis import Hypothesis
from ledeline.text.subwords import EOS

_Floats: TypeAlias = npt.NDArray[np.floating[Any]]


class TopK(NamedTuple):
    """The best candidates of a step. All (B, K)."""

    totals: Tensor  # log p so far; -inf in an empty slot
    parents: Tensor  # slot of the hypothesis that was extended
    words: Tensor


class Step(NamedTuple):
    """What was selected at a step, for the sources that were not finished."""

    sources: Ids  # (B,): the number of each source
    selected: TopK


def read_hypotheses(
    steps: Sequence[Step],
    limits: Ids,
    n_best: int,
    ends: tuple[Ids, Ids, Ids] | None = None,
) -> list[list[Hypothesis]]:
    """The n-best list of each source; limits (B,) are the largest numbers of steps.

    With `ends`, the sources, steps and slots of some finished headlines, only these count.
    """
    selected = _gather(steps, len(limits))
    finished = (selected.words == EOS) & (selected.totals > -np.inf)
    if ends is not None:
        counted = np.zeros_like(finished)
        counted[ends] = True
        finished &= counted
    sources, lengths, slots = finished.nonzero()  # in the order in which they finished
    scores = selected.totals[finished].astype(np.float64) / (lengths + 1)
    ranked = np.lexsort((-scores, sources))  # stable: ties stay as they finished
    starts = np.searchsorted(sources, np.arange(len(limits)))
    best = ranked[np.arange(len(ranked)) - starts[sources] < n_best]
    lists: list[list[Hypothesis]] = [[] for _ in limits]
    some = _Ends(sources[best], lengths[best], slots[best], truncated=False)
    _append_hypotheses(lists, selected, some)
    unfinished = np.flatnonzero(~finished.any((1, 2)) & (limits <= selected.words.shape[1]))
    last = selected.totals[unfinished, limits[unfinished] - 1] > -np.inf  # (B, K)
    has_some = last.any(1)
    unfinished, first = unfinished[has_some], last[has_some].argmax(1)
    some = _Ends(unfinished, limits[unfinished] - 1, first, truncated=True)
    _append_hypotheses(lists, selected, some)
    return lists


class _Ends(NamedTuple):
    """Where hypotheses end."""

    sources: Ids
    steps: Ids
    slots: Ids
    truncated: bool


class _AllSteps(NamedTuple):
    """All steps of all sources, (B, J, K) each."""

    totals: _Floats
    parents: npt.NDArray[np.int32]
    words: npt.NDArray[np.int32]


def _gather(steps: Sequence[Step], num_sources: int) -> _AllSteps:
    shape = num_sources, len(steps), max(step.selected.words.shape[1] for step in steps)
    dtype = torch.empty(0, dtype=steps[0].selected.totals.dtype).numpy().dtype
    parents, words = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    all_steps = _AllSteps(np.full(shape, -np.inf, dtype), parents, words)
    start = 0
    for _, group in groupby(steps, lambda step: (id(step.sources), step.selected.words.shape)):
        same_shape = list(group)
        rows, stop = same_shape[0].sources, start + len(same_shape)
        for target, each in zip(
            all_steps, zip(*(step.selected for step in same_shape), strict=True), strict=True
        ):
            values = torch.stack(each, 1)
            compact = values if values.is_floating_point() else values.to(torch.int32)
            target[rows, start:stop, : values.shape[2]] = compact.cpu().numpy()
        start = stop
    return all_steps


def _append_hypotheses(lists: list[list[Hypothesis]], selected: _AllSteps, ends: _Ends) -> None:
    """Append the headlines whose last words were selected at these steps and slots."""
    sources, steps, slots, truncated = ends
    costs = (-selected.totals[sources, steps, slots]).tolist()
    shape = len(sources), int(steps.max(initial=-1)) + 1
    ids = np.zeros(shape, np.int64)
    for j in range(shape[1] - 1, -1, -1):
        active = np.flatnonzero(steps >= j)
        at = sources[active], j, slots[active]
        ids[active, j] = selected.words[at]
        slots[active] = selected.parents[at]
    lengths = (steps + truncated).tolist()  # without <eos>
    rows = zip(sources.tolist(), ids.tolist(), lengths, costs, strict=True)
    for source, own, length, cost in rows:
        lists[source].append(Hypothesis(tuple(own[:length]), cost, truncated))
