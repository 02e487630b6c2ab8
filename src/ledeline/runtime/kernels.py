"""Small loops that torch has only as many passes: an LSTM cell, levels, log-softmax, the best.

In C (`_kernels.c`) where pip found a compiler when it installed the package; elsewhere, and for
tensors the C code does not take, torch does the same. Either way a row has the same bits in a batch
of any size.
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
    """The library that lies beside this file, if it was built."""
    for suffix in EXTENSION_SUFFIXES:
        path = Path(__file__).with_name(f"_kernels{suffix}")
        if path.exists() and ctypes.sizeof(ctypes.c_long) == 8:
            with suppress(OSError, AttributeError):  # of another machine, or another version
                return _declared(ctypes.CDLL(str(path)))
    return None


def _declared(built: ctypes.CDLL) -> ctypes.CDLL:
    for name, signature in _SIGNATURES.items():
        function = getattr(built, f"ledeline_{name}")
        function.argtypes, function.restype = [_TYPES[one] for one in signature], None
    built.ledeline_lstm.restype = built.ledeline_has_lstm.restype = ctypes.c_int
    built.ledeline_limit.argtypes = [ctypes.c_int]
    built.ledeline_limit(cpu.limit())
    return built


library = _load()  # None: torch does everything


def lstm_cell(
    gates: Tensor, cells: Tensor, more: Tensor | None = None, words: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The gates' sums (..., 4H) and the cells before (..., H) -> hidden states, cells.

    To the gates is added `more` (..., 4H), or with words (...) these rows of it (V, 4H). The gates
    are used up.
    """
    if library is None:
        return _torch_lstm_cell(gates, cells, more, words)
    gates, cells = gates.contiguous(), cells.contiguous()
    more = None if more is None else more.contiguous()
    words = None if words is None else words.contiguous()
    hidden, after = torch.empty_like(cells), torch.empty_like(cells)
    size = cells.shape[-1]
    library.ledeline_cell(
        gates.data_ptr(),
        None if more is None else more.data_ptr(),
        None if words is None else words.data_ptr(),
        cells.data_ptr(),
        hidden.data_ptr(),
        after.data_ptr(),
        cells.numel() // size,
        size,
    )
    return hidden, after


def _torch_lstm_cell(
    gates: Tensor, cells: Tensor, more: Tensor | None, words: Tensor | None
) -> tuple[Tensor, Tensor]:
    if more is not None:
        gates += more if words is None else more[words]
    enter, forget, candidate, leave = gates.chunk(4, -1)
    cells = (sigmoid(forget) * cells).addcmul_(sigmoid(enter), candidate.tanh())
    return sigmoid(leave).mul_(cells.tanh()), cells


class PackedLstm(NamedTuple):
    """What the two directions of a layer multiply their own states with, in int8."""

    weights: Tensor  # [2][4H / 16][H / 4][16][4]: see _lstm.h
    scales: Tensor  # (2, 4H): what a unit of a sum is worth
    zeros: Tensor  # (2, 4H): the sum that states of zero give, whose level is 128


def has_lstm(size: int) -> bool:
    """Whether C has a whole LSTM layer of this size: where there is VNNI."""
    return library is not None and size % 16 == 0 and bool(library.ledeline_has_lstm())


def packed_lstm(weights: Sequence[tuple[Tensor, Tensor]]) -> PackedLstm:
    """Levels (4H, H) and scales (4H,) of both directions, as C takes them."""
    levels, scales = (torch.stack(each) for each in zip(*weights, strict=True))
    rows, size = levels.shape[1:]
    packed = levels.view(2, rows // 16, 16, size // 4, 4).transpose(2, 3).contiguous()
    zeros = 128 * levels.sum(-1, dtype=torch.int32)
    return PackedLstm(packed, (scales / 127).contiguous(), zeros.contiguous())


def lstm(inputs: Tensor, packed: PackedLstm) -> tuple[Tensor, Tensor]:
    """All steps of a layer, both directions; what its gates have from below is given.

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

    Not torch's own, which works out the last values of a tensor in another way than those before,
    so that a row would not have the same bits in every batch.
    """
    return values.neg().exp_().add_(1).reciprocal_()


def tanh_(values: Tensor) -> Tensor:
    """The tanh of each value, in its place."""
    if library is None:
        return values.tanh_()
    library.ledeline_tanh(values.data_ptr(), values.numel())
    return values


def put_levels(values: Tensor, places: Tensor, per_unit: float) -> None:
    """Write values (..., H) as levels, zero at 128, to places whose rows may lie apart."""
    if library is None:
        places.copy_(values.mul(per_unit).add_(128.5))
        return
    values, size = values.contiguous(), values.shape[-1]
    even = places if _is_even(places) else torch.empty_like(values, dtype=torch.uint8)
    stride, rows = even.stride(-2) if even.dim() > 1 else size, values.numel() // size
    library.ledeline_levels(values.data_ptr(), even.data_ptr(), stride, rows, size, per_unit)
    if even is not places:
        places.copy_(even)


def _is_even(places: Tensor) -> bool:
    """Whether all rows are whole and equally far apart."""
    strides, shape = places.stride(), places.shape
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
    """The k highest of `totals + logs`, of each source, as `ledeline.search.best` ranks them.

    Logs (B, K, V), totals (B, K) -> values and flat places (B, k); None where C does not do it.
    """
    fits = logs.dtype == totals.dtype == torch.float32 and logs.is_cpu and logs.is_contiguous()
    if library is None or not fits:
        return None
    values, places = totals.new_empty(len(logs), k), torch.empty(len(logs), k, dtype=torch.long)
    totals = totals.contiguous()
    library.ledeline_best(
        logs.data_ptr(), totals.data_ptr(), *logs.shape, k, values.data_ptr(), places.data_ptr()
    )
    return values, places
