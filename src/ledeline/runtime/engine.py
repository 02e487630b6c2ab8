"""The same system arranged for writing headlines on a CPU.

Nothing here is learned and no equation is new: an `EncDec` goes in, and what its weights alone
decide is worked out once. What differs from it:

- the words' part of the gates of layer 1, `W E_t y + b`, is a table with a row for each type;
- `W_s c_j` is the attention's mean of `W_s h_i`, made once a source, so no step multiplies c_j;
- the products are oneDNN's, in float32, or in int8 with what goes into them;
- what could change the order in which a sum is added up is fixed: attention sees source places in
  multiples of 16 and hypotheses in multiples of 8. So a source gets the same bits in a batch of any
  size, at any place in it.
"""

from typing import Literal, NamedTuple, TypeAlias, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ledeline.core.errors import ModelError
from ledeline.model.addons.sgate import SelectiveGate
from ledeline.model.addons.spm import SourcePrediction
from ledeline.model.attention_system import WEIGHT_NAMES
from ledeline.model.format.int8 import quantize
from ledeline.model.pairs import Pairs
from ledeline.model.system import System, Trace
from ledeline.model.systems.encdec import EncDec
from ledeline.runtime import kernels
from ledeline.runtime.products import Float32Product, Int8Product, Maker, Product

Precision: TypeAlias = Literal["float32", "int8"]

_LAYERS = "dropout", "encoder", "decoder", "output"  # of EncDec
_DIRECTIONS = "l0", "l0_reverse"  # as torch names them
_PLACES, _HYPOTHESES = 16, 8
_ROWS = 32  # of log-probabilities at a time
_OF_STATES = 2.0  # no encoder state is larger: a sum of two that tanh bounds


class State(NamedTuple):
    """The decoder between two steps."""

    inputs: tuple[Tensor, ...]  # of each layer [from below; own state], (B, K, 2H), as products
    #   take it; layer 1 has z_j from below, the others have that half still to come
    cells: tuple[Tensor, ...]  # of each layer, (B, K, H)
    bound: float  # of the inputs; twice as large before the first step


class Memory(NamedTuple):
    """What attention looks at; I is a multiple of 16."""

    keys: Tensor  # (B, H, I): h_i^T W_a
    values: Tensor  # (B, I, H): W_s h_i, of the columns of W_s that belong to the context
    mask: Tensor  # (B, 1, I): 0 at valid places, -inf at others


