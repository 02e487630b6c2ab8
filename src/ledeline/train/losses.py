"""The losses of the steps since the last report, kept where they were computed until asked for."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ledeline.model.systems.encdec import EncDec, Losses
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


class LossAccumulator:
    """Sums over the pairs of this process; `means` is over all processes.

    The sums stay in one place on the device, so that a captured step can add to them.
    """

    def __init__(self, heads: Sequence[str], device: torch.device) -> None:
        self._heads = tuple(heads)
        self.sums = torch.zeros(2 + len(self._heads), dtype=torch.float64, device=device)
        self._num_pairs = self._num_tokens = 0

    @classmethod
    def of(cls, model: EncDec) -> "LossAccumulator":
        """For the losses of a model."""
        return cls([head.name for head in model.heads], model.device)

    def add(self, losses: Losses, present: Tensor | None = None) -> None:
        """Add the losses of a batch, or of those pairs where `present` (B,) is not 0 but 1."""
        parts = [losses.target, losses.headline, *(losses.heads[name] for name in self._heads)]
        rows = torch.stack([part.detach() for part in parts])  # (2 + heads, B)
        self.sums += (rows if present is None else rows * present).sum(1, dtype=torch.float64)

    def count(self, num_tokens: int, num_pairs: int) -> None:
        """Count what was added: headline tokens, <eos> included, and pairs."""
        self._num_pairs += num_pairs
        self._num_tokens += num_tokens

    def clear(self) -> None:
        """Begin anew."""
        self.sums.zero_()
        self._num_pairs = self._num_tokens = 0

    def means(self, world: World) -> Means:
        """The means over every process."""
        *sums, num_pairs, num_tokens = world.sum(
            [*self.sums.tolist(), self._num_pairs, self._num_tokens]
        )
        target, headline, *heads = (one / max(num_pairs, 1) for one in sums)
        per_token = headline * num_pairs / max(num_tokens, 1)
        by_name = dict(zip(self._heads, heads, strict=True))
        return Means(int(num_pairs), target, by_name, per_token)
