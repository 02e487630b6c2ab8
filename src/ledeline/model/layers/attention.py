"""Attention: Appendix C of the paper, Luong's global attention with the `general` score."""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn


class Memory(NamedTuple):
    """What attention looks at: computed once per source, for all its steps and hypotheses."""

    states: Tensor  # (B, I, H): h_i
    keys: Tensor  # (B, I, H): h_i^T W_a
    mask: Tensor | None  # (B, I); None: all positions are valid


class AttentionFollower(Protocol):
    """What follows attention from step to step and changes it, such as coverage.

    An attention module asks for the change before it weighs, and tells the weights after it.
    """

    def key_change(self) -> Tensor:
        """What is added to the keys at this step. (B, K, I, size of a key)."""

    def score_change(self, queries: Tensor) -> Tensor:
        """What that adds to scores that are products `q . key`. (B, K, ...) -> (B, K, I)."""

    def attended(self, queries: Tensor, weights: Tensor) -> None:
        """Take note of a step: what was asked with (B, K, ...), and alpha_j (B, K, I)."""


class Attention(nn.Module):
    """`alpha_j[i] = softmax_i(h_i^T W_a zv_j)`, `c_j = sum_i alpha_j[i] h_i`,
    `z_j = tanh(W_s [c_j; zv_j])`, where `zv_j` is the decoder's own state.
    """  # noqa: D205

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.bilinear = nn.Parameter(torch.empty(hidden_size, hidden_size))  # W_a
        self.mix = nn.Linear(2 * hidden_size, hidden_size, bias=False)  # W_s

    def memory_of(self, states: Tensor, mask: Tensor | None = None) -> Memory:
        """Encoder states (B, I, H) -> what each step attends to."""
        return Memory(states, states @ self.bilinear, mask)

    def forward(
        self, queries: Tensor, memory: Memory, follower: AttentionFollower | None = None
    ) -> tuple[Tensor, Tensor]:
        """zv_j (B, K, H) -> z_j (B, K, H) and alpha_j (B, K, I)."""
        contexts, weights = attend_by_product(queries, memory, follower)
        return torch.tanh(self.mix(torch.cat([contexts, queries], -1))), weights


def attend_by_product(
    queries: Tensor, memory: Memory, follower: AttentionFollower | None = None
) -> tuple[Tensor, Tensor]:
    """Scores are `query . key`: (B, K, H) -> contexts (B, K, ...) and alpha_j (B, K, I)."""
    scores = queries @ memory.keys.transpose(1, 2)  # (B, K, H) (B, H, I) -> (B, K, I)
    if follower is not None:
        scores = scores + follower.score_change(queries)
    return attend_by_scores(scores, queries, memory, follower)


def attend_by_scores(
    scores: Tensor, queries: Tensor, memory: Memory, follower: AttentionFollower | None = None
) -> tuple[Tensor, Tensor]:
    """Any scores (B, K, I) -> contexts `sum_i alpha_j[i] h_i` (B, K, ...), alpha_j (B, K, I)."""
    if memory.mask is not None:
        scores = scores.masked_fill(~memory.mask.unsqueeze(1), float("-inf"))
    weights = scores.softmax(-1)
    if follower is not None:
        follower.attended(queries, weights)
    return weights @ memory.states, weights  # (B, K, I) (B, I, H) -> (B, K, H)
