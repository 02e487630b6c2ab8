"""The encoder of the CPU engine, and its selective gate."""

from typing import Final, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ledeline.model.addons.sgate import SelectiveGate
from ledeline.model.format.int8 import quantize
from ledeline.model.systems.encdec import EncDec
from ledeline.runtime import kernels
from ledeline.runtime.linear import Int8Linear, LinearType

_DIRECTIONS: Final = "l0", "l0_reverse"  # as torch names them
STATE_BOUND: Final = 2.0  # an encoder state is the sum of two values between -1 and 1


class EngineEncoder:
    """All layers of the encoder, both directions side by side."""

    def __init__(self, model: EncDec, linear: LinearType) -> None:
        self._embedding = model.encoder.embedding.weight.detach().float()
        largest = float(self._embedding.abs().max())
        self._layers = [
            _BidirectionalLstm(
                cast(nn.LSTM, layer), linear, largest if number == 0 else STATE_BOUND
            )
            for number, layer in enumerate(model.encoder.layers)
        ]

    def __call__(
        self, sources: Tensor, lengths: Tensor
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """Sources (B, I) -> states (I, B, H), undefined at padding, and each layer's last state."""
        states = functional.embedding(sources.t(), self._embedding)  # (I, B, D)
        positions = torch.arange(len(states)).unsqueeze(1)
        reversal = torch.where(positions < lengths, lengths - 1 - positions, positions)  # (I, B)
        ends = []
        for layer in self._layers:
            states, last = layer(states, reversal, lengths)
            ends.append(last)
        return states, ends


class _BidirectionalLstm:
    """A bidirectional LSTM whose directions are summed; the backward one reads reversed sources."""

    def __init__(self, lstm: nn.LSTM, linear: LinearType, bound: float) -> None:
        self._bound, self._input_layers, recurrent_weights = max(bound, 1e-9), [], []
        for direction in _DIRECTIONS:
            of_input, of_state, *biases = (
                getattr(lstm, f"{name}_{direction}").detach()
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            self._input_layers.append(linear(of_input, biases[0] + biases[1]))
            recurrent_weights.append(of_state)
        self._packed, self._recurrent = None, []
        if linear is Int8Linear and kernels.has_lstm(lstm.hidden_size):
            self._packed = kernels.packed_lstm([quantize(weight) for weight in recurrent_weights])
        else:
            self._recurrent = [linear(weight) for weight in recurrent_weights]

    def __call__(
        self, inputs: Tensor, reversal: Tensor, lengths: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Inputs (I, B, D) -> states (I, B, H), and the last hidden states and cells, (B, H)."""
        quantized = self._input_layers[0].quantize(inputs, self._bound)
        directions = [quantized, _reverse(quantized, reversal)]
        layers = zip(self._input_layers, directions, strict=True)
        gates = torch.stack([layer(one, self._bound) for layer, one in layers], 1)  # (I, 2, B, 4H)
        hidden, cells = self._unroll(gates)
        last = lengths - 1, slice(None), torch.arange(len(lengths))
        states = hidden[:, 0] + _reverse(hidden[:, 1], reversal)
        return states, (hidden[last].sum(1), cells[last].sum(1))

    def _unroll(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """(I, 2, B, 4H) -> the hidden states and cells of all steps, (I, 2, B, H) each."""
        if self._packed is not None:
            return kernels.lstm(inputs, self._packed)
        if inputs.shape[2] == 1:  # as two: otherwise every product would be padded to two
            both = self._unroll(inputs.expand(-1, -1, 2, -1))
            return both[0][:, :, :1], both[1][:, :, :1]
        hidden: list[Tensor] = []
        cells: list[Tensor] = []
        cell = torch.zeros(*inputs.shape[1:3], inputs.shape[3] // 4)
        for number, now in enumerate(inputs):
            gates = now
            if number:
                states = self._recurrent[0].quantize(hidden[-1])  # (2, B, H)
                layers = zip(self._recurrent, states, strict=True)
                gates = torch.stack([layer(one) for layer, one in layers])
            h, cell = kernels.lstm_cell(gates, cell, now if number else None)
            hidden.append(h)
            cells.append(cell)
        return torch.stack(hidden), torch.stack(cells)


class EngineGate:
    """The selective gate (sGate)."""

    def __init__(self, gate: SelectiveGate, linear: LinearType) -> None:
        self._of_state = linear(gate.of_state.weight)
        self._of_sentence = linear(gate.of_sentence.weight, gate.of_sentence.bias)

    def __call__(self, states: Tensor, sentence: Tensor) -> Tensor:
        """States (I, B, H), the sentence (B, H) -> gated states."""
        layers = [self._of_state, self._of_sentence]
        of_state, of_sentence = (
            layer(layer.quantize(values, STATE_BOUND), STATE_BOUND)
            for layer, values in zip(layers, (states, sentence), strict=True)
        )
        return states * kernels.sigmoid(of_state.add_(of_sentence))


def _reverse(values: Tensor, reversal: Tensor) -> Tensor:
    """Reverse each source; its padding stays at the end. (I, B, H) -> (I, B, H)."""
    return values[reversal, torch.arange(values.shape[1])]
