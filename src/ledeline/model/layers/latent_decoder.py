"""The decoder of DRGD (Li et al. 2017): GRUs with attention, and a latent variable at each step.

Legend: B pairs, I source length, J steps, K hypotheses, D embedding size, H hidden size,
S = 2H size of an encoder state, Z latent size.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from ledeline.model.layers.additive_attention import AdditiveAttention
from ledeline.model.layers.attention import AttentionFollower, Memory
from ledeline.model.layers.dropout import Dropout, Noise
from ledeline.model.layers.encoder import Encoded, embed
from ledeline.model.layers.latent import GatedFusion, Gaussian, Posterior, SumFusion


@dataclass(frozen=True)
class LatentDecoderSizes:
    """How large the parts of the decoder are."""

    vocabulary: int  # V
    embedding: int  # D
    hidden: int  # H
    latent: int  # Z
    attention: int  # of a key

    @property
    def states(self) -> int:
        """S, of an encoder state `[fwd_i; bwd_i]`."""
        return 2 * self.hidden


class CellStep(NamedTuple):
    """What a cell has done in a step; the last of its states goes on to the fusion."""

    hidden: tuple[Tensor, ...]  # what it carries to the next step, (B, K, H) each
    for_posterior: Tensor  # the h that the posterior reads: (B, K, H)
    context: Tensor  # c_j: (B, K, S)
    weights: Tensor  # alpha_j: (B, K, I)


class _AttendingCell(nn.Module):
    """Two GRU steps with attention between them."""

    num_states: ClassVar[int]

    def __init__(self, first_size: int, second_size: int, sizes: LatentDecoderSizes) -> None:
        super().__init__()
        self.first = nn.GRUCell(first_size, sizes.hidden)
        self.attention = AdditiveAttention(sizes.hidden, sizes.states, sizes.attention)
        self.second = nn.GRUCell(second_size, sizes.hidden)

    def initialize_(self, generator: torch.Generator) -> None:
        """Orthogonal recurrent matrices, as published."""
        for cell in (self.first, self.second):
            fill_gates_(cell.weight_ih, cell.weight_hh, generator)


class TwoGrus(_AttendingCell):
    """The paper's two GRUs, each with a state of its own.

    `h1_j = GRU1(E_t y_{j-1}, h1_{j-1})`, `c_j = attention(h1_j)`,
    `h2_j = GRU2([E_t y_{j-1}; c_j], h2_{j-1})`. The posterior reads h1_{j-1}.
    """

    num_states = 2

    def __init__(self, sizes: LatentDecoderSizes) -> None:
        super().__init__(sizes.embedding, sizes.embedding + sizes.states, sizes)

    def forward(
        self,
        embedded: Tensor,
        hidden: tuple[Tensor, ...],
        memory: Memory,
        follower: AttentionFollower | None,
    ) -> CellStep:
        """E_t y_{j-1} (B, K, D), two states (B, K, H) -> the step."""
        before, other = hidden
        first = _advanced(self.first, embedded, before)
        context, weights = self.attention(first, memory, follower)
        second = _advanced(self.second, torch.cat([embedded, context], -1), other)
        return CellStep((first, second), before, context, weights)


class TwoStepGru(_AttendingCell):
    """The released code's cell: one state, which takes two steps.

    `h1_j = GRU1(E_t y_{j-1}, h2_{j-1})`, `c_j = attention(h1_j)`, `h2_j = GRU2(c_j, h1_j)`. The
    posterior reads h1_j.
    """

    num_states = 1

    def __init__(self, sizes: LatentDecoderSizes) -> None:
        super().__init__(sizes.embedding, sizes.states, sizes)

    def forward(
        self,
        embedded: Tensor,
        hidden: tuple[Tensor, ...],
        memory: Memory,
        follower: AttentionFollower | None,
    ) -> CellStep:
        """E_t y_{j-1} (B, K, D), one state (B, K, H) -> the step."""
        first = _advanced(self.first, embedded, hidden[0])
        context, weights = self.attention(first, memory, follower)
        return CellStep((_advanced(self.second, context, first),), first, context, weights)


def _advanced(cell: nn.GRUCell, inputs: Tensor, before: Tensor) -> Tensor:
    """A step of every hypothesis. (B, K, ...), (B, K, H) -> (B, K, H)."""
    after: Tensor = cell(inputs.flatten(0, 1), before.flatten(0, 1))
    return after.view_as(before)


class DeepOutput(nn.Module):
    """The released code's layer below the output: `tanh(W_d d_j + W_y E_t y_{j-1} + W_c c_j + b)`.

    It is as large as an embedding.
    """

    def __init__(self, sizes: LatentDecoderSizes) -> None:
        super().__init__()
        self.of_fused = nn.Linear(sizes.hidden, sizes.embedding)  # W_d, b
        self.of_word = nn.Linear(sizes.embedding, sizes.embedding, bias=False)  # W_y
        self.of_context = nn.Linear(sizes.states, sizes.embedding, bias=False)  # W_c

    def forward(self, fused: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        """d_j (B, K, H), E_t y_{j-1} (B, K, D), c_j (B, K, S) -> (B, K, D)."""
        seen = self.of_fused(fused) + self.of_word(embedded) + self.of_context(context)
        result: Tensor = seen.tanh()
        return result


class LatentState(NamedTuple):
    """The decoder between two steps, for K hypotheses of each source."""

    hidden: tuple[Tensor, ...]  # (B, K, H) each
    latent: Tensor  # z_j: (B, K, Z)
    attentional: Tensor  # what the output layer reads: (B, K, H), or (B, K, D) with a deep output


class LatentSteps(NamedTuple):
    """All steps with known words."""

    states: Tensor  # what the output layer reads: (B, J, H), or (B, J, D) with a deep output
    attention: Tensor  # alpha: (B, J, I)
    latents: Tensor  # z: (B, J, Z)
    posterior: Gaussian  # (B, J, Z)


class LatentDecoder(nn.Module):
    """A cell with attention, `z_j ~ q(z_j | y_<j, z_<j)`, and a fusion of both for the output.

    All states of the cell start from `tanh(W mean_i h_i + b)`, for the mean has size 2H; `z_0 = 0`.
    In training z_j is drawn, afresh at each step and update; else it is the mean of q.
    """

    CELLS: ClassVar = {"two": TwoGrus, "one": TwoStepGru}
    FUSIONS: ClassVar = {"gated": GatedFusion, "sum": SumFusion}

    def __init__(
        self,
        sizes: LatentDecoderSizes,
        dropout: Dropout,
        *,
        cell: Literal["two", "one"],
        fusion: Literal["gated", "sum"],
        deep_output: bool,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(sizes.vocabulary, sizes.embedding)  # E_t
        self.initial = nn.Linear(sizes.states, sizes.hidden)
        self.cell = self.CELLS[cell](sizes)
        self.posterior = Posterior(sizes.embedding, sizes.hidden, sizes.latent)
        self.fusion = self.FUSIONS[fusion](sizes.hidden, sizes.latent)
        self.deep_output = DeepOutput(sizes) if deep_output else None
        self.output_size = sizes.embedding if deep_output else sizes.hidden
        self.latent_size, self.dropout, self.noise = sizes.latent, dropout, Noise()

    def initialize_(self, generator: torch.Generator) -> None:
        """Small embeddings, as published."""
        nn.init.normal_(self.embedding.weight, 0.0, 0.01, generator=generator)

    def start(self, encoded: Encoded) -> LatentState:
        """The state before the first step, K = 1; the end of the encoder is its mean state."""
        hidden = self.initial(encoded.ends[0]).tanh().unsqueeze(1)  # (B, S) -> (B, 1, H)
        latent = hidden.new_zeros(len(hidden), 1, self.latent_size)
        attentional = hidden.new_zeros(len(hidden), 1, self.output_size)
        return LatentState((hidden,) * self.cell.num_states, latent, attentional)

    def memory(self, encoded: Encoded, mask: Tensor | None) -> Memory:
        """What every step attends to; the mask (B, I) is that of the source."""
        return self.cell.attention.memory_of(encoded.states, mask)

    def step(
        self,
        words: Tensor,
        state: LatentState,
        memory: Memory,
        follower: AttentionFollower | None = None,
    ) -> tuple[LatentState, Tensor]:
        """One step of every hypothesis, with `z_j = mu_j`: y_{j-1} (B, K) -> alpha_j (B, K, I)."""
        after, weights, _ = self._advance(self._embedded(words), state, memory, follower, None)
        return after, weights

    def unroll(
        self,
        words: Tensor,
        state: LatentState,
        memory: Memory,
        *,
        attention_gradient: bool = False,  # noqa: ARG002 - autograd has it in any case
        follower: AttentionFollower | None = None,
    ) -> tuple[Tensor, Tensor]:
        """All steps with known words (B, J) -> the states (B, J, H), alpha (B, J, I)."""
        steps = self.follow(words, state, memory, follower)
        return steps.states, steps.attention

    def follow(
        self,
        words: Tensor,
        state: LatentState,
        memory: Memory,
        follower: AttentionFollower | None = None,
    ) -> LatentSteps:
        """As `unroll`, with what was drawn and from where."""
        embedded = self._embedded(words)
        noise = self.noise(embedded.new_empty(*words.shape, self.latent_size))  # (B, J, Z)
        states, attentions, posteriors = [], [], []
        for j in range(words.shape[1]):
            one = slice(j, j + 1)
            state, weights, posterior = self._advance(
                embedded[:, one], state, memory, follower, noise[:, one]
            )
            states.append(state)
            attentions.append(weights)
            posteriors.append(posterior)
        return LatentSteps(
            torch.cat([one.attentional for one in states], 1),
            torch.cat(attentions, 1),
            torch.cat([one.latent for one in states], 1),
            Gaussian(*(torch.cat(part, 1) for part in zip(*posteriors, strict=True))),
        )

    def _embedded(self, words: Tensor) -> Tensor:
        embedded: Tensor = self.dropout(embed(words, self.embedding.weight))
        return embedded

    def _advance(
        self,
        embedded: Tensor,
        state: LatentState,
        memory: Memory,
        follower: AttentionFollower | None,
        noise: Tensor | None,
    ) -> tuple[LatentState, Tensor, Gaussian]:
        step = self.cell(embedded, state.hidden, memory, follower)
        posterior = self.posterior(embedded, state.latent, step.for_posterior)
        latent = posterior.at(noise)
        fused = self.fusion(step.hidden[-1], latent)
        if self.deep_output is not None:
            fused = self.deep_output(fused, embedded, step.context)
        return LatentState(step.hidden, latent, fused), step.weights, posterior


def fill_gates_(inputs: Tensor, recurrent: Tensor, generator: torch.Generator) -> None:
    """Fill the matrices of a GRU gate by gate: Xavier normal (3H, ...), orthogonal (3H, H)."""
    for block in inputs.chunk(3):
        nn.init.xavier_normal_(block, generator=generator)
    for block in recurrent.chunk(3):
        nn.init.orthogonal_(block, generator=generator)
