"""Rank what a search found once more, by systems that read the headlines again."""

from collections.abc import Iterator, Sequence
from typing import Final

import torch

from ledeline.core.steps import Steps
from ledeline.data.dataset import Batch
from ledeline.model.pairs import Pairs
from ledeline.model.system import System
from ledeline.search.hypothesis import Hypothesis

# Source positions, or steps, of all headlines that are read together, at most.
_MAX_POSITIONS: Final = 2**9


class Rescorer:
    """Ranks hypotheses by their score and what systems add to it, see `System.rescore`.

    The hypotheses of a source are read without those of others, so that no other text changes
    their order.
    """

    def __init__(self, systems: Sequence[System], num_systems: int) -> None:
        self._systems = [one for one in systems if one.rescores]
        self._num_systems = num_systems  # of an ensemble; those that do not rescore add 0

    def ranked(self, source: Sequence[int], found: Sequence[Hypothesis]) -> Steps[list[Hypothesis]]:
        """The hypotheses of a source, the best first; equals stay as they are."""
        if len(found) < 2:
            return list(found)
        totals = []
        for some in _batches(len(source), found):
            added = torch.zeros(len(some), dtype=torch.float64)
            for system in self._systems:
                added += _rescore(system, source, some)
                yield
            totals += (added / self._num_systems).tolist()
        totals = [one.score + more for one, more in zip(found, totals, strict=True)]
        order = sorted(range(len(found)), key=lambda number: -totals[number])
        return [found[number] for number in order]


@torch.inference_mode()
def _rescore(system: System, source: Sequence[int], some: Sequence[Hypothesis]) -> torch.Tensor:
    """What a system adds to the score of each hypothesis. (N,), on the CPU."""
    batch = Batch.of([(source, one.ids) for one in some])
    steps, width = batch.headline_lengths + 1, batch.headlines.shape[1] + 1
    added = system.rescore(Pairs.of(batch, steps, width, system.device))
    return added.double().cpu()


def _batches(length: int, found: Sequence[Hypothesis]) -> Iterator[Sequence[Hypothesis]]:
    """Consecutive hypotheses of a source of this length, so few that reading them is short."""
    longest = max(length, *(len(one.ids) + 1 for one in found))
    size = max(1, _MAX_POSITIONS // longest)
    for start in range(0, len(found), size):
        yield found[start : start + size]
