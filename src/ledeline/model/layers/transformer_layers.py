"""Layers of a Transformer with normalisation before each part (Xiong et al. 2020).

`x <- x + dropout(part(norm(x)))`, where the parts are attention and a feed-forward network. What a
part adds, and the norm of the next part, are one operation, `add_and_norm`, which has a kernel.

Legend: B pairs, I source length, J steps, K hypotheses, d size of a state.
"""

from typing import NamedTuple

from torch import Tensor, nn

from ledeline.model.gpu.dispatch import has_kernel
from ledeline.model.layers.dropout import Dropout
from ledeline.model.layers.multi_head_attention import SelfAttention, SourceAttention


class LayerSizes(NamedTuple):
    """The sizes of a layer."""

    states: int  # d
    feed_forward: int
    heads: int


class LayerDropouts(NamedTuple):
    """What is dropped in training, in all layers."""

    residual: Dropout  # what a part adds
    attention: Dropout  # weights of attention
    activation: Dropout  # inside feed-forward networks


class SourceView(NamedTuple):
    """What a layer of the decoder sees of the sources."""

    keys_values: Tensor  # side by side: (B, I, 2d)
    mask: Tensor | None  # (B, I); None: all positions are valid


class FeedForward(nn.Module):
    """`W_2 max(0, W_1 x + b_1) + b_2`."""

    def __init__(self, sizes: LayerSizes, dropout: Dropout) -> None:
        super().__init__()
        self.inward = nn.Linear(sizes.states, sizes.feed_forward)
        self.outward = nn.Linear(sizes.feed_forward, sizes.states)
        self.dropout = dropout

    def forward(self, states: Tensor) -> Tensor:
        """(B, I, d) -> (B, I, d)."""
        result: Tensor = self.outward(self.dropout(self.inward(states).relu()))
        return result


@has_kernel
def add_and_norm(
    states: Tensor, added: Tensor, dropout: Dropout, norm: nn.LayerNorm
) -> tuple[Tensor, Tensor]:
    """`x' = x + dropout(added)` and `norm(x')`. (B, I, d) twice -> (B, I, d) twice."""
    states = states + dropout(added)
    return states, norm(states)


class EncoderLayer(nn.Module):
    """Self-attention, then a feed-forward network."""

    def __init__(self, sizes: LayerSizes, dropouts: LayerDropouts) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(sizes.states)
        self.attention = SelfAttention(sizes.states, sizes.heads, dropouts.attention)
        self.feed_forward_norm = nn.LayerNorm(sizes.states)
        self.feed_forward = FeedForward(sizes, dropouts.activation)
        self.dropout = dropouts.residual

    def forward(
        self, states: Tensor, normed: Tensor, mask: Tensor | None, next_norm: nn.LayerNorm
    ) -> tuple[Tensor, Tensor]:
        """States and the same normed (B, I, d), mask (B, I) -> both after the layer."""
        added = self.attention(normed, mask)
        states, normed = add_and_norm(states, added, self.dropout, self.feed_forward_norm)
        return add_and_norm(states, self.feed_forward(normed), self.dropout, next_norm)


class DecoderLayer(nn.Module):
    """Self-attention, attention to the source, then a feed-forward network."""

    def __init__(self, sizes: LayerSizes, dropouts: LayerDropouts) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(sizes.states)
        self.attention = SelfAttention(sizes.states, sizes.heads, dropouts.attention)
        self.source_norm = nn.LayerNorm(sizes.states)
        self.source_attention = SourceAttention(sizes.states, sizes.heads, dropouts.attention)
        self.feed_forward_norm = nn.LayerNorm(sizes.states)
        self.feed_forward = FeedForward(sizes, dropouts.activation)
        self.dropout = dropouts.residual

    def forward(
        self,
        states: Tensor,
        normed: Tensor,
        source: SourceView,
        next_norm: nn.LayerNorm,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """All steps: states and the same normed (B, J, d) -> both, and queries to the source."""
        added = self.attention(normed, None, causal=True)
        return self._after_attention(states, added, source, next_norm)

    def step(
        self,
        states: Tensor,
        normed: Tensor,
        cache: Tensor,
        source: SourceView,
        next_norm: nn.LayerNorm,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """One step: (B, K, d) twice, cache (B, K, J, 2d) -> as `forward`, and the next cache."""
        added, cache = self.attention.step(normed, cache)
        return *self._after_attention(states, added, source, next_norm), cache

    def _after_attention(
        self, states: Tensor, added: Tensor, source: SourceView, next_norm: nn.LayerNorm
    ) -> tuple[Tensor, Tensor, Tensor]:
        """What comes after self-attention. (B, J or K, d) twice -> as `forward`."""
        states, normed = add_and_norm(states, added, self.dropout, self.source_norm)
        added, queries = self.source_attention(normed, source.keys_values, source.mask)
        states, normed = add_and_norm(states, added, self.dropout, self.feed_forward_norm)
        added = self.feed_forward(normed)
        return *add_and_norm(states, added, self.dropout, next_norm), queries
