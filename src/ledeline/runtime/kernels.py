"""Small fused loops for a CPU: LSTM cell, whole LSTM layers, quantization, log-softmax, top-k.

They are in C (`_kernels.c`), built where pip found a compiler when it installed the package.
Elsewhere, and for tensors that the C code does not take, torch does the same in several passes. In
both cases a row has the same bits in a batch of any size.
"""

import ctypes
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Final, NamedTuple

import torch
from torch import Tensor

from ledeline.runtime import cpu

_SIGNATURES: Final = {  # p: pointer, n: number, f: float
    "cell": "ppppppnn",
    "levels": "ppnnnf",
    "tanh": "pn",
    "log_softmax": "ppnn",
    "best": "ppnnnnpp",
    "lstm": "ppppppnnn",
}
_TYPES: Final = {"p": ctypes.c_void_p, "n": ctypes.c_long, "f": ctypes.c_float}


def _load() -> ctypes.CDLL | None:
    """The library beside this file, if it was built."""
    for suffix in EXTENSION_SUFFIXES:
        path = Path(__file__).with_name(f"_kernels{suffix}")
        if path.exists() and ctypes.sizeof(ctypes.c_long) == 8:
            # Of another machine, or another version: as if there were none.
            with suppress(OSError, AttributeError):
                return _with_signatures(ctypes.CDLL(str(path)))
    return None


def _with_signatures(loaded: ctypes.CDLL) -> ctypes.CDLL:
    for name, signature in _SIGNATURES.items():
        function = getattr(loaded, f"ledeline_{name}")
        function.argtypes, function.restype = [_TYPES[one] for one in signature], None
    loaded.ledeline_lstm.restype = loaded.ledeline_has_lstm.restype = ctypes.c_int
    loaded.ledeline_limit.argtypes = [ctypes.c_int]
    loaded.ledeline_limit(cpu.limit())
    return loaded


library = _load()  # None: torch does everything


