"""What the kernels share: a tile of a product, and the LSTM cell on it, both ways.

Gates lie interleaved: the four of a unit side by side, in the order input, forget, candidate,
output. So a tile of the gates' sums holds whole cells. `tall` and `wide` are rows and units of a
tile, `deep` is how much of a sum one turn of the loop takes. What a kernel needs behind that loop
it loads before it.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor

from ledeline.model.gpu.triton_language import tl, triton

ONES: Final = 8  # columns more, for a bias: products want rows of whole 16 bytes


class Tile(NamedTuple):
    """The shape of a product's tiles, and how a program works on one."""

    tall: int
    wide: int
    deep: int
    warps: int
    stages: int

    def launcher(
        self, kernel: Any, dtype: torch.dtype, batch: int, size: int, *more: int, halves: int = 1
    ) -> Callable[..., None]:
        """The kernel for so many rows and units; values of 32 bits fill the memory twice as fast.

        Programs are numbered by rows, then units, each half for itself, then what is given.
        """
        exact = dtype == torch.float32
        grid = (triton.cdiv(batch, self.tall), halves * triton.cdiv(size, self.wide), *more)
        return partial(
            kernel[grid],
            TALL=self.tall,
            WIDE=self.wide,
            DEEP=32 if exact else self.deep,
            EXACT=exact,
            num_warps=self.warps,
            num_stages=2 if exact else self.stages,
        )


# --- weights and inputs, laid out for products ------------------------------------------------


class Packed(NamedTuple):
    """Weights (4H, K) for products, gates of a unit side by side; a bias is a column more."""

    forth: Tensor  # (N, 4H, K) or, with biases, (N, 4H, K + ONES)
    back: Tensor  # (N, K, 4H)


