"""The decoder: Appendix B of the paper, an LSTM with input feeding and attention (AttnDec)."""

from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ledeline.model.gpu import dispatch
from ledeline.model.initialization import open_forget_gates
from ledeline.model.layers import unroll
from ledeline.model.layers.attention import Attention, Memory
from ledeline.model.layers.dropout import Dropout
from ledeline.model.layers.encoder import Encoded, embed
from ledeline.model.layers.unroll import Layer, Words


class State(NamedTuple):
    """The decoder between two steps, for K hypotheses of each source."""

    hidden: tuple[Tensor, ...]  # of each layer, (B, K, H); the top one is zv_j
    cell: tuple[Tensor, ...]  # of each layer, (B, K, H)
    attentional: Tensor  # (B, K, H): z_j


class Decoder(nn.Module):
    """`zv_j = LSTM([E_t y_{j-1}; z_{j-1}], zv_{j-1})`, `z_j = Attention(zv_j)`, `z_0 = 0`.

    Each layer starts from the summed ends of the encoder's layer of the same number. A layer keeps
    its weights as one matrix over its whole input `[input; own state]`, gates in the order input,
    forget, candidate, output; the first D columns of layer 1 belong to `E_t y_{j-1}`.
    """

    plain: bool = False  # True leaves all gradients to autograd, for tests and measurements

    def __init__(
        self,
        vocabulary: int,
        embedding_size: int,
        hidden_size: int,
        layers: int,
        attention: Attention,
        dropout: Dropout,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding_size)  # E_t
        self.first = nn.Linear(embedding_size + 2 * hidden_size, 4 * hidden_size)
        self.upper = nn.ModuleList(
            nn.Linear(2 * hidden_size, 4 * hidden_size) for _ in range(layers - 1)
        )
        self.attention = attention
        self.dropout = dropout

    def initialize_(self, generator: torch.Generator) -> None:  # noqa: ARG002
        """Open the forget gates of every layer at first."""
        for layer in (self.first, *self.upper):
            open_forget_gates(cast(nn.Linear, layer).bias)

    def start(self, encoded: Encoded) -> State:
        """The state before the first step, K = 1."""
        hidden = tuple(ends.hidden.unsqueeze(1) for ends in encoded.ends)  # (B, H) -> (B, 1, H)
        cell = tuple(ends.cell.unsqueeze(1) for ends in encoded.ends)
        return State(hidden, cell, torch.zeros_like(hidden[0]))

    def step(self, words: Tensor, state: State, memory: Memory) -> tuple[State, Tensor]:
        """One step of every hypothesis: y_{j-1} (B, K) -> the next state, alpha_j (B, K, I)."""
        word_gates = self._word_gates(self._embedded(words))
        return self._advance(word_gates, [None] * len(self.upper), state, memory)

    def unroll(
        self, words: Tensor, state: State, memory: Memory, *, attention_gradient: bool = False
    ) -> tuple[Tensor, Tensor]:
        """All steps with known words y_0 ... y_{J-1} (B, J) -> z (B, J, H), alpha (B, J, I).

        What does not depend on the step before, the words' part of the gates and the masks of the
        dropout, is computed for all steps at once. Where a gradient may be wanted, `layers.unroll`
        does the steps. It has none through alpha: with `attention_gradient` autograd does them.
        """
        embedded = self._embedded(words)
        shape = (*words.shape, state.attentional.shape[-1])
        between = [self.dropout.factors(shape, embedded) for _ in self.upper]
        by_autograd = self.plain or attention_gradient
        if not by_autograd and dispatch.unrolls_at_once(embedded):
            return self._unroll_at_once(embedded, between, state, memory)
        word_gates = self._word_gates(embedded)
        attentional, attentions = [], []
        for j in range(words.shape[1]):
            step = slice(j, j + 1)
            factors = [None if one is None else one[:, step] for one in between]
            state, weights = self._advance(word_gates[:, step], factors, state, memory)
            attentional.append(state.attentional)
            attentions.append(weights)
        return torch.cat(attentional, 1), torch.cat(attentions, 1)

    def _unroll_at_once(
        self, embedded: Tensor, between: Sequence[Tensor | None], state: State, memory: Memory
    ) -> tuple[Tensor, Tensor]:
        size = embedded.shape[-1]
        sizes = [size, 2 * state.attentional.shape[-1]]
        of_words, own = self.first.weight.split(sizes, 1)  # type: ignore[no-untyped-call]
        words = Words(embedded, of_words, self.first.bias)
        upper = [cast(nn.Linear, layer) for layer in self.upper]
        weights = [own, *(layer.weight for layer in upper)]
        biases = [None, *(layer.bias for layer in upper)]
        hidden, cell = ([one.squeeze(1) for one in each] for each in (state.hidden, state.cell))
        layers = [Layer(*each) for each in zip(weights, biases, hidden, cell, strict=True)]
        mix, attentional = self.attention.mix.weight, state.attentional.squeeze(1)
        return unroll.unroll(words, layers, between, attentional, mix, memory)

    def _embedded(self, words: Tensor) -> Tensor:
        """`E_t y`, thinned out by the dropout. (B, J) -> (B, J, D)."""
        embedded: Tensor = self.dropout(embed(words, self.embedding.weight))
        return embedded

    def _word_gates(self, embedded: Tensor) -> Tensor:
        """What the words bring to the gates of layer 1, with its bias. (B, J, D) -> (B, J, 4H)."""
        size = embedded.shape[-1]
        return functional.linear(embedded, self.first.weight[:, :size], self.first.bias)

    def _advance(
        self,
        word_gates: Tensor,
        factors: Sequence[Tensor | None],
        state: State,
        memory: Memory,
    ) -> tuple[State, Tensor]:
        size = self.embedding.embedding_dim
        below = torch.cat([state.attentional, state.hidden[0]], -1)  # (B, K, 2H)
        gates = word_gates + functional.linear(below, self.first.weight[:, size:])
        h, c = lstm_cell(gates, state.cell[0])
        hidden, cell = [h], [c]
        for number, (layer, factor) in enumerate(zip(self.upper, factors, strict=True), start=1):
            below = h if factor is None else h * factor
            gates = layer(torch.cat([below, state.hidden[number]], -1))
            h, c = lstm_cell(gates, state.cell[number])
            hidden.append(h)
            cell.append(c)
        attentional, weights = self.attention(h, memory)
        return State(tuple(hidden), tuple(cell), attentional), weights


def lstm_cell(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """The gates' sums (..., 4H) and the cell before (..., H) -> the new hidden state and cell."""
    enter, forget, candidate, leave = gates.chunk(4, -1)
    cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(candidate)
    return torch.sigmoid(leave) * torch.tanh(cell), cell
