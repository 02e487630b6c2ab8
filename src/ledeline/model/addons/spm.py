"""The source-side prediction module (SPM): Section 4 of the paper."""

from typing import Final

import torch
from torch import Tensor, nn

from ledeline.data.dataset import Ids
from ledeline.model.gpu import dispatch
from ledeline.model.pairs import Pairs


class SourcePrediction(nn.Module):
    """`q_j = softmax(W_q z_j + b_q)` over the source vocabulary, from the same `z_j` as `o_j`.

    The decoder runs through Y': headline, <eos>, then <pad> up to the source length I. So every
    source token has a step to be predicted at, and those the headline drops are left to <pad>. The
    loss compares the sums over the sentence, `l_src = ||q~ - x~||^2 / C`: which step predicts which
    token is not told.
    """

    name: Final = "source"

    def __init__(self, vocabulary: int, hidden_size: int, sensitivity: float) -> None:
        super().__init__()
        self.output = nn.Linear(hidden_size, vocabulary)  # W_q, b_q
        self.sensitivity = sensitivity  # C

    def num_steps(self, source_lengths: Ids, headline_lengths: Ids) -> Ids:
        """Steps of the decoder for each pair: I, or J + 1 where a test pair has I < J + 1. (B,)."""
        steps: Ids = source_lengths.clip(min=headline_lengths + 1)
        return steps

    def forward(self, attentional: Tensor) -> Tensor:
        """Feeds z (B, J, H) -> q (B, J, V)."""
        logits: Tensor = self.output(attentional)
        return logits.softmax(-1)

    def loss(self, attentional: Tensor, pairs: Pairs) -> Tensor:
        """`l_src` of each pair. Feeds z (B, J, H) -> (B,)."""
        if dispatch.use_triton(attentional):
            from ledeline.model.gpu import losses as fused

            return fused.source_losses(attentional, self.output, pairs, self.sensitivity)
        q = self.forward(attentional)
        if pairs.target_mask is not None:
            q = q * pairs.target_mask.unsqueeze(-1)
        difference = q.sum(1) - occurrences(pairs, q.shape[-1])  # q~ - x~, (B, V)
        return difference.square().sum(-1) / self.sensitivity


def occurrences(pairs: Pairs, vocabulary: int) -> Tensor:
    """`x~`: how often each type occurs in each source; padding does not count. (B, V)."""
    counts = torch.zeros(len(pairs.sources), vocabulary, device=pairs.sources.device)
    ones = torch.ones(pairs.sources.shape, device=counts.device)
    if pairs.source_mask is not None:
        ones = ones * pairs.source_mask
    return counts.scatter_add_(1, pairs.sources, ones)