def packed(
    weights: Sequence[Tensor], biases: Sequence[Sequence[Tensor]], low: torch.dtype
) -> Packed:
    """Pack weights, and the sums of one or two biases (4H,) of each or none, in this type."""
    (rows, width), more = weights[0].shape, ONES if biases else 0
    forth = weights[0].new_empty(len(weights), rows, width + more, dtype=low)
    back = weights[0].new_empty(len(weights), width, rows, dtype=low)
    grid = (triton.cdiv(rows // 4, _PACK[0]), triton.cdiv(width + more, _PACK[1]))
    for number, weight in enumerate(weights):
        bias = [*biases[number], None][:2] if biases else (None, None)
        _pack[grid](
            *(weight, weight.stride(0), *bias, forth[number], back[number]),
            *(rows // 4, width, width + more),
            **{"UNITS": _PACK[0], "TERMS": _PACK[1]},
        )
    return Packed(forth, back)


_PACK: Final = (16, 64)  # units and terms of a tile


def gate_by_gate(gradient: Tensor) -> Tensor:
    """Undo the interleaving of rows, (4H, ...)."""
    by_gate: Tensor = gradient.unflatten(0, (-1, 4)).transpose(0, 1)
    return by_gate.clone(memory_format=torch.contiguous_format).flatten(0, 1)


def with_ones(values: Tensor, low: torch.dtype) -> Tensor:
    """Values (B, J, K) by steps, with a one at the end of each. (J, B, K + ONES)."""
    batch, steps, size = values.shape
    out = values.new_empty(steps, batch, size + ONES, dtype=low)
    out[..., :size].copy_(values.transpose(0, 1))
    out[..., size] = 1
    out[..., size + 1 :] = 0
    return out


def by_rows(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Values by steps (J, B, K) -> (B, J, K), in this type."""
    out = values.new_empty(values.transpose(0, 1).shape, dtype=dtype)
    return out.copy_(values.transpose(0, 1))


# --- in kernels -------------------------------------------------------------------------------


@triton.jit
def _pack(
    weight,
    stride,
    bias,
    second_bias,
    forth,
    back,
    size,
    width,
    wider,
    UNITS: tl.constexpr,
    TERMS: tl.constexpr,
):
    """A tile of a weight, gate by gate, to its places; behind its columns the bias, and zeros."""
    units = tl.program_id(0) * UNITS + tl.arange(0, UNITS)
    terms = tl.program_id(1) * TERMS + tl.arange(0, TERMS)
    inside = (units < size)[:, None] & (terms < width)[None, :]
    mask = (units < size)[:, None] & (terms < wider)[None, :]
    enter, forget, candidate, leave = _load_gates(weight, stride, units, terms, size, inside)
    if bias is not None:
        here = (units < size)[:, None] & (terms == width)[None, :]
        one, two, three, four = _load_gates(bias, 1, units, terms * 0, size, here)
        enter, forget, candidate, leave = enter + one, forget + two, candidate + three, leave + four
        if second_bias is not None:
            one, two, three, four = _load_gates(second_bias, 1, units, terms * 0, size, here)
            enter, forget, candidate = enter + one, forget + two, candidate + three
            leave += four
    at = forth + (units * 4)[:, None] * wider + terms[None, :]
    tl.store(at, enter, mask=mask)
    tl.store(at + wider, forget, mask=mask)
    tl.store(at + 2 * wider, candidate, mask=mask)
    tl.store(at + 3 * wider, leave, mask=mask)
    even, odd = tl.join(enter, candidate), tl.join(forget, leave)
    turned = tl.reshape(tl.permute(tl.join(even, odd), (1, 0, 2, 3)), (TERMS, 4 * UNITS))
    columns = tl.program_id(0) * UNITS * 4 + tl.arange(0, 4 * UNITS)
    tl.store(
        back + terms[:, None] * 4 * size + columns[None, :],
        turned,
        mask=(terms < width)[:, None] & (columns < 4 * size)[None, :],
    )


@triton.jit
def _load_gates(at, stride, units, terms, size, mask):
    """The rows of the four gates of some units."""
    at += units[:, None] * stride + terms[None, :]
    enter = tl.load(at, mask=mask, other=0.0).to(tl.float32)
    forget = tl.load(at + size * stride, mask=mask, other=0.0).to(tl.float32)
    candidate = tl.load(at + 2 * size * stride, mask=mask, other=0.0).to(tl.float32)
    leave = tl.load(at + 3 * size * stride, mask=mask, other=0.0).to(tl.float32)
    return enter, forget, candidate, leave


@triton.jit
def product(
    a,
    a_stride,
    w,
    rows,
    columns,
    size,
    wanted,
    TALL: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEEP: tl.constexpr,
    EXACT: tl.constexpr,
):
    """A tile of `a @ w^T`, terms of a sum side by side in both; `w` has no gaps.

    Zeros where the product is not wanted.
    """
    terms = tl.arange(0, DEEP)
    sums = tl.zeros((TALL, COLUMNS), tl.float32)
    a_at = a + rows[:, None] * a_stride + terms[None, :]
    w_at = w + columns[None, :] * size + terms[:, None]
    for k in range(0, tl.where(wanted, size, 0), DEEP):
        inside = terms < size - k
        left = tl.load(a_at + k, mask=inside[None, :], other=0.0)
        right = tl.load(w_at + k, mask=inside[:, None], other=0.0)
        sums = tl.dot(left, right, sums, input_precision="ieee" if EXACT else "tf32")
    return sums


@triton.jit
def tanh(x):
    """In terms of what the language has."""
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def apart(gates, TALL: tl.constexpr, WIDE: tl.constexpr):
    """A tile of interleaved gates -> input, forget, candidate, output."""
    even, odd = tl.split(tl.reshape(gates, (TALL, WIDE, 2, 2)))
    enter, candidate = tl.split(even)
    forget, leave = tl.split(odd)
    return enter, forget, candidate, leave


@triton.jit
def together(enter, forget, candidate, leave, TALL: tl.constexpr, WIDE: tl.constexpr):
    """Undo `apart`."""
    even, odd = tl.join(enter, candidate), tl.join(forget, leave)
    return tl.reshape(tl.join(even, odd), (TALL, 4 * WIDE))


@triton.jit
def cell_forward(sums, cell, TALL: tl.constexpr, WIDE: tl.constexpr):
    """The gates' sums, the cell before -> the gates, the state and the cell behind."""
    enter, forget, candidate, leave = apart(sums, TALL, WIDE)
    enter, forget, leave = tl.sigmoid(enter), tl.sigmoid(forget), tl.sigmoid(leave)
    candidate = tanh(candidate)
    cell = forget * cell + enter * candidate
    gates = together(enter, forget, candidate, leave, TALL, WIDE)
    return gates, leave * tanh(cell), cell


@triton.jit
def cell_backward(gates, before, cell, d_hidden, d_cell, TALL: tl.constexpr, WIDE: tl.constexpr):
    """Gates, cells before and behind, what is owed -> d of the gates' sums and the cell before."""
    enter, forget, candidate, leave = apart(gates.to(tl.float32), TALL, WIDE)
    squashed = tanh(cell)
    d_leave = d_hidden * squashed * leave * (1 - leave)
    d_cell += d_hidden * leave * (1 - squashed * squashed)
    d_enter = d_cell * candidate * enter * (1 - enter)
    d_forget = d_cell * before * forget * (1 - forget)
    d_candidate = d_cell * enter * (1 - candidate * candidate)
    return together(d_enter, d_forget, d_candidate, d_leave, TALL, WIDE), d_cell * forget
