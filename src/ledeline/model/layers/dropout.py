"""Dropout that a batch gets whole, however many processes share it."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import torch
from torch import Tensor, nn

from ledeline.core.shuffle import random_keys


class Share(NamedTuple):
    """Which pairs of a batch this process has: every `world_size`-th, from `rank` on."""

    rank: int
    world_size: int
    num_pairs: int | None  # of the whole batch; None: those at hand


WHOLE: Final = Share(0, 1, None)


class Dropout(nn.Module):
    """Zero a share of the values in training, and scale the rest so that the mean stays.

    The dice are thrown for the whole batch and this process keeps its own rows. So two processes
    train exactly as one does. The first dimension of what comes in is B.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.share = WHOLE

    def forward(self, values: Tensor) -> Tensor:
        """Values of any shape (B, ...) -> the same shape."""
        factors = self.factors(values.shape, values)
        return values if factors is None else values * factors

    def factors(self, shape: Sequence[int], like: Tensor) -> Tensor | None:
        """What to multiply with: 0 or 1 / (1 - rate); None where nothing is dropped."""
        if not self.training or not self.rate:
            return None
        rank, world_size, num_pairs = self.share
        whole = like.new_empty((num_pairs or shape[0], *shape[1:]))
        if whole.is_cuda:
            whole.bernoulli_(1 - self.rate).div_(1 - self.rate)  # one pass less
        else:
            whole.uniform_().ge_(self.rate).div_(1 - self.rate)
        return whole[rank::world_size]

    def extra_repr(self) -> str:
        """The rate, where the model is printed."""
        return f"{self.rate}"


def seed(number: int, stream: int) -> None:
    """Set torch's dice from a seed and, say, a step: what is thrown next depends on no past.

    So a resumed run throws what the run would have thrown, with no state of the dice to save.
    """
    torch.manual_seed(int(random_keys(number, stream, 1)[0]))
