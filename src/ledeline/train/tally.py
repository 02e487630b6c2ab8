"""The losses of the steps since the last report, kept where they were computed until asked for."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ledeline.model.seq2seq import Losses
from ledeline.train.processes import World


@dataclass(frozen=True)
class Means:
    """What some pairs cost on average."""

    num_pairs: int
    target: float  # l_trg of a pair
    heads: dict[str, float]  # of a pair; "source" is l_src of the SPM
    per_token: float  # of the headline and <eos>

    @property
    def figures(self) -> dict[str, float]:
        """The same by name, as reports have it."""
        return {"target": self.target, **self.heads, "per_token": self.per_token}


class Tally:
    """Sums over the pairs of this process; `means` is over all processes."""

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._num_pairs = 0
        self._num_tokens = 0

    def add(self, losses: Losses, num_tokens: int, num_pairs: int) -> None:
        """Add a batch with so many headline tokens, <eos> included; no pairs count as nothing."""
        parts = {"target": losses.target, "headline": losses.headline, **losses.heads}
        for name, part in parts.items():
            more = part.detach()[:num_pairs].sum(dtype=torch.float64)
            self._sums[name] = self._sums[name] + more if name in self._sums else more
        self._num_pairs += num_pairs
        self._num_tokens += num_tokens

    def means(self, world: World) -> Means:
        """The means over every process."""
        names = list(self._sums)
        local = [float(self._sums[name]) for name in names]
        *sums, num_pairs, num_tokens = world.sum([*local, self._num_pairs, self._num_tokens])
        by_name = {name: one / max(num_pairs, 1) for name, one in zip(names, sums, strict=True)}
        headline = by_name.pop("headline") * num_pairs / max(num_tokens, 1)
        return Means(int(num_pairs), by_name.pop("target"), by_name, headline)
