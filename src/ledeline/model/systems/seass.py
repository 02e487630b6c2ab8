"""SEASS, selective encoding (Zhou et al. 2017): GRUs, a gate on the encoder, a maxout readout.

The equations are those of the authors' own code where it and the paper differ; the key `query` has
the one difference that matters.
"""

import math
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal, NamedTuple

import torch
from torch import Tensor, nn

from ledeline.config.recipe import Recipe
from ledeline.config.section import SIZE, Limit, at_least, below, between, section
from ledeline.model.addons.addon import Sizes
from ledeline.model.addons.sgate import SelectiveGate, SelectiveGateConfig
from ledeline.model.attention_system import AttentionSystem
from ledeline.model.layers.additive_attention import AdditiveAttention
from ledeline.model.layers.attention import AttentionFollower, Memory
from ledeline.model.layers.dropout import Dropout
from ledeline.model.layers.encoder import Encoded, both_directions, embed

if TYPE_CHECKING:
    from ledeline.model.system_config import SystemConfig

_EVEN: Final = Limit(lambda value: value % 2 == 0, "must be even")


@section
class SeassConfig:
    """SEASS: GRUs with a selective gate (Zhou et al. 2017); the defaults are the published ones."""

    title: ClassVar[str] = "SEASS"
    free: ClassVar[tuple[str, ...]] = ("dropout",)  # keys that a run may change on its way

    name: Annotated[Literal["seass"], "The system."] = "seass"
    embedding_size: Annotated[int, "D, of the word embeddings.", SIZE] = 300
    hidden_size: Annotated[
        int,
        "H, of the decoder, and of both directions of the encoder together; even.",
        between(2, 2**16),
        _EVEN,
    ] = 512
    attention_size: Annotated[int, "Hidden units of attention.", SIZE] = 512
    readout_size: Annotated[
        int, "Units before maxout, which leaves half of them; even.", between(2, 2**16), _EVEN
    ] = 512
    dropout: Annotated[
        float, "Share of values dropped before the output.", at_least(0), below(1)
    ] = 0.5
    query: Annotated[
        Literal["current", "previous"],
        "With which decoder state attention asks at step t: s_t or s_{t-1}.",
    ] = "current"


class SeassEncoder(nn.Module):
    """`h_i = [fwd_i; bwd_i]`, `s = [fwd_I; bwd_1]`, `h'_i = h_i * sigmoid(W_s h_i + U_s s + b)`.

    The gate is the add-on sGate, as a layer. The states are h'_i, and the one end is bwd_1, which
    the decoder starts from.
    """

    def __init__(self, vocabulary: int, config: SeassConfig, sizes: Sizes) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, config.embedding_size)
        self.layer = nn.GRU(
            config.embedding_size, config.hidden_size // 2, batch_first=True, bidirectional=True
        )
        self.gate = SelectiveGate(SelectiveGateConfig(), sizes)

    def forward(self, sources: Tensor, lengths: Tensor | None = None) -> Encoded:
        """Sources (B, I), and their lengths (B,) on the CPU where they are not all I."""
        return self.gate.encoded(self.ungated(sources, lengths))

    def ungated(self, sources: Tensor, lengths: Tensor | None = None) -> Encoded:
        """The same with the states h_i, which no gate has changed."""
        embedded = embed(sources, self.embedding.weight)
        states, last = both_directions(self.layer, embedded, lengths)  # (B, I, H), (2, B, H / 2)
        return Encoded(states, (last[1],), torch.cat([last[0], last[1]], -1))


class SeassState(NamedTuple):
    """The decoder between two steps, for K hypotheses of each source."""

    hidden: Tensor  # (B, K, H): s_t
    context: Tensor  # (B, K, H): c_t
    attentional: Tensor  # (B, K, R / 2): m_t