def lstm_cell(
    gates: Tensor, cells: Tensor, addend: Tensor | None = None, words: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Gates before sigmoid and tanh (..., 4H), old cells (..., H) -> hidden states, new cells.

    To the gates is added `addend` (..., 4H) or, with words (...), the rows of these words of a
    table (V, 4H). The gates may be overwritten.
    """
    if library is None:
        return _torch_lstm_cell(gates, cells, addend, words)
    gates, cells = gates.contiguous(), cells.contiguous()
    addend = None if addend is None else addend.contiguous()
    words = None if words is None else words.contiguous()
    hidden, new_cells = torch.empty_like(cells), torch.empty_like(cells)
    size = cells.shape[-1]
    library.ledeline_cell(
        gates.data_ptr(),
        None if addend is None else addend.data_ptr(),
        None if words is None else words.data_ptr(),
        cells.data_ptr(),
        hidden.data_ptr(),
        new_cells.data_ptr(),
        cells.numel() // size,
        size,
    )
    return hidden, new_cells


def _torch_lstm_cell(
    gates: Tensor, cells: Tensor, addend: Tensor | None, words: Tensor | None
) -> tuple[Tensor, Tensor]:
    if addend is not None:
        gates += addend if words is None else addend[words]
    in_gate, forget, candidate, out_gate = gates.chunk(4, -1)
    cells = (sigmoid(forget) * cells).addcmul_(sigmoid(in_gate), candidate.tanh())
    return sigmoid(out_gate).mul_(cells.tanh()), cells


class PackedLstm(NamedTuple):
    """The recurrent weights of both directions of a layer, in int8, as C needs them."""

    weights: Tensor  # [2][4H / 16][H / 4][16][4]: see _lstm.h
    scales: Tensor  # (2, 4H): what a sum of levels is multiplied with
    zeros: Tensor  # (2, 4H): the sums for states of zero, whose level is 128; to be subtracted


def has_lstm(size: int) -> bool:
    """Whether `lstm` can run a layer of this size: in C, on a CPU with VNNI."""
    return library is not None and size % 16 == 0 and bool(library.ledeline_has_lstm())


def packed_lstm(weights: Sequence[tuple[Tensor, Tensor]]) -> PackedLstm:
    """Pack the levels (4H, H) and scales (4H,) of both directions."""
    levels, scales = (torch.stack(each) for each in zip(*weights, strict=True))
    rows, size = levels.shape[1:]
    packed = levels.view(2, rows // 16, 16, size // 4, 4).transpose(2, 3).contiguous()
    zeros = 128 * levels.sum(-1, dtype=torch.int32)
    return PackedLstm(packed, (scales / 127).contiguous(), zeros.contiguous())


def lstm(inputs: Tensor, packed: PackedLstm) -> tuple[Tensor, Tensor]:
    """All steps of a layer, both directions. The inputs' part of the gates is already computed.

    Inputs (I, 2, B, 4H) -> hidden states and cells, (I, 2, B, H) each.
    """
    steps, _, batch, width = inputs.shape
    inputs = inputs.contiguous()
    hidden = torch.empty(steps, 2, batch, width // 4)
    cells = torch.empty_like(hidden)
    pointers = (one.data_ptr() for one in (inputs, *packed, hidden, cells))
    if library is None or not library.ledeline_lstm(*pointers, steps, batch, width // 4):
        raise MemoryError(f"an LSTM of {batch} sources")
    return hidden, cells


def sigmoid(values: Tensor) -> Tensor:
    """`1 / (1 + e^-x)`.

    torch's own computes the last values of a tensor in another way than the others, so a row would
    not have the same bits in every batch.
    """
    return values.neg().exp_().add_(1).reciprocal_()


def tanh_(values: Tensor) -> Tensor:
    """The tanh of each value, in place."""
    if library is None:
        return values.tanh_()
    library.ledeline_tanh(values.data_ptr(), values.numel())
    return values


def quantize_into(values: Tensor, out: Tensor, per_unit: float) -> None:
    """Write values (..., H) as unsigned levels, zero at 128, to `out`, which may be strided.

    A level is the value times `per_unit`, rounded.
    """
    if library is None:
        out.copy_(values.mul(per_unit).add_(128.5))
        return
    values, size = values.contiguous(), values.shape[-1]
    target = out if _has_even_rows(out) else torch.empty_like(values, dtype=torch.uint8)
    stride, rows = target.stride(-2) if target.dim() > 1 else size, values.numel() // size
    library.ledeline_levels(values.data_ptr(), target.data_ptr(), stride, rows, size, per_unit)
    if target is not out:
        out.copy_(target)


def _has_even_rows(out: Tensor) -> bool:
    """Whether rows are contiguous, and all the same distance apart."""
    strides, shape = out.stride(), out.shape
    rows = range(len(shape) - 2)
    return strides[-1] == 1 and all(strides[d] == strides[d + 1] * shape[d + 1] for d in rows)


def log_softmax(logits: Tensor, logs: Tensor) -> None:
    """Logits (N, V) -> log-probabilities, written to `logs` (N, V)."""
    if library is None:
        torch._log_softmax(logits, -1, False, out=logs)
    else:
        logits = logits.contiguous()
        library.ledeline_log_softmax(logits.data_ptr(), logs.data_ptr(), *logits.shape)


def top_k(logs: Tensor, totals: Tensor, k: int) -> tuple[Tensor, Tensor] | None:
    """The k highest of `totals + logs` of each source, as `ledeline.search.top_k` ranks them.

    Logs (B, K, V), totals (B, K) -> values and flat indices (B, k); None where C cannot do it.
    """
    fits = logs.dtype == totals.dtype == torch.float32 and logs.is_cpu and logs.is_contiguous()
    if library is None or not fits:
        return None
    values, indices = totals.new_empty(len(logs), k), torch.empty(len(logs), k, dtype=torch.long)
    totals = totals.contiguous()
    library.ledeline_best(
        logs.data_ptr(), totals.data_ptr(), *logs.shape, k, values.data_ptr(), indices.data_ptr()
    )
    return values, indices
