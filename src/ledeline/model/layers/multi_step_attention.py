"""Attention of one decoder layer of conv-s2s: equations 1 and 2 of Gehring et al. 2017.

The square roots of 1/2, which keep the variance of sums, are those of the authors' code.

Legend: B pairs, I source length, Q queries (steps or hypotheses), d hidden size, f embedding size.
"""

import math
from typing import Final, NamedTuple

import torch
from torch import Tensor, nn

from ledeline.model.layers.weight_norm import WeightNormLinear

ROOT_OF_HALF: Final = math.sqrt(0.5)


class MultiStepMemory(NamedTuple):
    """What all layers attend to: computed once per source, for all its steps and hypotheses."""

    states: Tensor  # (B, I, f): (z_i + e_i) * sqrt(1/2), what attention mixes
    keys: Tensor  # (B, I, f): z_i
    factor: Tensor  # (B, 1, 1): m * sqrt(1 / m), where m is the length without padding
    mask: Tensor | None  # (B, I); None: all positions are valid


def multi_step_memory(keys: Tensor, embedded: Tensor, mask: Tensor | None) -> MultiStepMemory:
    """Encoder outputs z (B, I, f), and the inputs e (B, I, f) of the encoder."""
    if mask is None:
        lengths = keys.new_full((len(keys), 1, 1), keys.shape[1])
    else:
        lengths = mask.sum(1).to(keys.dtype).view(-1, 1, 1)
    factor = lengths * (1 / lengths).sqrt()
    return MultiStepMemory((keys + embedded) * ROOT_OF_HALF, keys, factor, mask)


class MultiStepAttention(nn.Module):
    """`q_j = (W_d h_j + b_d + g_j) * sqrt(1/2)`, `alpha_j[i] = softmax_i(q_j . z_i)`,
    `c_j = m sqrt(1/m) sum_i alpha_j[i] (z_i + e_i) * sqrt(1/2)`,
    `h'_j = (W_c c_j + b_c + h_j) * sqrt(1/2)`,
    where `g_j` is the embedded word that the decoder reads at step j.
    """  # noqa: D205

    def __init__(self, hidden_size: int, embedding_size: int) -> None:
        super().__init__()
        self.of_state = WeightNormLinear(hidden_size, embedding_size)  # W_d, b_d
        self.of_context = WeightNormLinear(embedding_size, hidden_size)  # W_c, b_c

    def forward(
        self, hidden: Tensor, embedded: Tensor, memory: MultiStepMemory
    ) -> tuple[Tensor, Tensor]:
        """States h (B, Q, d), words g (B, Q, f) -> h' (B, Q, d), alpha (B, Q, I)."""
        queries = (self.of_state(hidden) + embedded) * ROOT_OF_HALF
        scores = queries @ memory.keys.transpose(1, 2)  # (B, Q, f) (B, f, I) -> (B, Q, I)
        if memory.mask is not None:
            scores = scores.masked_fill(~memory.mask.unsqueeze(1), float("-inf"))
        weights = torch.softmax(scores, -1)
        contexts = (weights @ memory.states) * memory.factor  # (B, Q, I) (B, I, f) -> (B, Q, f)
        return (self.of_context(contexts) + hidden) * ROOT_OF_HALF, weights
