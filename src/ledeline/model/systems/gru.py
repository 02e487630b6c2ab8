"""EncDec with GRUs instead of LSTMs: a quarter fewer weights in its recurrent layers.

Cho et al. 2014, with the paper's attention and input feeding. It is also the shortest example of a
system: layers of its own, everything else from `AttentionSystem`.
"""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple, cast

import torch
from torch import Tensor, nn

from ledeline.config.section import DEPTH, SIZE, at_least, below, section
from ledeline.model.addons.addon import Sizes
from ledeline.model.attention_system import AttentionSystem
from ledeline.model.layers.attention import Attention, AttentionFollower, Memory
from ledeline.model.layers.dropout import Dropout
from ledeline.model.layers.encoder import Encoded, embed, summed_directions

if TYPE_CHECKING:
    from ledeline.model.system_config import SystemConfig


@section
class GruConfig:
    """EncDec with GRUs instead of LSTMs."""

    title: ClassVar[str] = "GRU-EncDec"
    free: ClassVar[tuple[str, ...]] = ("dropout",)  # keys that a run may change on its way

    name: Annotated[Literal["gru"], "The system."] = "gru"
    embedding_size: Annotated[int, "D, of the word embeddings.", SIZE] = 200
    hidden_size: Annotated[int, "H, of each GRU layer and direction.", SIZE] = 400
    layers: Annotated[int, "GRU layers of the encoder, and of the decoder.", DEPTH] = 2
    dropout: Annotated[
        float,
        "Share of values dropped at embeddings, between layers and before the output.",
        at_least(0),
        below(1),
    ] = 0.3


class GruEncoder(nn.Module):
    """`h_i = fwd_i + bwd_i`, at every layer."""

    def __init__(self, vocabulary: int, config: GruConfig, dropout: Dropout) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, config.embedding_size)
        sizes = [config.embedding_size] + [config.hidden_size] * (config.layers - 1)
        self.layers = nn.ModuleList(
            nn.GRU(size, config.hidden_size, batch_first=True, bidirectional=True) for size in sizes
        )
        self.dropout = dropout

    def forward(self, sources: Tensor, lengths: Tensor | None = None) -> Encoded:
        """Sources (B, I), and their lengths (B,) on the CPU where they are not all I."""
        states, ends = embed(sources, self.embedding.weight), []
        for layer in self.layers:
            states, last = summed_directions(layer, self.dropout(states), lengths)
            ends.append(last.sum(0))  # (2, B, H) -> (B, H)
        return Encoded(states, tuple(ends), ends[-1])


class GruState(NamedTuple):
    """The decoder between two steps, for K hypotheses of each source."""

    hidden: tuple[Tensor, ...]  # of each layer, (B, K, H)
    attentional: Tensor  # (B, K, H): z_j


class GruDecoder(nn.Module):
    """`zv_j = GRU([E_t y_{j-1}; z_{j-1}], zv_{j-1})`, `z_j = Attention(zv_j)`, `z_0 = 0`."""

    def __init__(self, vocabulary: int, config: GruConfig, dropout: Dropout) -> None:
        super().__init__()
        d, h = config.embedding_size, config.hidden_size
        self.embedding = nn.Embedding(vocabulary, d)
        self.cells = nn.ModuleList(
            nn.GRUCell(size, h) for size in [d + h] + [h] * (config.layers - 1)
        )
        self.attention = Attention(h)
        self.dropout = dropout

    def start(self, encoded: Encoded) -> GruState:
        """The state before the first step, K = 1."""
        hidden = tuple(end.unsqueeze(1) for end in encoded.ends)  # (B, H) -> (B, 1, H)
        return GruState(hidden, torch.zeros_like(hidden[0]))

    def memory(self, encoded: Encoded, mask: Tensor | None) -> Memory:
        """What every step attends to; the mask (B, I) is that of the source."""
        return self.attention.memory_of(encoded.states, mask)

    def step(
        self,
        words: Tensor,
        state: GruState,
        memory: Memory,
        follower: AttentionFollower | None = None,
    ) -> tuple[GruState, Tensor]:
        """One step of every hypothesis: y_{j-1} (B, K) -> the next state, alpha_j (B, K, I)."""
        return self._advance(self._embedded(words), state, memory, follower)

    def unroll(
        self,
        words: Tensor,
        state: GruState,
        memory: Memory,
        *,
        attention_gradient: bool = False,  # noqa: ARG002 - autograd has it in any case
        follower: AttentionFollower | None = None,
    ) -> tuple[Tensor, Tensor]:
        """All steps with known words (B, J) -> z (B, J, H), alpha (B, J, I)."""
        embedded, states, attentions = self._embedded(words), [], []
        for j in range(words.shape[1]):
            state, weights = self._advance(embedded[:, j : j + 1], state, memory, follower)
            states.append(state.attentional)
            attentions.append(weights)
        return torch.cat(states, 1), torch.cat(attentions, 1)

    def _embedded(self, words: Tensor) -> Tensor:
        embedded: Tensor = self.dropout(embed(words, self.embedding.weight))
        return embedded

    def _advance(
        self,
        embedded: Tensor,
        state: GruState,
        memory: Memory,
        follower: AttentionFollower | None,
    ) -> tuple[GruState, Tensor]:
        below, hidden = torch.cat([embedded, state.attentional], -1), []  # (B, K, D + H)
        for number, (cell, before) in enumerate(zip(self.cells, state.hidden, strict=True)):
            below = self.dropout(below) if number else below
            after = cast(nn.GRUCell, cell)(below.flatten(0, 1), before.flatten(0, 1))
            below = after.view_as(before)
            hidden.append(below)
        attentional, weights = self.attention(below, memory, follower)
        return GruState(tuple(hidden), attentional), weights


class GruEncDec(AttentionSystem):
    """GRU encoder and decoder of equally many layers, Luong attention with input feeding."""

    Config = GruConfig

    def __init__(self, config: "SystemConfig", vocabulary: int) -> None:
        super().__init__(config, vocabulary)
        own = config.of_type(GruConfig)
        dropout = Dropout(own.dropout)
        self.assemble(
            GruEncoder(vocabulary, own, dropout),
            GruDecoder(vocabulary, own, dropout),
            Sizes(vocabulary, own.embedding_size, own.hidden_size),
            dropout,
        )
