"""The losses of the steps since the last report, summed up on the device until they are read."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ledeline.model.system import Losses, System
from ledeline.train.processes import World


@dataclass(frozen=True)
class MeanLosses:
    """The mean losses of some pairs."""

    num_pairs: int
    named: dict[str, float]  # of a pair: l_trg is "target", l_src of the SPM is "source"
    per_token: float  # of the headline and <eos>

    @property
    def metrics(self) -> dict[str, float]:
        """The same by name, as reports have it."""
        return {**self.named, "per_token": self.per_token}


class LossAccumulator:
    """Sums over the pairs of this process; `means` is over all processes.

    The sums stay in one place on the device, so that a captured step can add to them.
    """

    def __init__(self, names: Sequence[str], device: torch.device) -> None:
        self._names = tuple(names)
        self.sums = torch.zeros(1 + len(self._names), dtype=torch.float64, device=device)
        self._num_pairs = self._num_tokens = 0

    @classmethod
    def of(cls, model: System) -> "LossAccumulator":
        """For the losses of a model."""
        return cls(model.loss_names, model.device)

    def add(self, losses: Losses, pair_mask: Tensor | None = None) -> None:
        """Add the losses of a batch, or of those pairs where the mask (B,) is 1 and not 0."""
        parts = [losses.headline, *(losses.named[name] for name in self._names)]
        rows = torch.stack([part.detach() for part in parts])  # (1 + losses, B)
        self.sums += (rows if pair_mask is None else rows * pair_mask).sum(1, dtype=torch.float64)

    def count(self, num_tokens: int, num_pairs: int) -> None:
        """Count what was added: headline tokens, <eos> included, and pairs."""
        self._num_pairs += num_pairs
        self._num_tokens += num_tokens

    def clear(self) -> None:
        """Start again from 0."""
        self.sums.zero_()
        self._num_pairs = self._num_tokens = 0

    def means(self, world: World) -> MeanLosses:
        """The means over every process."""
        *sums, num_pairs, num_tokens = world.sum(
            [*self.sums.tolist(), self._num_pairs, self._num_tokens]
        )
        headline, *means = (one / max(num_pairs, 1) for one in sums)
        per_token = headline * num_pairs / max(num_tokens, 1)
        return MeanLosses(int(num_pairs), dict(zip(self._names, means, strict=True)), per_token)
