"""RAS (Chopra et al. 2016): attention over convolved embeddings, and a simple recurrent decoder.

RAS-Elman is the published system with the better figures; `cell = "lstm"` makes RAS-LSTM of it.
"""

from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal, NamedTuple

import torch
from torch import Tensor, nn

from ledeline.config.recipe import Recipe
from ledeline.config.section import SIZE, Limit, at_least, below, section
from ledeline.model.addons.addon import Sizes
from ledeline.model.attention_system import AttentionSystem
from ledeline.model.layers.attention import AttentionFollower, Memory, attend_by_product
from ledeline.model.layers.dropout import Dropout
from ledeline.model.layers.encoder import Encoded, embed
from ledeline.model.layers.positions import Positions

if TYPE_CHECKING:
    from ledeline.model.system_config import SystemConfig

_ODD: Final = Limit(lambda value: value % 2 == 1, "must be odd")


@section
class RasConfig:
    """RAS: a convolution and an Elman network or LSTM (Chopra et al. 2016)."""

    free: ClassVar[tuple[str, ...]] = ("dropout",)  # keys that a run may change on its way

    name: Annotated[Literal["ras"], "The system."] = "ras"
    embedding_size: Annotated[int, "D, of the word embeddings.", SIZE] = 512
    hidden_size: Annotated[
        int, "H, of the decoder and the convolution; as embedding_size in the paper.", SIZE
    ] = 512
    width: Annotated[int, "Words that the convolution sees at once; odd.", SIZE, _ODD] = 5
    positions: Annotated[
        int, "Places with a vector of their own; later ones share the last.", SIZE
    ] = 1024
    cell: Annotated[Literal["elman", "lstm"], "The recurrent unit of the decoder."] = "elman"
    dropout: Annotated[
        float, "Share of values dropped before the output.", at_least(0), below(1)
    ] = 0.0

    @property
    def title(self) -> str:
        """The paper has a name for each of the two."""
        return "RAS-LSTM" if self.cell == "lstm" else "RAS-Elman"


