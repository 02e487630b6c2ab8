"""EncDec arranged for fast inference on a GPU, as `runtime.engine` is on a CPU.

It computes the same as `EncDec`. What depends only on the weights is computed once:

- the words' part of the gates of layer 1, `W E_t y + b`, is a table with a row for each type;
- `W_s h_i` is computed once per source, so that no step multiplies c_j by W_s;
- products are in float32, or in float16 with gates in float32. Cells, softmaxes, costs and the
  encoder are in float32 in both cases;
- the softmax over the vocabulary can be left to the search.

Dimensions that a product gates over are padded to multiples of 16, which float16 needs.
"""

from typing import Final, Literal, NamedTuple, TypeAlias, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ledeline.core.errors import ModelError
from ledeline.model.gpu import dispatch
from ledeline.model.layers import decoder
from ledeline.model.system import System
from ledeline.model.systems.encdec import EncDec

Precision: TypeAlias = Literal["float32", "float16"]

_MULTIPLE: Final = 16


class GpuState(NamedTuple):
    """The decoder between two steps."""

    inputs: tuple[Tensor, ...]  # of each layer, (B, K, 2H): [input from below; own state]. Layer 1
    #   has z_j from below; that half of the others is written during the step
    cells: tuple[Tensor, ...]  # of each layer, (B, K, H)


class GpuMemory(NamedTuple):
    """What attention looks at; I is a multiple of 16."""

    keys: Tensor  # (B, I, H): h_i^T W_a
    values: Tensor  # (B, I, H): W_s h_i, with the columns of W_s for the context
    mask: Tensor  # (B, 1, I): 0 at valid positions, -inf at padding


