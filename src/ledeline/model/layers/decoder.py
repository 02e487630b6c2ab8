"""The decoder: Appendix B of the paper, an LSTM with input feeding and attention (AttnDec)."""

from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ledeline.model.gpu import dispatch
from ledeline.model.initialization import open_forget_gates
from ledeline.model.layers import unroll
from ledeline.model.layers.attention import Attention, AttentionFollower, Memory
from ledeline.model.layers.dropout import Dropout
from ledeline.model.layers.encoder import Encoded, embed
from ledeline.model.layers.unroll import LayerInputs, WordInputs


class DecoderState(NamedTuple):
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

    autograd_only: bool = False  # True: no backward pass by hand; for tests and measurements

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
        """Start the forget gates of every layer with a bias of 1."""
        for layer in (self.first, *self.upper):
            open_forget_gates(cast(nn.Linear, layer).bias)

    def start(self, encoded: Encoded) -> DecoderState:
        """The state before the first step, K = 1."""
        hidden = tuple(ends.hidden.unsqueeze(1) for ends in encoded.ends)  # (B, H) -> (B, 1, H)
        cell = tuple(ends.cell.unsqueeze(1) for ends in encoded.ends)
        return DecoderState(hidden, cell, torch.zeros_like(hidden[0]))

    def memory(self, encoded: Encoded, mask: Tensor | None) -> Memory:
        """What every step attends to; the mask (B, I) is that of the source."""
        return self.attention.memory_of(encoded.states, mask)

    def step(
        self,
        words: Tensor,
        state: DecoderState,
        memory: Memory,
        follower: AttentionFollower | None = None,
    ) -> tuple[DecoderState, Tensor]:
        """One step of every hypothesis: y_{j-1} (B, K) -> the next state, alpha_j (B, K, I)."""
        word_gates = self._word_gates(self._embedded(words))
        return self._advance(word_gates, [None] * len(self.upper), state, memory, follower)

    def unroll(
        self,
        words: Tensor,
        state: DecoderState,
        memory: Memory,
        *,
        attention_gradient: bool = False,
        follower: AttentionFollower | None = None,
    ) -> tuple[Tensor, Tensor]:
        """All steps with known words y_0 ... y_{J-1} (B, J) -> z (B, J, H), alpha (B, J, I).

        What does not depend on the step before, the words' part of the gates and the dropout masks,
        is computed for all steps at once. In training `layers.unroll` does the steps, with a
        backward pass written by hand. That has no gradient through alpha, so with
        `attention_gradient`, or with a follower, the steps are left to autograd.
        """
        embedded = self._embedded(words)
        shape = (*words.shape, state.attentional.shape[-1])
        masks = [self.dropout.mask(shape, embedded) for _ in self.upper]
        by_autograd = self.autograd_only or attention_gradient or follower is not None
        if not by_autograd and dispatch.use_manual_backward(embedded):
            return self._unroll_manually(embedded, masks, state, memory)
        word_gates = self._word_gates(embedded)
        attentional, attentions = [], []
        for j in range(words.shape[1]):
            step = slice(j, j + 1)
            step_masks = [None if one is None else one[:, step] for one in masks]
            state, weights = self._advance(word_gates[:, step], step_masks, state, memory, follower)
            attentional.append(state.attentional)
            attentions.append(weights)
        return torch.cat(attentional, 1), torch.cat(attentions, 1)

    def _unroll_manually(
        self, embedded: Tensor, masks: Sequence[Tensor | None], state: DecoderState, memory: Memory
    ) -> tuple[Tensor, Tensor]:
        size = embedded.shape[-1]
        sizes = [size, 2 * state.attentional.shape[-1]]
        of_words, own = self.first.weight.split(sizes, 1)  # type: ignore[no-untyped-call]
        words = WordInputs(embedded, of_words, self.first.bias)
        upper = [cast(nn.Linear, layer) for layer in self.upper]
        weights = [own, *(layer.weight for layer in upper)]
        biases = [None, *(layer.bias for layer in upper)]
        hidden, cell = ([one.squeeze(1) for one in each] for each in (state.hidden, state.cell))
        layers = [LayerInputs(*each) for each in zip(weights, biases, hidden, cell, strict=True)]
        mix, attentional = self.attention.mix.weight, state.attentional.squeeze(1)
        return unroll.unroll(words, layers, masks, attentional, mix, memory)

    def _embedded(self, words: Tensor) -> Tensor:
        """`E_t y` with dropout. (B, J) -> (B, J, D)."""
        embedded: Tensor = self.dropout(embed(words, self.embedding.weight))
        return embedded

    def _word_gates(self, embedded: Tensor) -> Tensor:
        """The words' part of the gates of layer 1, with its bias. (B, J, D) -> (B, J, 4H)."""
        size = embedded.shape[-1]
        return functional.linear(embedded, self.first.weight[:, :size], self.first.bias)

    def _advance(
        self,
        word_gates: Tensor,
        masks: Sequence[Tensor | None],
        state: DecoderState,
        memory: Memory,
        follower: AttentionFollower | None,
    ) -> tuple[DecoderState, Tensor]:
        size = self.embedding.embedding_dim
        below = torch.cat([state.attentional, state.hidden[0]], -1)  # (B, K, 2H)
        gates = word_gates + functional.linear(below, self.first.weight[:, size:])
        h, c = lstm_cell(gates, state.cell[0])
        hidden, cell = [h], [c]
        for number, (layer, mask) in enumerate(zip(self.upper, masks, strict=True), start=1):
            below = h if mask is None else h * mask
            gates = layer(torch.cat([below, state.hidden[number]], -1))
            h, c = lstm_cell(gates, state.cell[number])
            hidden.append(h)
            cell.append(c)
        attentional, weights = self.attention(h, memory, follower)
        return DecoderState(tuple(hidden), tuple(cell), attentional), weights


def lstm_cell(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """Gates before sigmoid and tanh (..., 4H), old cell (..., H) -> new hidden state, new cell."""
    in_gate, forget, candidate, out_gate = gates.chunk(4, -1)
    cell = torch.sigmoid(forget) * cell + torch.sigmoid(in_gate) * torch.tanh(candidate)
    return torch.sigmoid(out_gate) * torch.tanh(cell), cell