class Engine:
    """A trained system, ready to write: `encode`, `step` and `trace` as `EncDec` has them."""

    device = torch.device("cpu")

    @staticmethod
    def refusal(system: System) -> str | None:
        """Why it cannot run a system, in a clause; None: it can."""
        if not isinstance(system, EncDec) or type(system) is not EncDec:
            return f"it does not know the system {system.config.name}"
        for name, addon in system.addons.items():
            if addon.changes_decoding() and type(addon) is not SelectiveGate:
                return f"it does not know the add-on {name}"
        known = {*_LAYERS, *(WEIGHT_NAMES.get(name, name) for name in system.addons)}
        unknown = [name for name, _ in system.named_children() if name not in known]
        return f"it does not know the layer {unknown[0]}" if unknown else None

    def __init__(self, model: EncDec, precision: Precision = "float32") -> None:
        if reason := self.refusal(model):
            raise ModelError(f"the CPU engine cannot run this model: {reason}")
        make: Maker = Int8Product if precision == "int8" else Float32Product
        gate, spm = model.addons.get("sgate"), model.addons.get("spm")
        with torch.inference_mode():
            self._encoder = _Encoder(model, make)
            self._gate = _Gate(gate, make) if isinstance(gate, SelectiveGate) else None
            self._spm = make(*_padded(spm.output)) if isinstance(spm, SourcePrediction) else None
            self._word_gates, self._layers = _decoder(model, make)
            attention = model.decoder.attention
            of_context, of_own = attention.mix.weight.detach().chunk(2, 1)  # W_s [c_j; zv_j]
            self._mix, self._values = make(of_own), make(of_context)
            self._keys = make(attention.bilinear.detach().t())
            weight, bias = _padded(model.output)
            self._output, self._num_types = make(weight, bias), len(weight)
            self._vocabulary = model.vocabulary

    def encode(
        self,
        sources: Tensor,
        lengths: Tensor | None = None,
        mask: Tensor | None = None,  # noqa: ARG002 - the lengths say it
    ) -> tuple[State, Memory]:
        """Sources (B, I) -> the state before the first step and what attention looks at."""
        width = sources.shape[1]
        if lengths is None:
            lengths = torch.full((len(sources),), width)
        states, ends = self._encoder(sources, lengths)
        if self._gate is not None:
            states = self._gate(states, ends[-1][0])
        padding = -width % _PLACES
        states = functional.pad(states, (0, 0, 0, 0, 0, padding)).transpose(0, 1)  # (B, I, H)
        given = self._keys.prepared(states, _OF_STATES)
        keys, values = (product(given, _OF_STATES) for product in (self._keys, self._values))
        valid = torch.arange(width + padding) < lengths[:, None]
        bias = torch.zeros(valid.shape).masked_fill_(~valid, float("-inf"))
        return self._start(ends), Memory(
            keys.transpose(1, 2).contiguous(), values.contiguous(), bias.unsqueeze(1)
        )

    def _start(self, ends: list[tuple[Tensor, Tensor]]) -> State:
        """The decoder begins with the ends of the encoder's layers, and with z_0 = 0."""
        inputs = tuple(
            product.prepared(functional.pad(h, (h.shape[-1], 0)).unsqueeze(1), _OF_STATES)
            for product, (h, _) in zip(self._layers, ends, strict=True)
        )
        return State(inputs, tuple(c.unsqueeze(1) for _, c in ends), _OF_STATES)

    def step(self, words: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        """y_{j-1} (B, K) -> `log o_j` (B, K, V), and the state behind the step.

        The vocabulary is filled up to a multiple of 16 with types that are impossible.
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
            z = _attentional(state)  # (B, 1, H), as products take it
            written = self._log_probabilities(z.flatten(0, 1))  # (B, V)
            logs.append(written.gather(1, pairs.targets[:, number : number + 1]))
            attentions.append(attention[..., : pairs.sources.shape[1]])
            if self._spm is not None:
                predictions.append(self._spm(z)[..., : self._vocabulary].softmax(-1))
        q = torch.cat(predictions, 1) if predictions else None
        return Trace(torch.cat(logs, 1), torch.cat(attentions, 1), q)

    def _advance(self, words: Tensor, state: State, memory: Memory) -> tuple[State, Tensor]:
        """One step: y_{j-1} (B, K) -> the state after it, and alpha_j (B, K, I)."""
        size = self._word_gates.shape[-1] // 4
        inputs = [torch.empty_like(one) for one in state.inputs]  # of the step after this
        cells: list[Tensor] = []
        below = inputs[0]  # what layer 1 has from below is in its input already
        for number, (product, given) in enumerate(zip(self._layers, state.inputs, strict=True)):
            if number:
                product.put(below, given[..., :size], state.bound)
            gates = product(given, state.bound)  # (B, K, 4H)
            of_words = () if number else (self._word_gates, words)
            below, cell = kernels.lstm_cell(gates, state.cells[number], *of_words)
            product.put(below, inputs[number][..., size:])
            cells.append(cell)
        context, attention = self._attend(below, memory)
        attentional = kernels.tanh_(self._mix(inputs[-1][..., size:]).add_(context))
        self._output.put(attentional, inputs[0][..., :size])
        return State(tuple(inputs), tuple(cells), 1.0), attention

    def _log_probabilities(self, attentional: Tensor) -> Tensor:
        """Prepared z_j (B K, H) -> `log o_j` (B K, V), some rows at a time, which fit the cache."""
        logs = torch.empty(len(attentional), self._num_types)
        for start in range(0, len(attentional), _ROWS):
            some = slice(start, start + _ROWS)
            kernels.log_softmax(self._output(attentional[some]), logs[some])
        return logs

    def _attend(self, queries: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """zv_j (B, K, H) -> `W_s c_j` (B, K, H), and alpha_j (B, K, I)."""
        number = queries.shape[1]
        queries = functional.pad(queries, (0, 0, 0, -number % _HYPOTHESES))
        weights = torch.baddbmm(memory.mask, queries, memory.keys).softmax(-1)
        return torch.bmm(weights, memory.values)[:, :number], weights[:, :number]


def _attentional(state: State) -> Tensor:
    """z_j, as products take it: what layer 1 has from below. (B, K, H)."""
    first = state.inputs[0]
    return first[..., : first.shape[-1] // 2]


class _Encoder:
    """Both directions of all layers, side by side; no source waits for the end of another."""

    def __init__(self, model: EncDec, make: Maker) -> None:
        self._embedding = model.encoder.embedding.weight.detach().float()
        largest = float(self._embedding.abs().max())
        self._layers = [
            _Layer(cast(nn.LSTM, layer), make, largest if number == 0 else _OF_STATES)
            for number, layer in enumerate(model.encoder.layers)
        ]

    def __call__(
        self, sources: Tensor, lengths: Tensor
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """Sources (B, I) -> states (I, B, H), with anything behind the lengths, and the ends."""
        states = functional.embedding(sources.t(), self._embedding)  # (I, B, D)
        places = torch.arange(len(states)).unsqueeze(1)
        mirrored = torch.where(places < lengths, lengths - 1 - places, places)  # (I, B)
        ends = []
        for layer in self._layers:
            states, end = layer(states, mirrored, lengths)
            ends.append(end)
        return states, ends


class _Layer:
    """A bidirectional LSTM whose directions are summed; the backward one reads mirrored sources."""

    def __init__(self, lstm: nn.LSTM, make: Maker, bound: float) -> None:
        self._bound, self._inputs, owns = max(bound, 1e-9), [], []
        for end in _DIRECTIONS:
            of_input, of_own, *biases = (
                getattr(lstm, f"{name}_{end}").detach()
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            self._inputs.append(make(of_input, biases[0] + biases[1]))
            owns.append(of_own)
        self._packed, self._owns = None, []
        if make is Int8Product and kernels.has_lstm(lstm.hidden_size):
            self._packed = kernels.packed_lstm([quantize(own) for own in owns])
        else:
            self._owns = [make(own) for own in owns]

    def __call__(
        self, inputs: Tensor, mirrored: Tensor, lengths: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Inputs (I, B, D) -> states (I, B, H) and the ends (B, H) of hidden states and cells."""
        given = self._inputs[0].prepared(inputs, self._bound)
        sides = [given, _mirror(given, mirrored)]
        gates = torch.stack(
            [product(side, self._bound) for product, side in zip(self._inputs, sides, strict=True)],
            1,
        )  # (I, 2, B, 4H)
        hidden, cells = self._unroll(gates)
        last = lengths - 1, slice(None), torch.arange(len(lengths))
        states = hidden[:, 0] + _mirror(hidden[:, 1], mirrored)
        return states, (hidden[last].sum(1), cells[last].sum(1))

    def _unroll(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """(I, 2, B, 4H) -> the hidden states and cells of all steps, (I, 2, B, H) each."""
        if self._packed is not None:
            return kernels.lstm(inputs, self._packed)
        if inputs.shape[2] == 1:  # as two, which spares every product the same
            both = self._unroll(inputs.expand(-1, -1, 2, -1))
            return both[0][:, :, :1], both[1][:, :, :1]
        hidden: list[Tensor] = []
        cells: list[Tensor] = []
        cell = torch.zeros(*inputs.shape[1:3], inputs.shape[3] // 4)
        for number, now in enumerate(inputs):
            gates = now
            if number:
                sides = zip(self._owns, self._owns[0].prepared(hidden[-1]), strict=True)
                gates = torch.stack([product(side) for product, side in sides])
            h, cell = kernels.lstm_cell(gates, cell, now if number else None)
            hidden.append(h)
            cells.append(cell)
        return torch.stack(hidden), torch.stack(cells)


class _Gate:
    """The selective gate."""

    def __init__(self, gate: SelectiveGate, make: Maker) -> None:
        self._of_state = make(gate.of_state.weight)
        self._of_sentence = make(gate.of_sentence.weight, gate.of_sentence.bias)

    def __call__(self, states: Tensor, sentence: Tensor) -> Tensor:
        """States (I, B, H), the sentence (B, H) -> gated states."""
        products = [self._of_state, self._of_sentence]
        of_state, of_sentence = (
            product(product.prepared(values, _OF_STATES), _OF_STATES)
            for product, values in zip(products, (states, sentence), strict=True)
        )
        return states * kernels.sigmoid(of_state.add_(of_sentence))


def _decoder(model: EncDec, make: Maker) -> tuple[Tensor, list[Product]]:
    """The table of the words' gates (V, 4H), and the product of each layer."""
    decoder = model.decoder
    size = decoder.embedding.embedding_dim
    first, bias = decoder.first.weight.detach(), decoder.first.bias.detach()
    words = functional.linear(decoder.embedding.weight.detach(), first[:, :size], bias).float()
    upper = [cast(nn.Linear, layer) for layer in decoder.upper]
    layers = [make(layer.weight, layer.bias) for layer in upper]
    return words, [make(first[:, size:]), *layers]


def _padded(output: nn.Linear) -> tuple[Tensor, Tensor]:
    """Weight and bias of the output, filled up with impossible types."""
    padding = -output.out_features % _PLACES
    weight = functional.pad(output.weight.detach(), (0, 0, 0, padding))
    return weight, functional.pad(output.bias.detach(), (0, padding), value=float("-inf"))


def _mirror(values: Tensor, mirrored: Tensor) -> Tensor:
    """Turn each source round, its padding staying behind it. (I, B, H) -> (I, B, H)."""
    return values[mirrored, torch.arange(values.shape[1])]
