"""Additive attention (Bahdanau et al. 2015), as SEASS and DRGD have it."""

import torch
from torch import Tensor, nn

from ledeline.model.layers.attention import AttentionFollower, Memory, attend_by_scores


class AdditiveAttention(nn.Module):
    """`e_j[i] = v^T tanh(W_a q_j + U_a h_i + b)`, `alpha_j = softmax(e_j)`, `c_j = sum_i alpha h`.

    Legend: A attention size, Q size of a query, S size of an encoder state.
    """

    def __init__(self, query_size: int, state_size: int, attention_size: int) -> None:
        super().__init__()
        self.of_query = nn.Linear(query_size, attention_size, bias=False)  # W_a
        self.of_state = nn.Linear(state_size, attention_size)  # U_a, b
        self.energy = nn.Linear(attention_size, 1, bias=False)  # v

    def memory_of(self, states: Tensor, mask: Tensor | None = None) -> Memory:
        """Encoder states (B, I, S) -> what each step attends to."""
        return Memory(states, self.of_state(states), mask)

    def forward(
        self, queries: Tensor, memory: Memory, follower: AttentionFollower | None = None
    ) -> tuple[Tensor, Tensor]:
        """q_j (B, K, Q) -> c_j (B, K, S) and alpha_j (B, K, I)."""
        keys = memory.keys.unsqueeze(1)  # (B, 1, I, A)
        if follower is not None:
            keys = keys + follower.key_change()  # (B, K, I, A)
        seen = torch.tanh(self.of_query(queries).unsqueeze(2) + keys)
        scores = self.energy(seen).squeeze(-1)  # (B, K, I, A) -> (B, K, I)
        return attend_by_scores(scores, queries, memory, follower)
