"""What a Transformer reads: words, scaled, with their places; and the output layer tied to them.

Legend: B pairs, I places, d size of a state, V vocabulary.
"""

import math
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from ledeline.model.layers.dropout import BatchRandom, Dropout
from ledeline.model.layers.encoder import embed
from ledeline.text.subwords import SPECIALS

_LONGEST_WAVE: Final = 10_000.0


def sinusoids(places: Tensor, like: Tensor) -> Tensor:
    """A wave for each pair of values: sines, then cosines of `place / 10000^(k / (d/2 - 1))`.

    Places (...), counted from 0 -> (..., d) as the rows of `like` (V, d). They have no end, so
    that every <pad> of the SPM has a place of its own. Angles have 24 bits at least, for in 16 some
    places would be one.
    """
    half, exact = like.shape[1] // 2, torch.promote_types(like.dtype, torch.float32)
    exponents = torch.arange(half, dtype=exact, device=like.device) / max(1, half - 1)
    angles = places.to(exact).unsqueeze(-1) * torch.exp(-math.log(_LONGEST_WAVE) * exponents)
    return torch.cat([angles.sin(), angles.cos()], -1).to(like.dtype)


class WordNoise(BatchRandom):
    """Some words of a sentence are replaced or dropped in training (Takase and Kiyono 2021).

    A word is replaced by one of all types alike, or its embedding by 0. Special tokens stay, and
    losses are still about the words as they were.
    """

    def __init__(self, replaced: float, dropped: float) -> None:
        super().__init__()
        self.replaced, self.dropped = replaced, dropped

    def replace_words(self, words: Tensor, table: Tensor) -> Tensor:
        """Words (B, I), the table of all types (V, d) -> words (B, I)."""
        if not self.training or not self.replaced:
            return words
        first, number = len(SPECIALS), len(table) - len(SPECIALS)
        others = (self._uniform(words, table) * number).long().clamp(max=number - 1) + first
        return torch.where(self._chosen(words, table, self.replaced), others, words)

    def drop_words(self, embedded: Tensor, words: Tensor, table: Tensor) -> Tensor:
        """Embeddings (B, I, d) of words (B, I) -> the same, some of them 0."""
        if not self.training or not self.dropped:
            return embedded
        return embedded.masked_fill(self._chosen(words, table, self.dropped).unsqueeze(-1), 0.0)

    def _chosen(self, words: Tensor, like: Tensor, share: float) -> Tensor:
        """A share of the words that are not special, at random. (B, I)."""
        return (self._uniform(words, like) < share) & (words >= len(SPECIALS))

    def _uniform(self, words: Tensor, like: Tensor) -> Tensor:
        return self.own(self.whole(words.shape, like).uniform_())


class WordInput(nn.Module):
    """`sqrt(d) E x_i + p_i`; sources and headlines share it, and the output layer its table E."""

    def __init__(self, vocabulary: int, size: int, noise: WordNoise, dropout: Dropout) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, size)  # E
        self.noise, self.dropout = noise, dropout
        self.scale = math.sqrt(size)

    def initialize_(self, generator: torch.Generator) -> None:
        """With a deviation of `1 / sqrt(d)`: scaled, words are as large as places."""
        nn.init.normal_(self.table.weight, 0.0, 1 / self.scale, generator=generator)

    def forward(self, words: Tensor, first: int = 0) -> Tensor:
        """Words (B, I) at the places from `first` on -> (B, I, d)."""
        places = torch.arange(first, first + words.shape[1], device=words.device)
        table = self.table.weight
        read = self.noise.replace_words(words, table)
        embedded = self.noise.drop_words(embed(read, table) * self.scale, words, table)
        placed: Tensor = self.dropout(embedded + sinusoids(places, table))
        return placed

    def next_place(self, words: Tensor, place: int) -> Tensor:
        """The words of hypotheses (B, K), all at one place -> (B, K, d); nothing is random."""
        places, table = torch.arange(place, place + 1, device=words.device), self.table.weight
        return embed(words, table) * self.scale + sinusoids(places, table)


class TiedLinear(nn.Module):
    """`W z + b` with the table of an embedding as W (Press and Wolf 2017); only b is its own."""

    def __init__(self, table: nn.Embedding) -> None:
        super().__init__()
        self._table = (table,)  # in a tuple, so that the weight is not this module's too
        self.bias = nn.Parameter(torch.empty(table.num_embeddings))

    @property
    def weight(self) -> Tensor:
        """W (V, d)."""
        return self._table[0].weight

    def forward(self, values: Tensor) -> Tensor:
        """Values (..., d) -> (..., V)."""
        return functional.linear(values, self.weight, self.bias)
