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

from ledeline.model.gpu.language import tl, triton

ONES: Final = 8  # columns more, for a bias: products want rows of whole 16 bytes


class Tile(NamedTuple):
    """The shape of a product's tiles, and how a program works on one."""

    tall: int
    wide: int
    deep: int
    warps: int
    stages: int

    def launcher(
        self, kernel: Any, batch: int, size: int, dtype: torch.dtype, *more: int, halves: int = 1
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


def interleaved(weights: Sequence[Tensor], biases: Sequence[Tensor], low: torch.dtype) -> Tensor:
    """Weights (4H, K) with the gates of a unit side by side, in this type; a bias is a column more.

    (N, 4H, K) or, with biases (4H,), (N, 4H, K + ONES).
    """
    (rows, width), more = weights[0].shape, ONES if biases else 0
    out = weights[0].new_empty(len(weights), rows // 4, 4, width + more, dtype=low)
    for one, weight in zip(out, weights, strict=True):
        one[..., :width].copy_(weight.unflatten(0, (4, -1)).transpose(0, 1))
    if biases:
        out[..., width] = torch.stack(list(biases)).unflatten(1, (4, -1)).transpose(1, 2)
        out[..., width + 1 :] = 0
    return out.flatten(1, 2)


def turned(weights: Sequence[Tensor], low: torch.dtype) -> Tensor:
    """The same without biases, the other way round. (N, K, 4H)."""
    rows, width = weights[0].shape
    out = weights[0].new_empty(len(weights), width, rows // 4, 4, dtype=low)
    for one, weight in zip(out, weights, strict=True):
        one.copy_(weight.unflatten(0, (4, -1)).permute(2, 1, 0))
    return out.flatten(2)


def gate_by_gate(gradient: Tensor) -> Tensor:
    """Undo the interleaving of rows, (4H, ...)."""
    by_gate = gradient.unflatten(0, (-1, 4)).transpose(0, 1)
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


def precise_product(one: Tensor, other: Tensor) -> Tensor:
    """A product that is added up and left in float32."""
    if one.dtype == torch.float32:
        return torch.mm(one, other)
    if one.is_cuda:
        return torch.mm(one, other, out_dtype=torch.float32)
    return torch.mm(one, other).float()  # added up in float32, but torch has no more on a CPU


# --- in kernels -------------------------------------------------------------------------------


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
