"""The verifier: does a lede support a headline?

A small Transformer reads the lede once, and then any number of headlines beside it. Each sub-word of
a headline starts from the lede's state at the place where the lede has it, so the network need not
learn to look words up; its layers see the lede and the headline at once. It also sees what the
generator thought while it wrote the headline, or was made to write it: its states, its attention
and how likely it held each sub-word (`GeneratorView`).

Legend: B ledes, I their sub-words; N headlines, J their sub-words; D the size of a state, H heads.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from ledeline.text.subwords import PAD

LABELS: Final = ("ok", "clumsy", "added", "false")  # what readers call a headline
KINDS: Final = (  # of errors, as readers name them
    "number", "name", "role", "relation", "modality", "negation", "time", "place", "event", "added",
)  # fmt: skip
_MATCHES: Final = 3  # not in the lede; in it; in it after the same sub-word as in the headline


class VerifierShape(NamedTuple):
    """The sizes of a verifier."""

    vocabulary: int
    size: int = 256
    heads: int = 4
    hidden: int = 1024
    lede_layers: int = 4
    headline_layers: int = 4
    max_lede: int = 128
    max_headline: int = 64
    generator_size: int = 512  # of the generator's states


class GeneratorView(NamedTuple):
    """What a generator saw while it was made to write N headlines; G is the size of its states.

    Step j writes sub-word j; there is one more step, for <eos>.
    """

    states: Tensor  # (N, J + 1, G): z_j
    attention: Tensor  # (N, J + 1, I)
    logs: Tensor  # (N, J + 1): log-probabilities of what was written


class Judgement(NamedTuple):
    """What the verifier says of N headlines, before softmax and sigmoid."""

    labels: Tensor  # (N, 4), in the order of `LABELS`
    doubts: Tensor  # (N, J): whether the sub-word is part of an error
    kinds: Tensor  # (N, 10): the kind of error if there is one, in the order of `KINDS`
    states: Tensor  # (N, J, D)


class LedeMemory(NamedTuple):
    """A batch of ledes as headlines see them."""

    sources: Tensor  # (B, I)
    states: Tensor  # (B, I, D)
    keys: tuple[Tensor, ...]  # of each layer, (B, H, I, D / H)
    values: tuple[Tensor, ...]

    def rows(self, rows: Tensor) -> Self:
        """The ledes of these numbers, one for each headline."""
        return type(self)(
            self.sources[rows],
            self.states[rows],
            tuple(one[rows] for one in self.keys),
            tuple(one[rows] for one in self.values),
        )


class _VerifierLayer(nn.Module):
    """Attention and a feed-forward layer, each after a layer norm."""

    def __init__(self, shape: VerifierShape, dropout: float) -> None:
        super().__init__()
        size = shape.size
        self.heads = shape.heads
        self.attention_norm, self.hidden_norm = nn.LayerNorm(size), nn.LayerNorm(size)
        self.query_key_value, self.mix = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.up, self.down = nn.Linear(size, shape.hidden), nn.Linear(shape.hidden, size)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        states: Tensor,
        mask: Tensor | None,
        lede_keys: Tensor | None = None,
        lede_values: Tensor | None = None,
    ) -> Tensor:
        """States (N, J, D), beside the keys and values of the lede if given."""
        both = self.query_key_value(self.attention_norm(states))
        queries, keys, values = split_heads(both, self.heads, 3)
        if lede_keys is not None and lede_values is not None:
            keys, values = torch.cat([lede_keys, keys], 2), torch.cat([lede_values, values], 2)
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
        self.aligned = nn.Linear(size, size)
        self.lede_layers = _layers(shape, shape.lede_layers, dropout)
        self.headline_layers = _layers(shape, shape.headline_layers, dropout)
        self.lede_norm, self.norm = nn.LayerNorm(size), nn.LayerNorm(size)
        self.lede_key_value = nn.ModuleList(
            nn.Linear(size, 2 * size) for _ in range(shape.headline_layers)
        )
        self.pool, self.label_output = nn.Linear(3 * size, size), nn.Linear(size, len(LABELS))
        self.doubt_output, self.kind_output = nn.Linear(size, 1), nn.Linear(size, len(KINDS))
        self.dropout = nn.Dropout(dropout)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.5 * size**-0.5)
        self.of_encoded = nn.Linear(shape.generator_size, size)
        self.of_states = nn.Linear(2 * shape.generator_size + 2, size)
        self.of_attention = nn.Linear(size, size)
        for layer in (self.of_encoded, self.of_states, self.of_attention):
            nn.init.zeros_(layer.weight)

    @classmethod
    def of(cls, shape: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Self:
        """A trained verifier."""
        made = cls(VerifierShape(**shape))
        made.load_state_dict(dict(weights))
        return made.eval()

    def read(self, sources: Tensor, encoded: Tensor | None = None) -> LedeMemory:
        """Ledes (B, I), padded with <pad>, of at most `max_lede` sub-words.

        Beside the states (B, I, G) of the generator's encoder, if given.
        """
        states = self.embedding(sources) + self.lede_positions.weight[: sources.shape[1]]
        states = self.dropout(states)
        mask = (sources != PAD)[:, None, None, :]
        for layer in self.lede_layers:
            states = layer(states, mask)
        states = self.lede_norm(states)
        if encoded is not None:
            states = states + self.of_encoded(encoded)
        parts = [split_heads(one(states), self.shape.heads, 2) for one in self.lede_key_value]
        return LedeMemory(
            sources, states, tuple(keys for keys, _ in parts), tuple(values for _, values in parts)
        )

    def forward(
        self,
        memory: LedeMemory,
        headlines: Tensor,
        view: GeneratorView | None = None,
        *,
        causal: bool = False,
    ) -> Judgement:
        """Judge headlines (N, J), padded with <pad>, beside their ledes, N as well.

        If causal, a sub-word does not see those after it.
        """
        classes, places = match(memory.sources, headlines)
        states = self.embedding(headlines) + self.headline_positions.weight[: headlines.shape[1]]
        aligned = self.aligned(torch.bmm(places.to(memory.states.dtype), memory.states))
        states = states + self.matches(classes) + aligned
        if view is not None:
            states = states + self._seen(view, memory)
        states = self.dropout(states)
        written = headlines != PAD
        mask = torch.cat([memory.sources != PAD, written], 1)[:, None, None, :]
        if causal:
            number, width = headlines.shape[1], memory.sources.shape[1]
            before = torch.ones(number, number, dtype=torch.bool, device=headlines.device).tril()
            mask = mask & functional.pad(before, (width, 0), value=True)
        for layer, keys, values in zip(
            self.headline_layers, memory.keys, memory.values, strict=True
        ):
            states = layer(states, mask, keys, values)
        states = self.norm(states)
        absent = ~written.unsqueeze(-1)
        mean = states.masked_fill(absent, 0).sum(1) / written.sum(1, keepdim=True).clamp(min=1)
        highest = states.masked_fill(absent, -1e4).amax(1)
        lowest = states.masked_fill(absent, 1e4).amin(1)
        pooled = functional.relu(self.pool(torch.cat([mean, highest, lowest], -1)))
        labels = self.label_output(self.dropout(pooled))
        doubts, kinds = self.doubt_output(states).squeeze(-1), self.kind_output(pooled)
        return Judgement(labels, doubts, kinds, states)

    def _seen(self, view: GeneratorView, memory: LedeMemory) -> Tensor:
        """What the generator saw at each sub-word, before and after it was written. (N, J, D)."""
        logs = view.logs.clamp(min=-12).unsqueeze(-1) / 4
        steps = torch.cat([view.states, logs.to(view.states.dtype)], -1)
        both = torch.cat([steps[:, :-1], steps[:, 1:]], -1)
        attended = torch.bmm(view.attention[:, :-1].to(memory.states.dtype), memory.states)
        seen: Tensor = self.of_states(both) + self.of_attention(attended)
        return seen


def _layers(shape: VerifierShape, number: int, dropout: float) -> nn.ModuleList:
    return nn.ModuleList(_VerifierLayer(shape, dropout) for _ in range(number))


def split_heads(values: Tensor, heads: int, parts: int) -> tuple[Tensor, ...]:
    """(N, J, parts D) -> so many parts (N, H, J, D / H)."""
    return values.unflatten(-1, (parts, heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)


def match(sources: Tensor, headlines: Tensor) -> tuple[Tensor, Tensor]:
    """How and where each sub-word of a headline occurs in its lede. (N, I), (N, J).

    The class (N, J) is 0: not at all; 1: somewhere; 2: after the same sub-word as in the headline.
    The places (N, J, I) sum to 1, or to 0 for class 0; in class 2 they are only those where the
    sub-word before is the same, too.
    """
    same = (headlines.unsqueeze(2) == sources.unsqueeze(1)) & (headlines != PAD).unsqueeze(2)
    both = functional.pad(same[:, 1:, 1:] & same[:, :-1, :-1], (1, 0, 1, 0))
    follows = both.any(2)
    places = torch.where(follows.unsqueeze(2), both, same).float()
    places = places / places.sum(2, keepdim=True).clamp(min=1)
    return same.any(2).long() + follows.long(), places
