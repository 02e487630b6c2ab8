"""Coverage: attention knows where it has looked before (Tu et al. 2016, See et al. 2017)."""

from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor, nn

from ledeline.config.section import SIZE, above, at_least, section
from ledeline.model.addons.addon import Addon, AttentionStep, Sizes, View
from ledeline.model.layers.encoder import Encoded
from ledeline.model.pairs import Pairs


@section
class CoverageConfig:
    """Coverage: attention knows where it has looked before; by default looking twice costs."""

    title: ClassVar[str] = "coverage"
    free: ClassVar[tuple[str, ...]] = ("weight",)  # keys that a run may change on its way

    kind: Annotated[
        Literal["see", "linguistic", "neural"],
        "What is kept of each place: see is the sum of its attention (See et al. 2017), linguistic "
        "that sum by the place's fertility, neural a GRU's state (Tu et al. 2016).",
    ] = "see"
    weight: Annotated[float, "Factor of the loss of see; the others have none.", at_least(0)] = 1.0
    fertility: Annotated[float, "N, the highest fertility of linguistic.", above(0)] = 2.0
    size: Annotated[int, "Values that neural keeps of each place.", SIZE] = 10


class SummedCoverage(nn.Module):
    """`C_j[i] = C_{j-1}[i] + alpha_j[i]`."""

    def forward(self, coverage: Tensor, step: AttentionStep) -> Tensor:
        """(B, K, I, 1) before a step -> after it."""
        return coverage + step.weights.unsqueeze(-1)


class LinguisticCoverage(nn.Module):
    """`C_j[i] = C_{j-1}[i] + alpha_j[i] / Phi_i`, with `Phi_i = N sigmoid(U_f h_i)`."""

    def __init__(self, state_size: int, highest: float) -> None:
        super().__init__()
        self.of_state = nn.Linear(state_size, 1, bias=False)  # U_f
        self.highest = highest  # N

    def fertility(self, states: Tensor) -> Tensor:
        """Phi, how much attention each place may need. (B, I, size of h_i) -> (B, I)."""
        return self.highest * torch.sigmoid(self.of_state(states).squeeze(-1))

    def forward(self, coverage: Tensor, step: AttentionStep) -> Tensor:
        """(B, K, I, 1) before a step -> after it."""
        shares = step.weights / self.fertility(step.values).unsqueeze(1)  # (B, K, I)
        return coverage + shares.unsqueeze(-1)


class NeuralCoverage(nn.Module):
    """`C_j[i] = GRU([alpha_j[i]; h_i; q_j], C_{j-1}[i])`, q_j what attention asked with.

    The three parts of the input go through their own columns of the input's matrix, so that the
    whole input, (B, K, I, 1 + sizes), is never made.
    """

    def __init__(self, state_size: int, query_size: int, size: int) -> None:
        super().__init__()
        self.sizes = (1, state_size, query_size)
        self.cell = nn.GRUCell(sum(self.sizes), size)

    def forward(self, coverage: Tensor, step: AttentionStep) -> Tensor:
        """(B, K, I, S) before a step -> after it. Gates: reset, update, candidate."""
        cell = self.cell
        of_weight, of_state, of_query = cell.weight_ih.split(self.sizes, 1)  # type: ignore[no-untyped-call]
        inputs = nn.functional.linear(step.values, of_state, cell.bias_ih).unsqueeze(1)
        inputs = inputs + nn.functional.linear(step.queries, of_query).unsqueeze(2)
        inputs = inputs + step.weights.unsqueeze(-1) * of_weight.squeeze(1)  # (B, K, I, 3S)
        own = nn.functional.linear(coverage, cell.weight_hh, cell.bias_hh)  # (B, K, I, 3S)
        reset_in, update_in, candidate_in = inputs.chunk(3, -1)
        reset_own, update_own, candidate_own = own.chunk(3, -1)
        update = torch.sigmoid(update_in + update_own)
        candidate = torch.tanh(candidate_in + torch.sigmoid(reset_in + reset_own) * candidate_own)
        return (1 - update) * candidate + update * coverage


class Coverage(Addon):
    """The key of place i becomes `key_i + V_c C_{j-1}[i]`, with `C_0 = 0`.

    For additive attention that is the published energy `v^T tanh(W q_j + U h_i + V_c C_{j-1}[i])`.
    The paper's bilinear attention gets `q_j . V_c C_{j-1}[i]` more.

    The kind see has the loss `weight * sum_j sum_i min(alpha_j[i], C_{j-1}[i])`, over the steps of
    the headline and its <eos>, as the loss of the headline is a sum. The others have none. With
    sGate, h_i is the gated state.

    V_c starts at 0, so a system starts as without coverage. The loss of see is for a system that
    has learned to attend, as it was published: from the beginning it teaches attention to move on
    before it knows where to look, the gradient explodes, and nothing is learned (docs/results.md).
    """

    Config = CoverageConfig
    loss_name: str | None = "coverage"
    needs_attention_gradient = True

    def __init__(self, config: CoverageConfig, sizes: Sizes) -> None:
        super().__init__()
        self.weight = config.weight
        self.size = config.size if config.kind == "neural" else 1
        self.of_coverage = nn.Linear(self.size, sizes.keys, bias=False)  # V_c
        self.update: nn.Module = SummedCoverage()
        if config.kind == "linguistic":
            self.update = LinguisticCoverage(sizes.states, config.fertility)
        elif config.kind == "neural":
            self.update = NeuralCoverage(sizes.states, sizes.queries, config.size)
        if config.kind != "see":
            self.loss_name = None

    def initialize_(self, generator: torch.Generator) -> None:  # noqa: ARG002
        """Start as the system without coverage."""
        nn.init.zeros_(self.of_coverage.weight)

    def begin(self, encoded: Encoded, sources: Tensor, mask: Tensor | None) -> Tensor:  # noqa: ARG002
        """C_0. (B, 1, I, S)."""
        batch, length = sources.shape
        return encoded.states.new_zeros(batch, 1, length, self.size)

    def attention_keys(self, extra: Tensor) -> Tensor:
        """`V_c C`. (B, K, I, S) -> (B, K, I, size of a key)."""
        keys: Tensor = self.of_coverage(extra)
        return keys

    def attention_scores(self, extra: Tensor, queries: Tensor) -> Tensor:
        """`q . V_c C` as `(q V_c) . C`: S values for each place instead of a key. (B, K, I)."""
        asked = queries @ self.of_coverage.weight  # (B, K, size of a key) -> (B, K, S)
        return (extra @ asked.unsqueeze(-1)).squeeze(-1)

    def attended(self, extra: Tensor, step: AttentionStep) -> Tensor:
        """C after a step. (B, K, I, S)."""
        after: Tensor = self.update(extra, step)
        return after

    def loss(self, view: View, pairs: Pairs) -> Tensor:
        """How often it looked twice, in each pair. (B,)."""
        sums = view.attention.cumsum(1)  # (B, J, I): C_j
        before = torch.cat([torch.zeros_like(sums[:, :1]), sums[:, :-1]], 1)
        twice = torch.minimum(view.attention, before).sum(-1)  # (B, J)
        return self.weight * (twice * pairs.headline_mask).sum(1)
