"""EncDec arranged for fast inference on a CPU.

It computes the same as `EncDec`. What depends only on the weights is computed once:

- the words' part of the gates of layer 1, `W E_t y + b`, is a table with a row for each type;
- `W_s h_i` is computed once per source, so that no step multiplies c_j by W_s;
- linear layers are oneDNN's, in float32, or in int8 with quantized inputs;
- sums are added up in a fixed order: attention pads source positions to a multiple of 16, and
  hypotheses to a multiple of 8. So a source gets the same bits in a batch of any size, at any
  position in it.
"""

from typing import Literal, NamedTuple, TypeAlias, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ledeline.core.errors import ModelError
from ledeline.core.steps import Steps
from ledeline.model.addons.sgate import SelectiveGate
from ledeline.model.addons.spm import SourcePrediction
from ledeline.model.attention_system import LAYERS, WEIGHT_NAMES
from ledeline.model.pairs import Pairs
from ledeline.model.system import System, Trace
from ledeline.model.systems.encdec import EncDec
from ledeline.runtime import kernels
from ledeline.runtime.engine_encoder import STATE_BOUND, EngineEncoder, EngineGate
from ledeline.runtime.linear import Float32Linear, Int8Linear, Linear, LinearType
from ledeline.text.subwords import PAD

Precision: TypeAlias = Literal["float32", "int8"]

_MULTIPLE, _HYPOTHESES = 16, 8
_ROWS = 32  # rows of log-probabilities at a time, which fit the cache


class EngineState(NamedTuple):
    """The decoder between two steps."""

    inputs: tuple[Tensor, ...]  # of each layer, (B, K, 2H), quantized: [input from below; weight
    #   state]. Layer 1 has z_j from below; that half of the others is written during the step
    cells: tuple[Tensor, ...]  # of each layer, (B, K, H)
    bound: float  # of the inputs, for `Linear`; twice as large before the first step


class EngineMemory(NamedTuple):
    """What attention looks at; I is a multiple of 16."""

    keys: Tensor  # (B, H, I): h_i^T W_a
    values: Tensor  # (B, I, H): W_s h_i, with the columns of W_s for the context
    mask: Tensor  # (B, 1, I): 0 at valid positions, -inf at padding


class PositionTrace(NamedTuple):
    """How each step of known headlines saw each position of their sources."""

    attention: Tensor  # (B, J, I)
    source_predictions: Tensor | None  # (B, J, I): q_j of the type at each position; None: no SPM


class FollowedPairs(NamedTuple):
    """What was seen while known headlines were written, step by step; the last writes <eos>."""

    values: Tensor  # (B, I, H): what attention mixes
    states: Tensor  # (B, K, J, H): z_j
    logs: Tensor  # (B, K, J): log-probabilities of what was written; 0 at padding


