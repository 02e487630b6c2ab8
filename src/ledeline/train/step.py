"""A step of training: its one definition, and how it is taken with plain PyTorch."""

import math
from typing import Any, Final, Protocol

import torch
from torch import Tensor, nn

from ledeline.core.progress import Progress
from ledeline.data.batches import Batches, PlannedBatch
from ledeline.data.dataset import Batch, Ids
from ledeline.model.layers.dropout import WHOLE_BATCH, Share
from ledeline.model.pairs import Pairs
from ledeline.model.system import Losses, System
from ledeline.text.subwords import UNK
from ledeline.train.loss_accumulator import LossAccumulator
from ledeline.train.precision import precision
from ledeline.train.processes import World
from ledeline.train.train_config import TrainConfig


class TrainStep:
    """Forward pass, backward pass, clipping, update of the weights.

    The losses go to `accumulator` and the norm of the gradient, before clipping, to `norm`. Both
    stay on the device, and nothing waits for them.
    """

    def __init__(
        self,
        model: System,
        wrapped: nn.Module,
        optimizer: torch.optim.Optimizer,
        config: TrainConfig,
    ) -> None:
        self.model, self.optimizer = model, optimizer
        self._wrapped, self._run = wrapped, config.run
        self._clip_norm, self._clip_value = config.train.clip_norm, config.train.clip_value
        self._divide_by = config.train.divide_loss_by
        self.accumulator = LossAccumulator.of(model)
        self.norm = torch.zeros((), device=model.device)

    def __call__(
        self, pairs: Pairs, weight: float | Tensor, pair_mask: Tensor | None = None
    ) -> None:
        """Learn from pairs; the sum of their losses is multiplied with `weight`.

        Pairs where the mask (B,) is 0 and not 1 only fill up the batch.
        """
        with precision(self._run, self.model.device):
            losses: Losses = self._wrapped(pairs)
        total = losses.total()
        total = total if pair_mask is None else total * pair_mask
        torch.autograd.backward(total.sum() * weight)
        self._clip_gradient()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.accumulator.add(losses, pair_mask)

    def divisor(self, batches: Batches, rows: Ids) -> int:
        """What the summed loss of a step with these rows is divided by."""
        if self._divide_by == "pairs":
            return len(rows)
        return batches.num_tokens(rows) if self._divide_by == "tokens" else 1

    def _clip_gradient(self) -> None:
        """Clip by norm, then by value; each where it is asked for."""
        parameters = list(self.model.parameters())
        self.norm.copy_(nn.utils.clip_grad_norm_(parameters, self._clip_norm or math.inf))
        if self._clip_value:
            nn.utils.clip_grad_value_(parameters, self._clip_value)


class Steps(Protocol):
    """How the steps of a run are taken."""

    def prepare(self, progress: Progress) -> None:
        """Do all that has to be done before the first one."""

    def run(self, draw: PlannedBatch) -> None:
        """Learn from the pairs of a batch."""

    @property
    def setup_info(self) -> dict[str, Any]:
        """What it took to prepare, by name."""


_PLACEHOLDER: Final = Batch.of([([UNK], [])])


class EagerSteps:
    """Steps in plain PyTorch: on any device, with any lengths, in any number of processes."""

    def __init__(self, step: TrainStep, batches: Batches, world: World) -> None:
        self._step, self._batches, self._world = step, batches, world
        self.setup_info: dict[str, Any] = {}

    def prepare(self, progress: Progress) -> None:
        """There is nothing to do."""

    def run(self, draw: PlannedBatch) -> None:
        """Learn from this process's pairs of a batch.

        Gradients are averaged over the processes, so each multiplies its sum with their number. A
        process without a pair of a small batch has a placeholder that does not count.
        """
        batch, world, model = self._batches.read(draw), self._world, self._step.model
        if len(batch.sources):
            model.share_batches(Share(world.rank, world.size, batch.num_pairs))
            divisor = self._step.divisor(self._batches, draw.rows)
            self._step(model.pairs(batch), world.size / divisor)
        else:
            model.share_batches(WHOLE_BATCH)
            self._step(model.pairs(_PLACEHOLDER), 0.0, torch.zeros(1, device=model.device))
        self._step.accumulator.count(batch.num_tokens, len(batch.sources))
