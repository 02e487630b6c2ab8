"""The source-side prediction module (SPM): Section 4 of the paper."""

import torch
from torch import Tensor, nn

from ledeline.config.engine_systems import SourcePredictionConfig as SourcePredictionConfig
from ledeline.data.dataset import Ids
from ledeline.model.addons.addon import Addon, Sizes, View
from ledeline.model.gpu.dispatch import has_kernel
from ledeline.model.pairs import Pairs


class SourcePrediction(Addon):
    """`q_j = softmax(W_q z_j + b_q)` over the source vocabulary, from the same `z_j` as `o_j`.

    The decoder runs through Y': headline, <eos>, then <pad> up to the source length I. So every
    source token has a step to be predicted at: those that the headline drops, at a <pad>. The loss
    compares sums over the sentence, `l_src = ||q~ - x~||^2 / C`, and does not say which step should
    predict which token.
    """

    Config = SourcePredictionConfig
    capturable = True
    loss_name = "source"

    def __init__(self, config: SourcePredictionConfig, sizes: Sizes) -> None:
        super().__init__()
        self.output = nn.Linear(sizes.hidden, sizes.vocabulary)  # W_q, b_q
        self.c = config.c

    def num_steps(self, source_lengths: Ids, headline_lengths: Ids) -> Ids:
        """Decoder steps of each pair: I, or J + 1 where I < J + 1, as in some test pairs. (B,)."""
        steps: Ids = source_lengths.clip(min=headline_lengths + 1)
        return steps

    def source_predictions(self, states: Tensor) -> Tensor:
        """States z (B, J, H) -> q (B, J, V)."""
        logits: Tensor = self.output(states)
        return logits.softmax(-1)

    def loss(self, view: View, pairs: Pairs) -> Tensor:
        """`l_src` of each pair. (B,)."""
        return source_losses(view.states, self.output, pairs, self.c)


@has_kernel
def source_losses(states: Tensor, output: nn.Linear, pairs: Pairs, c: float) -> Tensor:
    """`l_src = ||q~ - x~||^2 / C` of each pair. z (B, J, H) -> (B,)."""
    q = output(states).softmax(-1)
    if pairs.target_mask is not None:
        q = q * pairs.target_mask.unsqueeze(-1)
    difference = q.sum(1) - occurrences(pairs, q.shape[-1])  # q~ - x~, (B, V)
    losses: Tensor = difference.square().sum(-1) / c
    return losses


def occurrences(pairs: Pairs, vocabulary: int) -> Tensor:
    """`x~`: how often each type occurs in each source; padding does not count. (B, V)."""
    counts = torch.zeros(len(pairs.sources), vocabulary, device=pairs.sources.device)
    ones = torch.ones(pairs.sources.shape, device=counts.device)
    if pairs.source_mask is not None:
        ones = ones * pairs.source_mask
    return counts.scatter_add_(1, pairs.sources, ones)
