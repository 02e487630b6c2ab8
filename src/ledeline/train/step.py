"""A step of training: the one definition, and the plain way to take it."""

from typing import Any, Protocol

import torch
from torch import Tensor, nn

from ledeline.config import TrainConfig
from ledeline.core.progress import Progress
from ledeline.data.batches import Batches, PlannedBatch
from ledeline.data.dataset import Batch
from ledeline.model.layers.dropout import WHOLE, Share
from ledeline.model.pairs import Pairs
from ledeline.model.systems.encdec import EncDec, Losses
from ledeline.text.subwords import UNK
from ledeline.train.losses import LossAccumulator
from ledeline.train.precision import precision
from ledeline.train.processes import World


class Step:
    """Forward, backward, clipping and Adam.

    The losses go to `accumulator` and the norm of the gradient, before clipping, to `norm`: both
    stay on the device, and nothing waits for them.
    """

    def __init__(
        self, model: EncDec, wrapped: nn.Module, optimizer: torch.optim.Adam, config: TrainConfig
    ) -> None:
        self.model, self.optimizer = model, optimizer
        self._wrapped, self._clip = wrapped, config.train.clip
        self._run = config.run
        self.accumulator = LossAccumulator.of(model)
        self.norm = torch.zeros((), device=model.device)

    def __call__(self, pairs: Pairs, weight: float | Tensor, present: Tensor | None = None) -> None:
        """Learn from pairs whose losses weigh so much each.

        Those where `present` (B,) is 0 instead of 1 only fill the batch up.
        """
        with precision(self._run, self.model.device):
            losses: Losses = self._wrapped(pairs)
        total = losses.total()
        total = total if present is None else total * present
        torch.autograd.backward(total.sum() * weight)
        self.norm.copy_(nn.utils.clip_grad_norm_(self.model.parameters(), self._clip))
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.accumulator.add(losses, present)


def adam(model: EncDec) -> torch.optim.Adam:
    """The optimizer; on a GPU its rate is there too, so that a captured step can be told of it."""
    if model.device.type == "cpu":
        return torch.optim.Adam(model.parameters(), fused=True)
    rate = torch.zeros((), device=model.device)
    return torch.optim.Adam(model.parameters(), rate, fused=True, capturable=True)


def set_rate(optimizer: torch.optim.Adam, rate: float) -> None:
    """Set Adam's learning rate."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


class Steps(Protocol):
    """A way to take steps."""

    def prepare(self, progress: Progress) -> None:
        """Do all that has to be done before the first one."""

    def take(self, draw: PlannedBatch) -> None:
        """Learn from the pairs of a batch."""

    @property
    def figures(self) -> dict[str, Any]:
        """What it took to be ready, by name."""


_STAND_IN = Batch.of([([UNK], [])])


class Plain:
    """Steps as PyTorch does them: on any device, with any lengths, in any number of processes."""

    def __init__(self, step: Step, batches: Batches, world: World) -> None:
        self._step, self._batches, self._world = step, batches, world
        self.figures: dict[str, Any] = {}

    def prepare(self, progress: Progress) -> None:
        """There is nothing to do."""

    def take(self, draw: PlannedBatch) -> None:
        """Learn from this process's pairs of a batch.

        Gradients are averaged over the processes, so each weighs its sum with their number. A
        process without a pair of a small batch goes along with a stand-in that is not counted.
        """
        batch, world, model = self._batches.read(draw), self._world, self._step.model
        if len(batch.sources):
            model.dropout.share = Share(world.rank, world.size, batch.num_pairs)
            self._step(model.pairs(batch), world.size / batch.num_pairs)
        else:
            model.dropout.share = WHOLE
            self._step(model.pairs(_STAND_IN), 0.0, torch.zeros(1, device=model.device))
        num_tokens = int((batch.headline_lengths + 1).sum())
        self._step.accumulator.count(num_tokens, len(batch.sources))
