"""The same system arranged for writing headlines on a GPU, as `runtime.engine` is on a CPU.

Nothing here is learned and no equation is new: an `EncDec` goes in, and what its weights alone
decide is worked out once. What differs from it:

- the words' part of the gates of layer 1, `W E_t y + b`, is a table with a row for each type;
- `W_s c_j` is the attention's mean of `W_s h_i`, made once a source, so no step multiplies c_j;
- products are of float32, or of float16 that are added up in float32. Cells, softmaxes and costs
  are float32 either way, and so is the encoder;
- the softmax over the vocabulary can be left to the search.

Sizes that a product runs over are multiples of 16, which float16 wants.
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

_ROUND: Final = 16


class State(NamedTuple):
    """The decoder between two steps."""

    inputs: tuple[Tensor, ...]  # of each layer [from below; own state], (B, K, 2H), as products
    #   take it; layer 1 has z_j from below, the others have that half still to come
    cells: tuple[Tensor, ...]  # of each layer, (B, K, H)


class Memory(NamedTuple):
    """What attention looks at; I is a multiple of 16."""

    keys: Tensor  # (B, I, H): h_i^T W_a
    values: Tensor  # (B, I, H): W_s h_i, of the columns of W_s that belong to the context
    mask: Tensor  # (B, 1, I): 0 at valid places, -inf at others


class GpuStepModel:
    """A trained system, ready to write: `encode` and `step` as `EncDec` has them, but faster."""

    @staticmethod
    def refusal(system: System) -> str | None:
        """Why it cannot run a system, in a clause; None: it can."""
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
            self._rows = [functional.linear(own.embedding.weight, first[:, :size], bias).float()]
            weights = [first[:, size:]]
            for layer in own.upper:
                weights.append(cast(nn.Linear, layer).weight)
                self._rows.append(cast(nn.Linear, layer).bias.float())
            of_context, of_own = own.attention.mix.weight.chunk(2, 1)  # W_s [c_j; zv_j]
            self._type = torch.float16 if precision == "float16" else torch.float32
            self._layers = [self._as_product(weight) for weight in weights]
            self._mix, self._context = self._as_product(of_own), of_context.t().float()
            more = -model.output.out_features % _ROUND  # types that are impossible
            self._output = self._as_product(functional.pad(model.output.weight, (0, 0, 0, more)))
            self.bias = functional.pad(model.output.bias.float(), (0, more), value=float("-inf"))

    def _as_product(self, weight: Tensor) -> Tensor:
        return weight.detach().to(self._type).contiguous().t()

    def encode(
        self, sources: Tensor, lengths: Tensor | None = None, mask: Tensor | None = None
    ) -> tuple[State, Memory]:
        """Sources (B, I) -> the state before the first step and what attention looks at."""
        with dispatch.exact():
            start, seen, *_ = self._model.begin(sources, lengths, mask)
        below = [
            start.attentional,
            *(torch.zeros_like(start.attentional) for _ in start.hidden[1:]),
        ]
        inputs = tuple(
            torch.cat(pair, -1).to(self._type) for pair in zip(below, start.hidden, strict=True)
        )
        padding = -sources.shape[1] % _ROUND
        values = seen.states.float() @ self._context
        keys, values = (
            functional.pad(one.to(self._type), (0, 0, 0, padding)) for one in (seen.keys, values)
        )
        valid = torch.ones_like(sources, dtype=torch.bool) if mask is None else mask
        closed = functional.pad(~valid, (0, padding), value=True)
        bias = torch.zeros(closed.shape, device=self.device).masked_fill_(closed, float("-inf"))
        cells = tuple(cell.float() for cell in start.cell)
        return State(inputs, cells), Memory(keys, values, bias.unsqueeze(1))

    def step(self, words: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        """y_{j-1} (B, K) -> `log o_j` (B, K, V), and the state behind the step.

        The vocabulary is filled up to a multiple of 16 with types that are impossible.
        """
        scores, state = self.score(words, state, memory)
        return scores.add_(self.bias).log_softmax(-1), state

    def score(self, words: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        """As `step`, but `log o_j = log-softmax(scores + bias)`: `W_o z_j` (B, K, V)."""
        size = state.cells[0].shape[-1]
        inputs = [torch.empty_like(one) for one in state.inputs]  # of the step after this
        flat = [one.flatten(0, 1) for one in inputs]
        cells: list[Tensor] = []
        above = state.inputs[1:]
        for number, (weight, given) in enumerate(zip(self._layers, state.inputs, strict=True)):
            sums = dispatch.precise_product(given.flatten(0, 1), weight)  # (B K, 4H)
            own = flat[number][:, size:]
            up = above[number].flatten(0, 1)[:, :size] if number < len(above) else own
            of_words = words.flatten() if number == 0 else None
            cell = state.cells[number]
            after = _cell(sums, self._rows[number], of_words, cell.flatten(0, 1), own, up)
            cells.append(after.view_as(cell))
        query = flat[-1][:, size:]
        seen = self._attend(inputs[-1][..., size:], memory).flatten(0, 1)
        attentional = flat[0][:, :size]
        attentional.copy_(dispatch.precise_product(query, self._mix).add_(seen).tanh_())
        scores = dispatch.precise_product(attentional, self._output).view(*words.shape, -1)
        return scores, State(tuple(inputs), tuple(cells))

    def _attend(self, queries: Tensor, memory: Memory) -> Tensor:
        """zv_j (B, K, H) -> `W_s c_j` (B, K, H)."""
        scores = _products(queries, memory.keys.transpose(1, 2)).add_(memory.mask)
        return _products(scores.softmax(-1).to(self._type), memory.values)


def plain_cell(
    sums: Tensor, rows: Tensor, words: Tensor | None, cells: Tensor, own: Tensor, above: Tensor
) -> Tensor:
    """An LSTM cell: the gates' sums (N, 4H) and the cells before (N, H) -> the cells behind.

    To the sums are added rows[words], of a table (V, 4H), or without words `rows` (4H,) to all. The
    state is written to `own` and `above`, (N, H) each, whose rows may lie apart.
    """
    hidden, cells = decoder.lstm_cell(sums + (rows if words is None else rows[words]), cells)
    own.copy_(hidden)
    above.copy_(hidden)
    return cells


def _cell(
    sums: Tensor, rows: Tensor, words: Tensor | None, cells: Tensor, own: Tensor, above: Tensor
) -> Tensor:
    if not dispatch.use_triton(sums, cells, own):
        return plain_cell(sums, rows, words, cells, own, above)
    from ledeline.model.gpu import step_kernels

    return step_kernels.cell(sums, rows, words, cells, own, above)


def _products(values: Tensor, others: Tensor) -> Tensor:
    """(B, N, K) (B, K, M) -> (B, N, M), added up in float32."""
    if values.dtype == torch.float16 and values.is_cuda:
        return torch.bmm(values, others, out_dtype=torch.float32)
    return torch.bmm(values.float(), others.float())
