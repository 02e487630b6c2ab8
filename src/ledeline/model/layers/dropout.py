"""Dropout with masks that do not depend on how many processes share a batch."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import torch
from torch import Tensor, nn

from ledeline.core.shuffle import random_keys


class Share(NamedTuple):
    """Which pairs of a batch this process has: every `world_size`-th, from `rank` on."""

    rank: int
    world_size: int
    num_pairs: int | None  # of the whole batch; None: this process has all


WHOLE_BATCH: Final = Share(0, 1, None)


class BatchRandom(nn.Module):
    """Random numbers for a whole batch, of which this process takes its own rows.

    So two processes train exactly as one does.
    """

    def __init__(self) -> None:
        super().__init__()
        self.share = WHOLE_BATCH

    def whole(self, shape: Sequence[int], like: Tensor) -> Tensor:
        """Room for the numbers of the whole batch, where this process has this shape (B, ...)."""
        return like.new_empty((self.share.num_pairs or shape[0], *shape[1:]))

    def own(self, whole: Tensor) -> Tensor:
        """The rows of this process."""
        return whole[self.share.rank :: self.share.world_size]


class Noise(BatchRandom):
    """Draws from the standard normal distribution: fresh ones in training, else 0."""

    def forward(self, like: Tensor) -> Tensor:
        """Noise of the shape (B, ...) of the values."""
        if not self.training:
            return torch.zeros_like(like)
        return self.own(self.whole(like.shape, like).normal_())


class Dropout(BatchRandom):
    """Zero a share of the values in training, and scale the rest so that the mean stays.

    The random mask is drawn for the whole batch, and this process takes its own rows of it. So two
    processes train exactly as one does. The first dimension of the input is B.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, values: Tensor) -> Tensor:
        """Values of any shape (B, ...) -> the same shape."""
        mask = self.mask(values.shape, values)
        return values if mask is None else values * mask

    def mask(self, shape: Sequence[int], like: Tensor) -> Tensor | None:
        """A random mask of this shape: 0 or 1 / (1 - rate); None where nothing is dropped."""
        if not self.training or not self.rate:
            return None
        whole = self.whole(shape, like)
        if whole.is_cuda:
            whole.bernoulli_(1 - self.rate).div_(1 - self.rate)  # one kernel less
        else:
            whole.uniform_().ge_(self.rate).div_(1 - self.rate)
        return self.own(whole)

    def extra_repr(self) -> str:
        """The rate, where the model is printed."""
        return f"{self.rate}"


def seed(number: int, stream: int) -> None:
    """Seed torch's random numbers by a seed and a stream, such as the number of the step.

    Random numbers then do not depend on those drawn before. So a resumed run draws the same ones,
    and checkpoints need no state of the generator.
    """
    torch.manual_seed(int(random_keys(number, stream, 1)[0]))