class RasEncoder(nn.Module):
    """`a_i = x_i + l_i`, a word and its place; `z_i = sum_{h=-q/2}^{q/2} B_h a_{i+h}`.

    Beyond the ends of the source a_i is 0. Attention asks z_i, which is the one end, and mixes the
    words x_i alone, which are the states. The paper has D = H; where they differ, the convolution
    maps D values to H. The sentence vector is the mean of x_i; the paper has none.
    """

    def __init__(self, vocabulary: int, config: RasConfig) -> None:
        super().__init__()
        d, h, q = config.embedding_size, config.hidden_size, config.width
        self.embedding = nn.Embedding(vocabulary, d)
        self.positions = Positions(config.positions, d)
        self.convolution = nn.Conv1d(d, h, q, padding=q // 2, bias=False)

    def forward(self, sources: Tensor, lengths: Tensor | None = None) -> Encoded:
        """Sources (B, I), and their lengths (B,) on the CPU where they are not all I."""
        words = embed(sources, self.embedding.weight)  # (B, I, D)
        placed = words + self.positions.of_length(sources.shape[1])
        if lengths is None:
            return Encoded(words, (self._convolved(placed),), words.mean(1))
        own = lengths.to(sources.device).unsqueeze(1)  # (B, 1)
        places = torch.arange(sources.shape[1], device=sources.device)
        mask = (places < own).unsqueeze(-1)  # (B, I, 1)
        mean = (words * mask).sum(1) / own
        return Encoded(words, (self._convolved(placed * mask),), mean)

    def _convolved(self, placed: Tensor) -> Tensor:
        """`a` (B, I, D) -> z (B, I, H)."""
        convolved: Tensor = self.convolution(placed.transpose(1, 2))
        return convolved.transpose(1, 2)


class RasState(NamedTuple):
    """The decoder between two steps, for K hypotheses of each source."""

    hidden: Tensor  # (B, K, H): h_t
    cell: tuple[Tensor, ...]  # (B, K, H): m_t of the LSTM; the Elman network has none
    attentional: Tensor  # (B, K, H + D): [h_t; c_t]


class RasElman(nn.Module):
    """`h_t = sigmoid(W1 y_{t-1} + W2 h_{t-1} + W3 c_t)`; W1, W2 and W3 are one matrix."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.mix = nn.Linear(input_size, hidden_size, bias=False)

    def start(self, hidden: Tensor) -> tuple[Tensor, ...]:  # noqa: ARG002
        """It has no cell."""
        return ()

    def forward(self, seen: Tensor, cell: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """`[y_{t-1}; h_{t-1}; c_t]` (B, K, 2D + H) -> h_t (B, K, H)."""
        return torch.sigmoid(self.mix(seen)), cell


class RasLstm(nn.Module):
    """`m_t = m_{t-1} * f + i * i'`, `h_t = m_t * o`, without a tanh on m_t.

    `i, f, o = sigmoid(W y_{t-1} + W h_{t-1} + W c_t)` and i' with tanh, each with its own matrices;
    they are one here, in the order input, forget, candidate, output.
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.gates = nn.Linear(input_size, 4 * hidden_size, bias=False)

    def start(self, hidden: Tensor) -> tuple[Tensor, ...]:
        """`m_0 = 0`, of the shape of h_0."""
        return (torch.zeros_like(hidden),)

    def forward(self, seen: Tensor, cell: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """`[y_{t-1}; h_{t-1}; c_t]` (B, K, 2D + H), m_{t-1} -> h_t (B, K, H), m_t."""
        in_gate, forget, candidate, out_gate = self.gates(seen).chunk(4, -1)
        kept = torch.sigmoid(forget) * cell[0]
        after = kept + torch.sigmoid(in_gate) * torch.tanh(candidate)
        return torch.sigmoid(out_gate) * after, (after,)


class RasDecoder(nn.Module):
    """`alpha_t[i] = softmax_i(z_i . h_{t-1})`, `c_t = sum_i alpha_t[i] x_i`, then h_t.

    The output layer reads `[h_t; c_t]`: its matrix is W4 and W5 beside each other. Where h_t starts
    is not published; h_0 is 0 here, so the first step looks at all places alike.
    """

    def __init__(self, vocabulary: int, config: RasConfig) -> None:
        super().__init__()
        d, h = config.embedding_size, config.hidden_size
        self.hidden_size = h
        self.embedding = nn.Embedding(vocabulary, d)
        self.cell = RasLstm(2 * d + h, h) if config.cell == "lstm" else RasElman(2 * d + h, h)

    def start(self, encoded: Encoded) -> RasState:
        """The state before the first step, K = 1."""
        words = encoded.states
        hidden = words.new_zeros(len(words), 1, self.hidden_size)
        contexts = words.new_zeros(len(words), 1, words.shape[-1])
        return RasState(hidden, self.cell.start(hidden), torch.cat([hidden, contexts], -1))

    def memory(self, encoded: Encoded, mask: Tensor | None) -> Memory:
        """What every step attends to; the mask (B, I) is that of the source."""
        return Memory(encoded.states, encoded.ends[0], mask)

    def step(
        self,
        words: Tensor,
        state: RasState,
        memory: Memory,
        follower: AttentionFollower | None = None,
    ) -> tuple[RasState, Tensor]:
        """One step of every hypothesis: y_{t-1} (B, K) -> the next state, alpha_t (B, K, I)."""
        return self._advance(embed(words, self.embedding.weight), state, memory, follower)

    def unroll(
        self,
        words: Tensor,
        state: RasState,
        memory: Memory,
        *,
        attention_gradient: bool = False,  # noqa: ARG002 - autograd has it in any case
        follower: AttentionFollower | None = None,
    ) -> tuple[Tensor, Tensor]:
        """All steps with known words (B, J) -> [h; c] (B, J, H + D), alpha (B, J, I)."""
        embedded, states, attentions = embed(words, self.embedding.weight), [], []
        for j in range(words.shape[1]):
            state, weights = self._advance(embedded[:, j : j + 1], state, memory, follower)
            states.append(state.attentional)
            attentions.append(weights)
        return torch.cat(states, 1), torch.cat(attentions, 1)

    def _advance(
        self,
        embedded: Tensor,
        state: RasState,
        memory: Memory,
        follower: AttentionFollower | None,
    ) -> tuple[RasState, Tensor]:
        contexts, weights = attend_by_product(state.hidden, memory, follower)
        seen = torch.cat([embedded, state.hidden, contexts], -1)  # (B, K, 2D + H)
        hidden, cell = self.cell(seen, state.cell)
        return RasState(hidden, cell, torch.cat([hidden, contexts], -1)), weights


class Ras(AttentionSystem):
    """Convolutional attention and an Elman network or LSTM; the output layer has a bias, too."""

    Config = RasConfig
    recipe = Recipe(
        optimizer={"name": "sgd", "learning_rate": 0.5},
        schedule={"name": "plateau", "compare_with": "previous"},
    )

    def __init__(self, config: "SystemConfig", vocabulary: int) -> None:
        super().__init__(config, vocabulary)
        own = config.of_type(RasConfig)
        d, h = own.embedding_size, own.hidden_size
        self.assemble(
            RasEncoder(vocabulary, own),
            RasDecoder(vocabulary, own),
            Sizes(vocabulary, d, h + d, own_states=d, own_keys=h, own_queries=h),
            Dropout(own.dropout),
        )