class Engine:
    """A trained EncDec for search: `encode`, `step` and `trace` as its weight, but faster."""

    device = torch.device("cpu")

    @staticmethod
    def refusal(system: System) -> str | None:
        """Why it cannot run a system, as part of a sentence; None: it can."""
        if not isinstance(system, EncDec) or type(system) is not EncDec:
            return f"it does not know the system {system.config.name}"
        for name, addon in system.addons.items():
            if addon.changes_decoding() and type(addon) is not SelectiveGate:
                return f"it does not know the add-on {name}"
        known = {*LAYERS, *(WEIGHT_NAMES.get(name, name) for name in system.addons)}
        unknown = [name for name, _ in system.named_children() if name not in known]
        return f"it does not know the layer {unknown[0]}" if unknown else None

    def __init__(self, model: EncDec, precision: Precision = "float32") -> None:
        if reason := self.refusal(model):
            raise ModelError(f"the CPU engine cannot run this model: {reason}")
        linear: LinearType = Int8Linear if precision == "int8" else Float32Linear
        gate, spm = model.addons.get("sgate"), model.addons.get("spm")
        with torch.inference_mode():
            self._encoder = EngineEncoder(model, linear)
            self._gate = EngineGate(gate, linear) if isinstance(gate, SelectiveGate) else None
            self._spm = linear(*_padded(spm.output)) if isinstance(spm, SourcePrediction) else None
            self._word_gates, self._layers = _decoder(model, linear)
            attention = model.decoder.attention
            of_context, of_query = attention.mix.weight.detach().chunk(2, 1)  # W_s [c_j; zv_j]
            self._query_layer, self._value_layer = linear(of_query), linear(of_context)
            self._key_layer = linear(attention.bilinear.detach().t())
            weight, bias = _padded(model.output)
            self._output, self._num_types = linear(weight, bias), len(weight)
            self._vocabulary = model.vocabulary

    def encode(
        self,
        sources: Tensor,
        lengths: Tensor | None = None,
        mask: Tensor | None = None,  # noqa: ARG002 - the lengths say it
    ) -> tuple[EngineState, EngineMemory]:
        """Sources (B, I) -> the state before the first step, and what attention looks at."""
        width = sources.shape[1]
        if lengths is None:
            lengths = torch.full((len(sources),), width)
        states, ends = self._encoder(sources, lengths)
        if self._gate is not None:
            states = self._gate(states, ends[-1][0])
        padding = -width % _MULTIPLE
        states = functional.pad(states, (0, 0, 0, 0, 0, padding)).transpose(0, 1)  # (B, I, H)
        quantized = self._key_layer.quantize(states, STATE_BOUND)
        layers = self._key_layer, self._value_layer
        keys, values = (layer(quantized, STATE_BOUND) for layer in layers)
        valid = torch.arange(width + padding) < lengths[:, None]
        bias = torch.zeros(valid.shape).masked_fill_(~valid, float("-inf"))
        return self._start(ends), EngineMemory(
            keys.transpose(1, 2).contiguous(), values.contiguous(), bias.unsqueeze(1)
        )

    def _start(self, ends: list[tuple[Tensor, Tensor]]) -> EngineState:
        """The decoder starts from the last states of the encoder's layers, and from z_0 = 0."""
        inputs = tuple(
            layer.quantize(functional.pad(h, (h.shape[-1], 0)).unsqueeze(1), STATE_BOUND)
            for layer, (h, _) in zip(self._layers, ends, strict=True)
        )
        return EngineState(inputs, tuple(c.unsqueeze(1) for _, c in ends), STATE_BOUND)

    def step(
        self, words: Tensor, state: EngineState, memory: EngineMemory
    ) -> tuple[Tensor, EngineState]:
        """y_{j-1} (B, K) -> `log o_j` (B, K, V), and the state after the step.

        V is padded to a multiple of 16 with types of probability 0.
        """
        state, _ = self._advance(words, state, memory)
        logs = self._log_probabilities(_attentional(state).flatten(0, 1))
        return logs.view(*words.shape, -1), state

    def trace(self, pairs: Pairs) -> Trace:
        """Teacher-force known headlines, and say what was seen at each step."""
        state, memory = self.encode(pairs.sources, pairs.source_lengths)
        logs, attentions, predictions = [], [], []
        for number, words in enumerate(pairs.previous.split(1, 1)):  # type: ignore[no-untyped-call]
            state, attention = self._advance(words, state, memory)
            z = _attentional(state)  # (B, 1, H), quantized
            written = self._log_probabilities(z.flatten(0, 1))  # (B, V)
            logs.append(written.gather(1, pairs.targets[:, number : number + 1]))
            attentions.append(attention[..., : pairs.sources.shape[1]])
            if self._spm is not None:
                predictions.append(self._source_predictions(z))
        q = torch.cat(predictions, 1) if predictions else None
        return Trace(torch.cat(logs, 1), torch.cat(attentions, 1), q)

    def trace_positions(self, pairs: Pairs) -> Steps[PositionTrace]:
        """Teacher-force known headlines a step at a time, and say how each position was seen.

        Pairs with the same source share its encoding.
        """
        with torch.inference_mode():
            sources, rows = torch.unique(pairs.sources, dim=0, return_inverse=True)
            lengths = pairs.source_lengths
            if lengths is not None:
                lengths = lengths.new_empty(len(sources)).index_copy_(0, rows, lengths)
            state, memory = self.encode(sources, lengths)
            state = EngineState(
                tuple(one.index_select(0, rows) for one in state.inputs),
                tuple(one.index_select(0, rows) for one in state.cells),
                state.bound,
            )
            memory = EngineMemory(*(one.index_select(0, rows) for one in memory))
        yield
        attentions, predictions = [], []
        for words in pairs.previous.split(1, 1):  # type: ignore[no-untyped-call]
            with torch.inference_mode():
                state, attention = self._advance(words, state, memory)
                attentions.append(attention[..., : pairs.sources.shape[1]])
                if self._spm is not None:
                    of_types = self._source_predictions(_attentional(state))
                    predictions.append(of_types.gather(2, pairs.sources.unsqueeze(1)))
            yield
        with torch.inference_mode():
            q = torch.cat(predictions, 1) if predictions else None
            return PositionTrace(torch.cat(attentions, 1), q)

    # --- what a verifier looks at -------------------------------------------------------------

    def source_values(self, memory: EngineMemory) -> Tensor:
        """What attention mixes. (B, I, H)."""
        return memory.values

    def attentional_states(self, state: EngineState) -> Tensor:
        """z_j of the step that made the state. (B, K, H)."""
        return self._output.restore(_attentional(state))

    def follow(
        self, sources: Tensor, lengths: Tensor, previous: Tensor, targets: Tensor
    ) -> Steps[FollowedPairs]:
        """Write K known headlines of each source (B, I), step by step. Words are (B, K, J)."""
        with torch.inference_mode():
            state, memory = self.encode(sources, lengths)
            inputs, cells = (
                tuple(one.expand(-1, previous.shape[1], -1).contiguous() for one in each)
                for each in (state.inputs, state.cells)
            )
            state = EngineState(inputs, cells, state.bound)
        yield
        states, logs = [], []
        for j, words in enumerate(previous.unbind(2)):
            with torch.inference_mode():
                state, _ = self._advance(words.contiguous(), state, memory)
                attentional = _attentional(state)
                written = self._log_probabilities(attentional.flatten(0, 1))
                logs.append(written.gather(1, targets[..., j].reshape(-1, 1)).view(words.shape))
                states.append(self._output.restore(attentional))
            yield
        with torch.inference_mode():
            seen = torch.stack(logs, 2).masked_fill_(targets == PAD, 0.0)
            return FollowedPairs(memory.values, torch.stack(states, 2), seen)

    def _source_predictions(self, attentional: Tensor) -> Tensor:
        """Quantized z_j (B, 1, H) -> q_j (B, 1, V)."""
        assert self._spm is not None
        return self._spm(attentional)[..., : self._vocabulary].softmax(-1)

    def _advance(
        self, words: Tensor, state: EngineState, memory: EngineMemory
    ) -> tuple[EngineState, Tensor]:
        """One step: y_{j-1} (B, K) -> the state after it, and alpha_j (B, K, I)."""
        size = self._word_gates.shape[-1] // 4
        inputs = [torch.empty_like(one) for one in state.inputs]  # of the next step
        cells: list[Tensor] = []
        below = inputs[0]  # layer 1 already has its input from below
        for number, (layer, quantized) in enumerate(zip(self._layers, state.inputs, strict=True)):
            if number:
                layer.quantize_into(below, quantized[..., :size], state.bound)
            gates = layer(quantized, state.bound)  # (B, K, 4H)
            of_words = () if number else (self._word_gates, words)
            below, cell = kernels.lstm_cell(gates, state.cells[number], *of_words)
            layer.quantize_into(below, inputs[number][..., size:])
            cells.append(cell)
        context, attention = self._attend(below, memory)
        attentional = kernels.tanh_(self._query_layer(inputs[-1][..., size:]).add_(context))
        self._output.quantize_into(attentional, inputs[0][..., :size])
        return EngineState(tuple(inputs), tuple(cells), 1.0), attention

    def _log_probabilities(self, attentional: Tensor) -> Tensor:
        """Quantized z_j (B K, H) -> `log o_j` (B K, V), some rows at a time."""
        logs = torch.empty(len(attentional), self._num_types)
        for start in range(0, len(attentional), _ROWS):
            some = slice(start, start + _ROWS)
            kernels.log_softmax(self._output(attentional[some]), logs[some])
        return logs

    def _attend(self, queries: Tensor, memory: EngineMemory) -> tuple[Tensor, Tensor]:
        """zv_j (B, K, H) -> `W_s c_j` (B, K, H), and alpha_j (B, K, I)."""
        number = queries.shape[1]
        queries = functional.pad(queries, (0, 0, 0, -number % _HYPOTHESES))
        weights = torch.baddbmm(memory.mask, queries, memory.keys).softmax(-1)
        return torch.bmm(weights, memory.values)[:, :number], weights[:, :number]


def _attentional(state: EngineState) -> Tensor:
    """z_j, quantized: the input of layer 1 from below. (B, K, H)."""
    first = state.inputs[0]
    return first[..., : first.shape[-1] // 2]


def _decoder(model: EncDec, linear: LinearType) -> tuple[Tensor, list[Linear]]:
    """The words' part of the gates as a table (V, 4H), and the linear layer of each LSTM layer."""
    decoder = model.decoder
    size = decoder.embedding.embedding_dim
    first, bias = decoder.first.weight.detach(), decoder.first.bias.detach()
    words = functional.linear(decoder.embedding.weight.detach(), first[:, :size], bias).float()
    upper = [cast(nn.Linear, layer) for layer in decoder.upper]
    layers = [linear(layer.weight, layer.bias) for layer in upper]
    return words, [linear(first[:, size:]), *layers]


def _padded(output: nn.Linear) -> tuple[Tensor, Tensor]:
    """Weight and bias of an output layer, padded with types of probability 0."""
    padding = -output.out_features % _MULTIPLE
    weight = functional.pad(output.weight.detach(), (0, 0, 0, padding))
    return weight, functional.pad(output.bias.detach(), (0, padding), value=float("-inf"))