class GpuStepModel:
    """A trained EncDec for search: `encode` and `step` give the same as its own, but faster."""

    @staticmethod
    def refusal(system: System) -> str | None:
        """Why it cannot run a system, as part of a sentence; None: it can."""
        if not isinstance(system, EncDec) or type(system) is not EncDec:
            return f"it does not know the system {system.config.name}"
        scoring = [name for name, addon in system.addons.items() if addon.overrides("scores")]
        return f"it does not know the add-on {scoring[0]}" if scoring else None

    def __init__(self, model: EncDec, precision: Precision = "float32") -> None:
        if reason := self.refusal(model):
            raise ModelError(f"the GPU engine cannot run this model: {reason}")
        self._model, self.device = model, model.device
        own = model.decoder
        size = own.embedding.embedding_dim
        with torch.inference_mode():
            first, bias = own.first.weight, own.first.bias
            self._gate_biases = [
                functional.linear(own.embedding.weight, first[:, :size], bias).float()
            ]
            weights = [first[:, size:]]
            for layer in own.upper:
                weights.append(cast(nn.Linear, layer).weight)
                self._gate_biases.append(cast(nn.Linear, layer).bias.float())
            of_context, of_own = own.attention.mix.weight.chunk(2, 1)  # W_s [c_j; zv_j]
            self._dtype = torch.float16 if precision == "float16" else torch.float32
            self._layers = [self._as_operand(weight) for weight in weights]
            self._query_weight, self._context_weight = (
                self._as_operand(of_own),
                of_context.t().float(),
            )
            padding = -model.output.out_features % _MULTIPLE  # types of probability 0
            self._output = self._as_operand(functional.pad(model.output.weight, (0, 0, 0, padding)))
            self.bias = functional.pad(model.output.bias.float(), (0, padding), value=float("-inf"))

    def _as_operand(self, weight: Tensor) -> Tensor:
        return weight.detach().to(self._dtype).contiguous().t()

    def encode(
        self, sources: Tensor, lengths: Tensor | None = None, mask: Tensor | None = None
    ) -> tuple[GpuState, GpuMemory]:
        """Sources (B, I) -> the state before the first step, and what attention looks at."""
        with dispatch.without_tf32():
            state, memory, *_ = self._model.begin(sources, lengths, mask)
        below = [
            state.attentional,
            *(torch.zeros_like(state.attentional) for _ in state.hidden[1:]),
        ]
        inputs = tuple(
            torch.cat(pair, -1).to(self._dtype) for pair in zip(below, state.hidden, strict=True)
        )
        padding = -sources.shape[1] % _MULTIPLE
        values = memory.states.float() @ self._context_weight
        keys, values = (
            functional.pad(one.to(self._dtype), (0, 0, 0, padding)) for one in (memory.keys, values)
        )
        valid = torch.ones_like(sources, dtype=torch.bool) if mask is None else mask
        invalid = functional.pad(~valid, (0, padding), value=True)
        bias = torch.zeros(invalid.shape, device=self.device).masked_fill_(invalid, float("-inf"))
        cells = tuple(cell.float() for cell in state.cell)
        return GpuState(inputs, cells), GpuMemory(keys, values, bias.unsqueeze(1))

    def step(self, words: Tensor, state: GpuState, memory: GpuMemory) -> tuple[Tensor, GpuState]:
        """y_{j-1} (B, K) -> `log o_j` (B, K, V), and the state after the step.

        V is padded to a multiple of 16 with types of probability 0.
        """
        scores, state = self.score(words, state, memory)
        return scores.add_(self.bias).log_softmax(-1), state

    def score(self, words: Tensor, state: GpuState, memory: GpuMemory) -> tuple[Tensor, GpuState]:
        """As `step`, but scores `W_o z_j` (B, K, V): `log o_j = log_softmax(scores + bias)`."""
        size = state.cells[0].shape[-1]
        inputs = [torch.empty_like(one) for one in state.inputs]  # of the next step
        flat = [one.flatten(0, 1) for one in inputs]
        cells: list[Tensor] = []
        above = state.inputs[1:]
        for number, (weight, layer_inputs) in enumerate(
            zip(self._layers, state.inputs, strict=True)
        ):
            gates = dispatch.mm_in_float32(layer_inputs.flatten(0, 1), weight)  # (B K, 4H)
            own = flat[number][:, size:]
            up = above[number].flatten(0, 1)[:, :size] if number < len(above) else own
            word_ids = words.flatten() if number == 0 else None
            cell = state.cells[number]
            after = _lstm_cell(
                gates, self._gate_biases[number], word_ids, cell.flatten(0, 1), own, up
            )
            cells.append(after.view_as(cell))
        query = flat[-1][:, size:]
        context = self._attend(inputs[-1][..., size:], memory).flatten(0, 1)
        attentional = flat[0][:, :size]
        attentional.copy_(dispatch.mm_in_float32(query, self._query_weight).add_(context).tanh_())
        scores = dispatch.mm_in_float32(attentional, self._output).view(*words.shape, -1)
        return scores, GpuState(tuple(inputs), tuple(cells))

    def _attend(self, queries: Tensor, memory: GpuMemory) -> Tensor:
        """zv_j (B, K, H) -> `W_s c_j` (B, K, H)."""
        scores = _bmm_in_float32(queries, memory.keys.transpose(1, 2)).add_(memory.mask)
        return _bmm_in_float32(scores.softmax(-1).to(self._dtype), memory.values)


def plain_lstm_cell(
    gates: Tensor, biases: Tensor, words: Tensor | None, cells: Tensor, own: Tensor, above: Tensor
) -> Tensor:
    """An LSTM cell: gates before sigmoid and tanh (N, 4H), old cells (N, H) -> new cells (N, H).

    To the gates are added the rows `biases[words]` of a table (V, 4H) or, without words, `biases`
    (4H,). The hidden state is written to `own` and `above`, (N, H), which may be strided.
    """
    hidden, cells = decoder.lstm_cell(gates + (biases if words is None else biases[words]), cells)
    own.copy_(hidden)
    above.copy_(hidden)
    return cells


def _lstm_cell(
    gates: Tensor, biases: Tensor, words: Tensor | None, cells: Tensor, own: Tensor, above: Tensor
) -> Tensor:
    if not dispatch.use_triton(gates, cells, own):
        return plain_lstm_cell(gates, biases, words, cells, own, above)
    from ledeline.model.gpu import step_kernels

    return step_kernels.lstm_cell(gates, biases, words, cells, own, above)


def _bmm_in_float32(values: Tensor, others: Tensor) -> Tensor:
    """(B, N, K) (B, K, M) -> (B, N, M), summed in float32."""
    if values.dtype == torch.float16 and values.is_cuda:
        return torch.bmm(values, others, out_dtype=torch.float32)
    return torch.bmm(values.float(), others.float())
