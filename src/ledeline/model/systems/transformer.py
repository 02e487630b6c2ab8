"""A Transformer (Vaswani et al. 2017), whose normalisation comes before each part of a layer.

Encoder and decoder have depths of their own: a deep encoder is run once for a source, a shallow
decoder for each word of each hypothesis. The setting is the one that Takase and Okazaki (2019)
trained on headlines, but for the place of the normalisation.

Legend: B pairs, I source length, J steps, K hypotheses, d size of a state, h heads.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple, cast

import torch
from torch import Tensor, nn

from ledeline.config.engine_systems import TransformerConfig as TransformerConfig
from ledeline.config.recipe import Recipe
from ledeline.core.errors import ModelError
from ledeline.model.addons.addon import Sizes
from ledeline.model.attention_system import AttentionSystem
from ledeline.model.layers.attention import AttentionFollower
from ledeline.model.layers.dropout import Dropout
from ledeline.model.layers.encoder import Encoded
from ledeline.model.layers.multi_head_attention import attention_weights
from ledeline.model.layers.transformer_layers import (
    DecoderLayer,
    EncoderLayer,
    LayerDropouts,
    LayerSizes,
    SourceView,
)
from ledeline.model.layers.word_input import TiedLinear, WordInput, WordNoise
from ledeline.model.pairs import Pairs

if TYPE_CHECKING:
    from ledeline.model.system_config import SystemConfig

_NO_COVERAGE = "attention is computed for all steps at once, in every layer and head"


def layer_sizes(config: TransformerConfig) -> LayerSizes:
    """The sizes of a layer."""
    return LayerSizes(config.embedding_size, config.hidden_size, config.heads)


def norms_of(layers: nn.ModuleList, last: nn.LayerNorm) -> list[nn.LayerNorm]:
    """The norm before the first part of each layer, and the one after the last layer."""
    firsts = (cast(EncoderLayer | DecoderLayer, layer).attention_norm for layer in layers)
    return [*firsts, last]


class TransformerEncoder(nn.Module):
    """Layers one above the other, and a last normalisation."""

    def __init__(
        self, words: WordInput, config: TransformerConfig, dropouts: LayerDropouts
    ) -> None:
        super().__init__()
        self.words = words
        self.layers = nn.ModuleList(
            EncoderLayer(layer_sizes(config), dropouts) for _ in range(config.encoder_layers)
        )
        self.norm = nn.LayerNorm(config.embedding_size)

    @property
    def embedding(self) -> nn.Embedding:
        """E, which the decoder shares."""
        return self.words.table

    def forward(self, sources: Tensor, lengths: Tensor | None = None) -> Encoded:
        """Sources (B, I), and their lengths (B,) on the CPU where they are not all I.

        Nothing travels in `ends`, for the decoder starts from nothing. The sentence is the mean
        of the states (B, d).
        """
        words, mask = self.words(sources), None
        if lengths is not None:
            places = torch.arange(sources.shape[1], device=sources.device)
            mask = places < lengths.to(sources.device).unsqueeze(1)  # (B, I)
        first, *norms = norms_of(self.layers, self.norm)
        between, states = words, first(words)
        for layer, norm in zip(self.layers, norms, strict=True):
            between, states = layer(between, states, mask, norm)
        if mask is None:
            return Encoded(states, (), states.mean(1))
        states = states.masked_fill(~mask.unsqueeze(-1), 0.0)
        return Encoded(states, (), states.sum(1) / mask.sum(1, keepdim=True))


class TransformerMemory(NamedTuple):
    """What every step looks at: computed once per source, for all its steps and hypotheses."""

    states: Tensor  # (B, I, d): of the encoder
    keys_values: tuple[Tensor, ...]  # of each layer, side by side: (B, I, 2d)
    mask: Tensor | None  # (B, I); None: all positions are valid

    @property
    def views(self) -> list[SourceView]:
        """What each layer sees."""
        return [SourceView(one, self.mask) for one in self.keys_values]


class TransformerState(NamedTuple):
    """The decoder between two steps, for K hypotheses of each source."""

    caches: tuple[Tensor, ...]  # of each layer, keys and values of J steps: (B, K, J, 2d)
    attentional: Tensor  # (B, K, d): z_j, what the output layer reads


class TransformerDecoder(nn.Module):
    """Layers one above the other, and a last normalisation: z_j.

    The attention that it tells is that of one layer and head, or the mean of the layer's heads.
    """

    def __init__(
        self, words: WordInput, config: TransformerConfig, dropouts: LayerDropouts
    ) -> None:
        super().__init__()
        self._words = (words,)  # in a tuple, so that its weights are the encoder's alone
        self.layers = nn.ModuleList(
            DecoderLayer(layer_sizes(config), dropouts) for _ in range(config.decoder_layers)
        )
        self.norm = nn.LayerNorm(config.embedding_size)
        self.heads = config.heads
        self._layer = (config.attention_layer or config.decoder_layers) - 1
        self._head = config.attention_head - 1 if config.attention_head else None

    @property
    def embedding(self) -> nn.Embedding:
        """E, which the encoder shares."""
        return self._words[0].table

    def memory(self, encoded: Encoded, mask: Tensor | None) -> TransformerMemory:
        """What every step attends to; the mask (B, I) is that of the source."""
        keys_values = (one.source_attention.of_source(encoded.states) for one in self._layers)
        return TransformerMemory(encoded.states, tuple(keys_values), mask)

    def start(self, encoded: Encoded) -> TransformerState:
        """The state before the first step, K = 1: empty caches."""
        batch, size = len(encoded.states), encoded.states.shape[-1]
        cache = encoded.states.new_zeros(batch, 1, 0, 2 * size)
        attentional = encoded.states.new_zeros(batch, 1, size)
        return TransformerState((cache,) * len(self.layers), attentional)

    def step(
        self,
        words: Tensor,
        state: TransformerState,
        memory: TransformerMemory,
        follower: AttentionFollower | None = None,
    ) -> tuple[TransformerState, Tensor]:
        """One step of every hypothesis: y_{j-1} (B, K) -> the next state, alpha_j (B, K, I)."""
        _refuse(follower)
        between = self._words[0].next_place(words, state.caches[0].shape[2])
        first, *norms = norms_of(self.layers, self.norm)
        normed, caches, queries = first(between), [], []
        for layer, norm, cache, source in zip(
            self._layers, norms, state.caches, memory.views, strict=True
        ):
            between, normed, asked, cache = layer.step(between, normed, cache, source, norm)
            caches.append(cache)
            queries.append(asked)
        after = TransformerState(tuple(caches), normed)
        return after, self._attention(queries[self._layer], memory)

    def unroll(
        self,
        words: Tensor,
        state: TransformerState,  # noqa: ARG002 - the one before the first step, which is empty
        memory: TransformerMemory,
        *,
        attention_gradient: bool = False,
        follower: AttentionFollower | None = None,
    ) -> tuple[Tensor, Tensor]:
        """All steps with known words (B, J) -> z (B, J, d), alpha (B, J, I), at once."""
        _refuse(follower)
        states, queries = self._unroll(words, memory)
        with torch.set_grad_enabled(attention_gradient and torch.is_grad_enabled()):
            return states, self._attention(queries[self._layer], memory)

    def every_attention(self, words: Tensor, memory: TransformerMemory) -> Tensor:
        """The attention of all layers and heads, with known words (B, J) -> (B, L, h, J, I)."""
        _, queries = self._unroll(words, memory)
        weights = [
            attention_weights(asked, source.chunk(2, -1)[0], self.heads, memory.mask)
            for asked, source in zip(queries, memory.keys_values, strict=True)
        ]
        return torch.stack(weights, 1)

    @property
    def _layers(self) -> list[DecoderLayer]:
        return [layer for layer in self.layers if isinstance(layer, DecoderLayer)]

    def _unroll(self, words: Tensor, memory: TransformerMemory) -> tuple[Tensor, list[Tensor]]:
        """Known words (B, J) -> z (B, J, d), and each layer's queries to the source (B, J, d).

        Padding comes last in a headline, so no valid step sees it.
        """
        between, queries = self._words[0](words), []
        first, *norms = norms_of(self.layers, self.norm)
        normed = first(between)
        for layer, norm, source in zip(self._layers, norms, memory.views, strict=True):
            between, normed, asked = layer(between, normed, source, norm)
            queries.append(asked)
        return normed, queries

    def _attention(self, queries: Tensor, memory: TransformerMemory) -> Tensor:
        """The attention of the chosen layer and head. Queries (B, Q, d) -> (B, Q, I)."""
        keys, heads = memory.keys_values[self._layer].chunk(2, -1)[0], self.heads
        if self._head is not None:
            size = queries.shape[-1] // self.heads
            part = slice(self._head * size, (self._head + 1) * size)
            queries, keys, heads = queries[..., part], keys[..., part], 1
        return attention_weights(queries, keys, heads, memory.mask).mean(1)


def _refuse(follower: AttentionFollower | None) -> None:
    """Refuse an add-on that changes attention from step to step, under whatever name."""
    if follower is not None:
        raise ModelError(f"an add-on that changes attention does not go here: {_NO_COVERAGE}")


class Transformer(AttentionSystem):
    """Encoder, decoder and output layer with one table of words for all three."""

    Config = TransformerConfig
    recipe = Recipe(
        optimizer={"name": "adam", "learning_rate": 0.001, "beta2": 0.98, "epsilon": 1e-9},
        schedule={"name": "warmup_inverse_sqrt", "warmup_steps": 4000},
        init={"name": "xavier"},
    )
    capturable = True
    max_captured_tokens = 16_384
    refuses: ClassVar[Mapping[str, str]] = {"coverage": _NO_COVERAGE}

    def __init__(self, config: "SystemConfig", vocabulary: int) -> None:
        super().__init__(config, vocabulary)
        own = config.of_type(TransformerConfig)
        rates = own.dropout, own.attention_dropout, own.activation_dropout
        dropouts = LayerDropouts(*map(Dropout, rates))
        noise = WordNoise(own.word_replacement, own.word_dropout)
        words = WordInput(vocabulary, own.embedding_size, noise, dropouts.residual)
        self.assemble(
            TransformerEncoder(words, own, dropouts),
            TransformerDecoder(words, own, dropouts),
            Sizes(vocabulary, own.embedding_size, own.embedding_size),
            dropouts.residual,
        )
        self.add_module("output", TiedLinear(words.table))

    @property
    def num_attentions(self) -> tuple[int, int]:
        """Layers of the decoder, and heads of each."""
        own = self.config.of_type(TransformerConfig)
        return own.decoder_layers, own.heads

    def every_attention(self, pairs: Pairs) -> Tensor:
        """The attention of all layers and heads to known headlines. (B, L, h, J, I)."""
        given = pairs.sources, pairs.source_lengths, pairs.source_mask
        memory = self.begin(*given, in_search=False).memory
        return cast(TransformerDecoder, self.decoder).every_attention(pairs.previous, memory)

    def explained_by(self, layer: int, head: int) -> "SystemConfig":
        """Its configuration, with another attention to explain headlines."""
        own = self.config.of_type(TransformerConfig)
        chosen = replace(own, attention_layer=layer, attention_head=head)
        return replace(self.config, system=chosen)
