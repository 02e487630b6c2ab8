"""conv-s2s (Gehring et al. 2017): convolutions instead of recurrence, attention in every layer.

All steps of a known headline are computed at once. Where the paper and its authors' code differ,
this is the code. The setting for headlines is that of the paper's Table 6: 6 layers of 256. It does
not say kernel width, embedding size and dropout there; ours are the ones in common use.

Legend: B pairs, I source length, J steps, K hypotheses, d hidden size, f embedding size, k kernel.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from ledeline.config.recipe import Recipe
from ledeline.config.section import DEPTH, SIZE, BadValue, at_least, below, section
from ledeline.core.errors import ModelError
from ledeline.model.addons.addon import Sizes
from ledeline.model.attention_system import AttentionSystem
from ledeline.model.layers.attention import AttentionFollower
from ledeline.model.layers.dropout import Dropout
from ledeline.model.layers.encoder import Encoded, embed
from ledeline.model.layers.gated_convolution import GatedConvolution, centred_windows, windows_of
from ledeline.model.layers.multi_step_attention import (
    ROOT_OF_HALF,
    MultiStepAttention,
    MultiStepMemory,
    multi_step_memory,
)
from ledeline.model.layers.positions import Positions
from ledeline.model.layers.scaled_gradient import scale_gradient
from ledeline.model.layers.weight_norm import WeightNormLinear

if TYPE_CHECKING:
    from ledeline.model.system_config import SystemConfig

_NO_COVERAGE = "attention is computed for all steps at once, in every layer"


@section
class ConvS2SConfig:
    """Convolutional sequence to sequence learning (conv-s2s)."""

    title: ClassVar[str] = "conv-s2s"
    free: ClassVar[tuple[str, ...]] = ("dropout",)  # keys that a run may change on its way

    name: Annotated[Literal["conv-s2s"], "The system."] = "conv-s2s"
    embedding_size: Annotated[
        int, "f, of the embeddings, of what attention sees and of the output's input.", SIZE
    ] = 256
    hidden_size: Annotated[int, "d, of each convolution.", SIZE] = 256
    layers: Annotated[
        int, "Convolutions of the encoder, and of the decoder, one above the other.", DEPTH
    ] = 6
    kernel: Annotated[int, "k, places that a convolution sees at once; odd.", SIZE] = 3
    positions: Annotated[
        int, "Places with a vector of their own; later places share the last one.", SIZE
    ] = 1024
    dropout: Annotated[
        float,
        "Share of values dropped at embeddings, before convolutions and before the output.",
        at_least(0),
        below(1),
    ] = 0.1

    def __post_init__(self) -> None:
        if self.kernel % 2 == 0:
            raise BadValue("kernel", self.kernel, "must be odd, to look equally far to both sides")


class PlacedEmbedding(nn.Module):
    """`e_i = E x_i + p_i`: words with learned places; both tables start as N(0, 0.1)."""

    def __init__(self, vocabulary: int, config: ConvS2SConfig) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, config.embedding_size)  # E
        self.positions = Positions(config.positions, config.embedding_size)  # p

    def initialize_(self, generator: torch.Generator) -> None:
        """Tables have no weight normalisation, and a small start."""
        for table in (self.words, self.positions.table):
            nn.init.normal_(table.weight, 0.0, 0.1, generator=generator)

    def forward(self, words: Tensor, places: Tensor) -> Tensor:
        """Words (B, I), and places that are counted from 0, (I,) or (B, I) -> (B, I, f)."""
        placed: Tensor = embed(words, self.words.weight) + self.positions(places)
        return placed


class ConvolutionalEncoder(nn.Module):
    """`x <- (GLU(conv(x)) + x) * sqrt(1/2)` from layer to layer, between maps f -> d and d -> f.

    The gradient that comes back to it is divided by twice the number of layers that attend to it.
    That of the embeddings which attention mixes with its outputs is not.
    """

    def __init__(self, vocabulary: int, config: ConvS2SConfig, dropout: Dropout) -> None:
        super().__init__()
        f, d, keep = config.embedding_size, config.hidden_size, 1 - config.dropout
        self.embedding = PlacedEmbedding(vocabulary, config)
        self.inward = WeightNormLinear(f, d, keep)
        self.convolutions = nn.ModuleList(
            GatedConvolution(d, config.kernel, config.dropout) for _ in range(config.layers)
        )
        self.outward = WeightNormLinear(d, f)
        self.dropout, self.kernel = dropout, config.kernel
        self.gradient_factor = 1 / (2 * config.layers)

    def forward(self, sources: Tensor, lengths: Tensor | None = None) -> Encoded:
        """Sources (B, I), and their lengths (B,) on the CPU where they are not all I.

        The states are z (B, I, f), the embeddings travel in `ends`; the sentence is the mean of z.
        """
        places = torch.arange(sources.shape[1], device=sources.device)
        embedded: Tensor = self.dropout(self.embedding(sources, places))
        own = None if lengths is None else lengths.to(sources.device).unsqueeze(1)  # (B, 1)
        padding = None if own is None else (places >= own).unsqueeze(-1)  # (B, I, 1)
        states = self.inward(embedded)
        for convolution in self.convolutions:
            inputs = self.dropout(_cleared(states, padding))
            seen = convolution(centred_windows(inputs, self.kernel))
            states = (seen + states) * ROOT_OF_HALF
        states = scale_gradient(_cleared(self.outward(states), padding), self.gradient_factor)
        return Encoded(states, (embedded,), states.sum(1) / (len(places) if own is None else own))


def _cleared(states: Tensor, padding: Tensor | None) -> Tensor:
    """Zeros where the source has ended, as before its first place. (B, I, ...) -> the same."""
    return states if padding is None else states.masked_fill(padding, 0.0)


class ConvS2SState(NamedTuple):
    """The decoder between two steps, for K hypotheses of each source."""

    inputs: tuple[Tensor, ...]  # of each convolution, the last k - 1: (B, K, k - 1, d)
    place: Tensor  # (B, K): of the next word, counted from 0
    attentional: Tensor  # (B, K, f): z_j, what the output layer reads


class ConvolutionalDecoder(nn.Module):
    """`h = GLU(conv(x))`, `x <- (Attention(h) + x) * sqrt(1/2)` from layer to layer.

    A convolution sees the word of its step and the k - 1 before it; zeros stand before the first.
    The attention that it tells is the mean over layers.
    """

    def __init__(self, vocabulary: int, config: ConvS2SConfig, dropout: Dropout) -> None:
        super().__init__()
        f, d, keep = config.embedding_size, config.hidden_size, 1 - config.dropout
        self.placed = PlacedEmbedding(vocabulary, config)
        self.inward = WeightNormLinear(f, d, keep)
        self.convolutions = nn.ModuleList(
            GatedConvolution(d, config.kernel, config.dropout) for _ in range(config.layers)
        )
        self.attentions = nn.ModuleList(MultiStepAttention(d, f) for _ in range(config.layers))
        self.outward = WeightNormLinear(d, f)
        self.dropout, self.kernel, self.hidden_size = dropout, config.kernel, d

    @property
    def embedding(self) -> nn.Embedding:
        """E_t."""
        return self.placed.words

    def memory(self, encoded: Encoded, mask: Tensor | None) -> MultiStepMemory:
        """What every step attends to; the mask (B, I) is that of the source."""
        return multi_step_memory(encoded.states, encoded.ends[0], mask)

    def start(self, encoded: Encoded) -> ConvS2SState:
        """The state before the first step, K = 1."""
        zeros, shape = encoded.states.new_zeros, (len(encoded.states), 1)
        inputs = [zeros(*shape, self.kernel - 1, self.hidden_size) for _ in self.convolutions]
        place = zeros(shape, dtype=torch.long)
        return ConvS2SState(tuple(inputs), place, zeros(*shape, encoded.states.shape[-1]))

    def step(
        self,
        words: Tensor,
        state: ConvS2SState,
        memory: MultiStepMemory,
        follower: AttentionFollower | None = None,
    ) -> tuple[ConvS2SState, Tensor]:
        """One step of every hypothesis: y_{j-1} (B, K) -> the next state, alpha_j (B, K, I)."""
        _refuse(follower)
        seen: list[Tensor] = []

        def windows(inputs: Tensor) -> Tensor:  # (B, K, d) -> (B, K, k, d)
            before = state.inputs[len(seen)]
            seen.append(torch.cat([before, inputs.unsqueeze(2)], 2))
            return seen[-1]

        attentional, weights = self._layers(words, state.place, memory, windows)
        inputs = tuple(one[:, :, 1:] for one in seen)
        return ConvS2SState(inputs, state.place + 1, attentional), weights

    def unroll(
        self,
        words: Tensor,
        state: ConvS2SState,
        memory: MultiStepMemory,
        *,
        attention_gradient: bool = False,  # noqa: ARG002 - autograd has it in any case
        follower: AttentionFollower | None = None,
    ) -> tuple[Tensor, Tensor]:
        """All steps with known words (B, J) -> z (B, J, f), alpha (B, J, I), at once."""
        _refuse(follower)
        before = iter(state.inputs)

        def windows(inputs: Tensor) -> Tensor:  # (B, J, d) -> (B, J, k, d)
            return windows_of(torch.cat([next(before).squeeze(1), inputs], 1), self.kernel)

        places = state.place + torch.arange(words.shape[1], device=words.device)  # (B, J)
        return self._layers(words, places, memory, windows)

    def _layers(
        self,
        words: Tensor,
        places: Tensor,
        memory: MultiStepMemory,
        windows: Callable[[Tensor], Tensor],
    ) -> tuple[Tensor, Tensor]:
        """Words and their places (B, Q) -> z (B, Q, f), alpha (B, Q, I).

        `windows` is called once in each layer, and gives what the convolution sees of its inputs.
        """
        embedded: Tensor = self.dropout(self.placed(words, places))
        states, attention = self.inward(embedded), []
        for convolution, attend in zip(self.convolutions, self.attentions, strict=True):
            hidden = convolution(windows(self.dropout(states)))  # (B, Q, d)
            attended, weights = attend(hidden, embedded, memory)
            states = (attended + states) * ROOT_OF_HALF
            attention.append(weights)
        return self.outward(states), torch.stack(attention).mean(0)


def _refuse(follower: AttentionFollower | None) -> None:
    """Refuse an add-on that changes attention from step to step, under whatever name."""
    if follower is not None:
        raise ModelError(f"an add-on that changes attention does not go here: {_NO_COVERAGE}")


class ConvS2S(AttentionSystem):
    """Convolutional encoder and decoder of equally many layers, and a normalised output layer.

    The layers have their own first values, whatever `[init]` says; that is for add-ons.
    """

    Config = ConvS2SConfig
    recipe = Recipe(
        optimizer={"name": "sgd", "learning_rate": 0.25, "momentum": 0.99, "nesterov": True},
        schedule={"name": "plateau", "multiply_by": 0.1, "keep_lowering": True},
    )
    refuses: ClassVar[Mapping[str, str]] = {"coverage": _NO_COVERAGE}

    def __init__(self, config: "SystemConfig", vocabulary: int) -> None:
        super().__init__(config, vocabulary)
        own = config.of_type(ConvS2SConfig)
        f, dropout = own.embedding_size, Dropout(own.dropout)
        self.assemble(
            ConvolutionalEncoder(vocabulary, own, dropout),
            ConvolutionalDecoder(vocabulary, own, dropout),
            Sizes(vocabulary, f, f),
            dropout,
        )
        self.add_module("output", WeightNormLinear(f, vocabulary, 1 - own.dropout))
