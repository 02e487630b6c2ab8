"""Multi-head attention (Vaswani et al. 2017): of a sentence to itself, and to its source.

Legend: B pairs, Q queries (steps or hypotheses), I places that are attended to, d size of a state,
h heads.
"""

import math

import torch
from torch import Tensor, nn

from ledeline.model.layers.dropout import Dropout


def attention_weights(
    queries: Tensor, keys: Tensor, heads: int, mask: Tensor | None = None, *, causal: bool = False
) -> Tensor:
    """`softmax_i(q . k_i / sqrt(d / h))` of each head. (B, Q, d), (B, I, d) -> (B, h, Q, I).

    The mask (B, I) is True at valid places. With `causal`, query j sees the places up to j.
    """
    queries, keys = _split(queries, heads), _split(keys, heads)
    scores = queries @ keys.transpose(2, 3) / math.sqrt(queries.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None, None], float("-inf"))
    if causal:
        later = torch.ones(scores.shape[2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
    return scores.softmax(-1)


def attend(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    heads: int,
    mask: Tensor | None = None,
    *,
    causal: bool = False,
    dropout: Dropout | None = None,
) -> Tensor:
    """`sum_i alpha[i] v_i` of all heads side by side. (B, Q, d), (B, I, d) twice -> (B, Q, d).

    Plain products, and not torch's fused attention: ledes are so short that the weights take little
    room, and on a GPU its backward pass adds in no fixed order.
    """
    weights = attention_weights(queries, keys, heads, mask, causal=causal)
    if dropout is not None:
        weights = dropout(weights)
    return _merge(weights.to(values.dtype) @ _split(values, heads))


def _split(values: Tensor, heads: int) -> Tensor:
    """A part for each head. (B, Q, d) -> (B, h, Q, d / h)."""
    return values.view(*values.shape[:2], heads, -1).transpose(1, 2)


def _merge(values: Tensor) -> Tensor:
    """The heads side by side again. (B, h, Q, d / h) -> (B, Q, d)."""
    return values.transpose(1, 2).flatten(2)


class SelfAttention(nn.Module):
    """Each place of a sentence attends to its places; in a decoder to those up to itself."""

    def __init__(self, size: int, heads: int, dropout: Dropout) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.of_state = nn.Linear(size, 3 * size)  # queries, keys, values
        self.mix = nn.Linear(size, size)

    def forward(self, states: Tensor, mask: Tensor | None, *, causal: bool = False) -> Tensor:
        """All places at once. (B, I, d), mask (B, I) -> (B, I, d)."""
        queries, keys, values = self.of_state(states).chunk(3, -1)
        mixed: Tensor = self.mix(
            attend(queries, keys, values, self.heads, mask, causal=causal, dropout=self.dropout)
        )
        return mixed

    def step(self, states: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
        """The next place of K hypotheses, which sees the places before it in the cache.

        (B, K, d), (B, K, J, 2d) -> (B, K, d), and the cache with the new place.
        """
        queries, keys_values = self.of_state(states).split([states.shape[-1], cache.shape[-1]], -1)
        cache = torch.cat([cache, keys_values.unsqueeze(2)], 2)
        keys, values = cache.flatten(0, 1).chunk(2, -1)  # (B K, J + 1, d)
        contexts = attend(queries.flatten(0, 1).unsqueeze(1), keys, values, self.heads)
        return self.mix(contexts.view_as(states)), cache


class SourceAttention(nn.Module):
    """Each step of a decoder attends to the states of the encoder."""

    def __init__(self, size: int, heads: int, dropout: Dropout) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.of_state = nn.Linear(size, size)  # queries
        self.of_source = nn.Linear(size, 2 * size)  # keys, values
        self.mix = nn.Linear(size, size)

    def forward(
        self, states: Tensor, keys_values: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Steps or hypotheses (B, Q, d), `of_source` of the source (B, I, 2d), its mask (B, I).

        The result (B, Q, d), and the queries (B, Q, d).
        """
        queries = self.of_state(states)
        keys, values = keys_values.chunk(2, -1)
        contexts = attend(queries, keys, values, self.heads, mask, dropout=self.dropout)
        return self.mix(contexts), queries
