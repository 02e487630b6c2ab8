"""The verifier: does a lede support a headline?

A small Transformer reads the lede, then headlines beside it. Words of the lede see only the lede,
so a lede is read once for any number of headlines; words of a headline see the lede and their own
headline, in both directions.

Legend: B ledes, I their sub-words; N headlines, J their sub-words; D the size of a state.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from ledeline.text.subwords import PAD

LABELS: Final = ("ok", "clumsy", "added", "false")  # what readers call a headline
_MATCHES: Final = 3  # not in the lede; in it; in it after the same sub-word as in the headline


class VerifierShape(NamedTuple):
    """The sizes of a verifier."""

    vocabulary: int
    size: int = 256
    layers: int = 4
    heads: int = 4
    hidden: int = 1024
    max_lede: int = 128
    max_headline: int = 64


class Judgement(NamedTuple):
    """What the verifier says of N headlines, before softmax and sigmoid."""

    labels: Tensor  # (N, 4), in the order of `LABELS`
    doubts: Tensor  # (N, J): whether the sub-word is part of an error
    states: Tensor  # (N, J, D)


class LedeMemory(NamedTuple):
    """A batch of ledes as the layers see them."""

    sources: Tensor  # (B, I)
    keys: tuple[Tensor, ...]  # of each layer, (B, H, I, D / H)
    values: tuple[Tensor, ...]

    def rows(self, rows: Tensor) -> Self:
        """The ledes of these numbers, one for each headline."""
        return type(self)(
            self.sources[rows],
            tuple(one[rows] for one in self.keys),
            tuple(one[rows] for one in self.values),
        )


class _Layer(nn.Module):
    """Attention and a feed-forward layer, each after a layer norm."""

    def __init__(self, shape: VerifierShape, dropout: float) -> None:
        super().__init__()
        size = shape.size
        self.heads = shape.heads
        self.attention_norm, self.hidden_norm = nn.LayerNorm(size), nn.LayerNorm(size)
        self.query_key_value, self.mix = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.up, self.down = nn.Linear(size, shape.hidden), nn.Linear(shape.hidden, size)
        self.dropout = nn.Dropout(dropout)

    def project(self, states: Tensor) -> tuple[Tensor, ...]:
        """States (N, J, D) -> queries, keys and values, (N, H, J, D / H) each."""
        both = self.query_key_value(self.attention_norm(states))
        parts = both.unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return tuple(parts.unbind(0))

    def forward(
        self, states: Tensor, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor
    ) -> Tensor:
        seen = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        states = states + self.dropout(self.mix(seen.transpose(1, 2).flatten(2)))
        hidden = functional.relu(self.up(self.hidden_norm(states)))
        return states + self.dropout(self.down(hidden))


class Verifier(nn.Module):
    """Says of a headline beside its lede which label it would get, and which words are doubtful."""

    def __init__(self, shape: VerifierShape, dropout: float = 0.0) -> None:
        super().__init__()
        self.shape = shape
        size = shape.size
        self.embedding = nn.Embedding(shape.vocabulary, size)
        self.lede_positions = nn.Embedding(shape.max_lede, size)
        self.headline_positions = nn.Embedding(shape.max_headline, size)
        self.matches = nn.Embedding(_MATCHES, size)
        self.layers = nn.ModuleList(_Layer(shape, dropout) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(size)
        self.pool, self.label_output = nn.Linear(2 * size, size), nn.Linear(size, len(LABELS))
        self.doubt_output = nn.Linear(size, 1)
        self.dropout = nn.Dropout(dropout)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02 if size < 512 else 0.015)

    @classmethod
    def of(cls, shape: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Self:
        """A trained verifier."""
        made = cls(VerifierShape(**shape))
        made.load_state_dict(dict(weights))
        return made.eval()

    def read(self, sources: Tensor) -> LedeMemory:
        """Ledes (B, I), padded with <pad>, of which the first `max_lede` sub-words are read."""
        sources = sources[:, : self.shape.max_lede]
        states = self.embedding(sources) + self.lede_positions.weight[: sources.shape[1]]
        states = self.dropout(states)
        mask = (sources != PAD)[:, None, None, :]
        all_keys, all_values = [], []
        for number, layer in enumerate(self.layers):
            queries, keys, values = layer.project(states)
            all_keys.append(keys)
            all_values.append(values)
            if number + 1 < len(self.layers):
                states = layer(states, queries, keys, values, mask)
        return LedeMemory(sources, tuple(all_keys), tuple(all_values))

    def forward(self, memory: LedeMemory, headlines: Tensor) -> Judgement:
        """Judge headlines (N, J), padded with <pad>, beside their ledes, N as well."""
        sources = memory.sources
        states = self.embedding(headlines) + self.headline_positions.weight[: headlines.shape[1]]
        states = self.dropout(states + self.matches(matches(sources, headlines)))
        written = headlines != PAD
        mask = torch.cat([sources != PAD, written], 1)[:, None, None, :]
        for layer, lede_keys, lede_values in zip(
            self.layers, memory.keys, memory.values, strict=True
        ):
            queries, keys, values = layer.project(states)
            keys, values = torch.cat([lede_keys, keys], 2), torch.cat([lede_values, values], 2)
            states = layer(states, queries, keys, values, mask)
        states = self.norm(states)
        absent = ~written.unsqueeze(-1)
        mean = states.masked_fill(absent, 0).sum(1) / written.sum(1, keepdim=True).clamp(min=1)
        highest = states.masked_fill(absent, -1e4).amax(1)
        pooled = functional.relu(self.pool(torch.cat([mean, highest], -1)))
        labels = self.label_output(self.dropout(pooled))
        return Judgement(labels, self.doubt_output(states).squeeze(-1), states)


def matches(sources: Tensor, headlines: Tensor) -> Tensor:
    """How each sub-word of a headline occurs in its lede. (N, I), (N, J) -> (N, J).

    0: not at all; 1: somewhere; 2: after the same sub-word as in the headline.
    """
    same = (headlines.unsqueeze(2) == sources.unsqueeze(1)) & (headlines != PAD).unsqueeze(2)
    both = same[:, 1:, 1:] & same[:, :-1, :-1]
    follows = functional.pad(both.any(2), (1, 0))
    return same.any(2).long() + follows.long()
