"""Learned positions: a vector for each place of a sentence."""

import torch
from torch import Tensor, nn

from ledeline.model.layers.encoder import embed


class Positions(nn.Module):
    """`p_1 ... p_N`; places after the last one have its vector, so that no text is too long."""

    def __init__(self, number: int, size: int) -> None:
        super().__init__()
        self.number = number
        self.table = nn.Embedding(number, size)

    def forward(self, places: Tensor) -> Tensor:
        """Places, counted from 0, of any shape -> their vectors (..., size)."""
        return embed(places.clamp(max=self.number - 1), self.table.weight)

    def of_length(self, length: int) -> Tensor:
        """The vectors of the first places. (length, size)."""
        places: Tensor = torch.arange(length, device=self.table.weight.device)
        vectors: Tensor = self(places)
        return vectors
