"""Reconstruction (Tu et al. 2017): the source must be found again in the decoder's states."""

from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn

from ledeline.config.section import at_least, below, section
from ledeline.core.errors import ModelError
from ledeline.model.addons.addon import Addon, Sizes, View
from ledeline.model.layers.additive_attention import AdditiveAttention
from ledeline.model.layers.encoder import embed
from ledeline.model.loss import summed, token_losses
from ledeline.model.pairs import Pairs


@section
class ReconstructionConfig:
    """Reconstruction: a second decoder writes the source from the states of the first."""

    title: ClassVar[str] = "reconstruction"
    free: ClassVar[tuple[str, ...]] = ("weight", "rank")  # keys that a run may change on its way

    weight: Annotated[float, "lambda, the factor of its log-probabilities.", at_least(0)] = 1.0
    rank: Annotated[bool, "Rank what a search finds once more by it."] = True
    hidden_size: Annotated[
        int,
        "Size of its GRU and attention; 0: the system's hidden size.",
        at_least(0),
        below(2**16),
    ] = 0


class Reconstruction(Addon):
    """`R(x | s)`, a GRU over the source with attention over the decoder's states `s_j = z_j`.

    `t_0 = tanh(W mean_j s_j + b)`, `c_i = sum_j beta_i[j] s_j` by additive attention of `t_{i-1}`,
    `t_i = GRU([E_s x_{i-1}; c_i], t_{i-1})`,
    `r_i = maxout(tanh(U [t_i; c_i; E_s x_{i-1}] + b))` of pairs, `R(x_i) = softmax(W_r r_i + b_r)`.

    E_s is the encoder's table, or E_t where the encoder has none; `E_s x_0` is 0. The states are
    those of the headline and its <eos>. The loss is `-lambda sum_i log R(x_i)`.

    Hypotheses are ranked by `mean_j log o_j + lambda mean_i log R(x_i)`. The published ranking adds
    sums; ours compares headlines by their mean log-probability, so both sides are means.
    """

    Config = ReconstructionConfig
    loss_name = "reconstruction"

    def __init__(self, config: ReconstructionConfig, sizes: Sizes) -> None:
        super().__init__()
        size = config.hidden_size or sizes.hidden
        self.weight, self.rank = config.weight, config.rank
        self.start = nn.Linear(sizes.hidden, size)  # W, b
        self.attention = AdditiveAttention(size, sizes.hidden, size)
        self.cell = nn.GRUCell(sizes.embedding + sizes.hidden, size)
        self.readout = nn.Linear(size + sizes.hidden + sizes.embedding, 2 * sizes.embedding)  # U
        self.output = nn.Linear(sizes.embedding, sizes.vocabulary)  # W_r, b_r

    def loss(self, view: View, pairs: Pairs) -> Tensor:
        """`-lambda sum_i log R(x_i)` of each pair. (B,)."""
        return self.weight * self._costs(view, pairs)

    @property
    def rescores(self) -> bool:
        """Whether hypotheses are ranked by it."""
        return self.rank and self.weight > 0

    def rescore(self, view: View, pairs: Pairs) -> Tensor:
        """`lambda mean_i log R(x_i)` of each pair. (B,)."""
        mask = pairs.source_mask
        lengths = pairs.sources.shape[1] if mask is None else mask.sum(1)
        return -self.weight * self._costs(view, pairs) / lengths

    def _costs(self, view: View, pairs: Pairs) -> Tensor:
        """`-sum_i log R(x_i)` of each pair. (B,)."""
        readouts = self._readouts(_before(view, pairs.sources), view.states, pairs.headline_mask)
        return summed(token_losses(readouts, self.output, pairs.sources), pairs.source_mask)

    def _readouts(self, before: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        """All r_i. `E_s x_{i-1}` (B, I, D), s (B, J, H), its mask (B, J) -> (B, I, D)."""
        memory = self.attention.memory_of(states, mask)
        means = (states * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)  # (B, H)
        state, steps = torch.tanh(self.start(means)), []  # t_0: (B, size)
        for word in before.unbind(1):
            contexts, _ = self.attention(state.unsqueeze(1), memory)
            context = contexts.squeeze(1)  # c_i: (B, H)
            state = self.cell(torch.cat([word, context], -1), state)
            steps.append(torch.cat([state, context, word], -1))
        made = torch.tanh(self.readout(torch.stack(steps, 1)))  # (B, I, 2D)
        return made.view(*before.shape, 2).amax(-1)


def _before(view: View, sources: Tensor) -> Tensor:
    """`E_s x_{i-1}` of each place, and 0 at the first. (B, I) -> (B, I, D)."""
    table = view.embedding if view.source_embedding is None else view.source_embedding
    if table is None:
        raise ModelError("reconstruction needs the embedding of the source")
    embedded = embed(sources, table)
    return torch.cat([torch.zeros_like(embedded[:, :1]), embedded[:, :-1]], 1)