class SeassDecoder(nn.Module):
    """`s_t = GRU([w_{t-1}; c_{t-1}], s_{t-1})`, `s_0 = tanh(W_d bwd_1 + b)`, `c_0 = 0`.

    Attention asks with s_t, or s_{t-1}, and gives c_t. Then
    `r_t = W_r w_{t-1} + U_r c_t + V_r s_t + b` has R values, and `m_t = maxout(r_t)`, which the
    output layer reads, half as many. W_r, U_r and V_r are one matrix.
    """

    def __init__(self, vocabulary: int, config: SeassConfig) -> None:
        super().__init__()
        d, h = config.embedding_size, config.hidden_size
        self.embedding = nn.Embedding(vocabulary, d)
        self.first = nn.Linear(h // 2, h)  # W_d
        self.cell = nn.GRUCell(d + h, h)
        self.attention = AdditiveAttention(h, h, config.attention_size)
        self.readout = nn.Linear(d + 2 * h, config.readout_size)  # [W_r, U_r, V_r]
        self.asks_with_previous = config.query == "previous"

    def start(self, encoded: Encoded) -> SeassState:
        """The state before the first step, K = 1."""
        hidden = torch.tanh(self.first(encoded.ends[0])).unsqueeze(1)  # (B, H / 2) -> (B, 1, H)
        num_values = self.readout.out_features // 2
        attentional = hidden.new_zeros(*hidden.shape[:2], num_values)
        return SeassState(hidden, torch.zeros_like(hidden), attentional)

    def memory(self, encoded: Encoded, mask: Tensor | None) -> Memory:
        """What every step attends to; the mask (B, I) is that of the source."""
        return self.attention.memory_of(encoded.states, mask)

    def step(
        self,
        words: Tensor,
        state: SeassState,
        memory: Memory,
        follower: AttentionFollower | None = None,
    ) -> tuple[SeassState, Tensor]:
        """One step of every hypothesis: y_{t-1} (B, K) -> the next state, alpha_t (B, K, I)."""
        embedded = embed(words, self.embedding.weight)
        state, weights = self._advance(embedded, state, memory, follower)
        read = self._read(embedded, state.context, state.hidden)
        return state._replace(attentional=read), weights

    def unroll(
        self,
        words: Tensor,
        state: SeassState,
        memory: Memory,
        *,
        attention_gradient: bool = False,  # noqa: ARG002 - autograd has it in any case
        follower: AttentionFollower | None = None,
    ) -> tuple[Tensor, Tensor]:
        """All steps with known words (B, J) -> m (B, J, R / 2), alpha (B, J, I)."""
        embedded = embed(words, self.embedding.weight)
        states, contexts, attentions = [], [], []
        for j in range(words.shape[1]):
            state, weights = self._advance(embedded[:, j : j + 1], state, memory, follower)
            states.append(state.hidden)
            contexts.append(state.context)
            attentions.append(weights)
        read = self._read(embedded, torch.cat(contexts, 1), torch.cat(states, 1))
        return read, torch.cat(attentions, 1)

    def _advance(
        self,
        embedded: Tensor,
        state: SeassState,
        memory: Memory,
        follower: AttentionFollower | None,
    ) -> tuple[SeassState, Tensor]:
        """w_{t-1} (B, K, D) -> the state with s_t and c_t, not yet m_t, and alpha_t (B, K, I)."""
        inputs = torch.cat([embedded, state.context], -1)  # (B, K, D + H)
        after = self.cell(inputs.flatten(0, 1), state.hidden.flatten(0, 1))
        hidden = after.view_as(state.hidden)
        queries = state.hidden if self.asks_with_previous else hidden
        context, weights = self.attention(queries, memory, follower)
        return state._replace(hidden=hidden, context=context), weights

    def _read(self, embedded: Tensor, contexts: Tensor, states: Tensor) -> Tensor:
        """w_{t-1} (B, K, D), c_t (B, K, H), s_t (B, K, H) -> m_t (B, K, R / 2)."""
        return maxout(self.readout(torch.cat([embedded, contexts, states], -1)))


def maxout(values: Tensor) -> Tensor:
    """`m[k] = max(r[2k], r[2k + 1])`: the larger one of two neighbours. (..., R) -> (..., R / 2).

    The gradient goes to one of the two, also where they are the same.
    """
    return values.view(*values.shape[:-1], -1, 2).max(-1).values


class Seass(AttentionSystem):
    """BiGRU encoder with a selective gate, GRU decoder with additive attention, maxout.

    The published weights of one dimension, such as biases, started at random too; ours start at 0.
    """

    Config = SeassConfig
    recipe = Recipe(
        optimizer={"name": "adam", "learning_rate": 0.001},
        schedule={"name": "plateau"},
        init={"name": "xavier", "gain": math.sqrt(3), "distribution": "normal"},
    )
    refuses: ClassVar[dict[str, str]] = {"sgate": "it has the selective gate already"}

    def __init__(self, config: "SystemConfig", vocabulary: int) -> None:
        super().__init__(config, vocabulary)
        own = config.of_type(SeassConfig)
        sizes = Sizes(
            vocabulary,
            own.embedding_size,
            own.readout_size // 2,
            own_states=own.hidden_size,
            own_keys=own.attention_size,
            own_queries=own.hidden_size,
        )
        self.assemble(
            SeassEncoder(vocabulary, own, sizes),
            SeassDecoder(vocabulary, own),
            sizes,
            Dropout(own.dropout),
        )
