"""Finished headlines that keep their places in the beam, as in SEASS (Zhou et al. 2017).

At each step they compete with the extensions of unfinished hypotheses. All are ranked by their mean
log-probability; that of a finished headline does not change any more. What is not among the K best
is gone. Legend: B sources, K places, k extensions.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ledeline.data.dataset import Ids
from ledeline.search.hypotheses import Step, TopK
from ledeline.text.subwords import EOS

_IMPOSSIBLE: Final = float("-inf")


class FinishedBeam(NamedTuple):
    """The finished headlines of each source, in the order in which they finished. All (B, K)."""

    scores: Tensor  # mean log p in float64; -inf in an empty place
    steps: Tensor  # the step that wrote <eos>, from 0
    slots: Tensor  # the slot that this step put them into

    @classmethod
    def empty(cls, num_sources: int, size: int, device: torch.device) -> "FinishedBeam":
        """Of sources that have none yet."""
        shape = num_sources, size
        scores = torch.full(shape, _IMPOSSIBLE, dtype=torch.float64, device=device)
        places = torch.zeros(shape, dtype=torch.long, device=device)
        return cls(scores, places, places)

    def compete(self, selected: TopK, step: int) -> tuple["FinishedBeam", TopK]:
        """The K best of these and of the extensions of a step, counted from 0.

        Of equal scores, those that finished before go first. Extensions that are not among the best
        become impossible.
        """
        size = self.scores.shape[1]
        new = selected.totals.double() / (step + 1)  # (B, k)
        scores = torch.cat([self.scores, new], 1)
        order = scores.sort(dim=1, descending=True, stable=True).indices
        is_best = torch.zeros_like(scores, dtype=torch.bool).scatter_(1, order[:, :size], True)
        totals = selected.totals.masked_fill(~is_best[:, size:], _IMPOSSIBLE)
        ended = torch.cat([torch.ones_like(is_best[:, :size]), selected.words == EOS], 1)
        scores = scores.masked_fill(~(is_best & ended), _IMPOSSIBLE)
        slots = torch.arange(new.shape[1], device=new.device).expand_as(new)
        both = FinishedBeam(
            scores,
            torch.cat([self.steps, torch.full_like(slots, step)], 1),
            torch.cat([self.slots, slots], 1),
        )
        order = (scores == _IMPOSSIBLE).byte().argsort(dim=1, stable=True)[:, :size]
        return both.gathered(order), selected._replace(totals=totals)

    def gathered(self, order: Tensor) -> "FinishedBeam":
        """The headlines at these places (B, K)."""
        return FinishedBeam(*(one.gather(1, order) for one in self))

    def moved(self, order: Tensor, step: int) -> "FinishedBeam":
        """The same, after the slots of a step were put into this order (B, k)."""
        now = order.argsort(1).gather(1, self.slots.clamp(max=order.shape[1] - 1))
        return self._replace(slots=torch.where(self.steps == step, now, self.slots))

    def kept(self, beams: Tensor) -> "FinishedBeam":
        """Those of these beams."""
        return FinishedBeam(*(one.index_select(0, beams) for one in self))


class Survivors(NamedTuple):
    """Where the headlines that are in the beam at the end finished; all of one length."""

    sources: Ids
    steps: Ids
    slots: Ids


def survivors(history: Sequence[Step], beams: Sequence[FinishedBeam]) -> Survivors:
    """The finished headlines in the last beam of each source."""
    last: dict[int, tuple[int, int]] = {}  # of each source, the beam and the row in it
    for number, step in enumerate(history):
        last |= {int(source): (number, row) for row, source in enumerate(step.sources)}
    wanted = {number for number, _ in last.values()}
    on_host = {number: [one.cpu().numpy() for one in beams[number]] for number in wanted}
    found: list[tuple[int, int, int]] = []
    for source, (number, row) in last.items():
        scores, steps, slots = (one[row] for one in on_host[number])
        there = scores > -np.inf
        found += zip([source] * int(there.sum()), steps[there], slots[there], strict=True)
    columns = np.array(found, np.int64).reshape(-1, 3).T
    return Survivors(*columns)
