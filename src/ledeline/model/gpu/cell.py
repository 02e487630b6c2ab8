"""What the recurrent kernels share: a tile of a matrix product, and the LSTM cell.

Gates are interleaved: the four gates of a unit are side by side, in the order input, forget,
candidate, output. So a tile of gates holds whole cells. A tile has BLOCK_M rows of the batch and
BLOCK_N units; one iteration of a product's loop adds up BLOCK_K terms. What a kernel needs after
that loop is loaded before it, so that the loads overlap with the product.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor

from ledeline.model.gpu.triton_language import tl, triton

BIAS_COLUMNS: Final = 8  # extra columns for a bias; 8, so that rows stay aligned to 16 bytes


class Tile(NamedTuple):
    """The tile size of a matrix product, and Triton's launch settings for it."""

    block_m: int
    block_n: int
    block_k: int
    warps: int
    stages: int

    def launcher(
        self, kernel: Any, dtype: torch.dtype, batch: int, size: int, *more: int, halves: int = 1
    ) -> Callable[..., None]:
        """The kernel, ready to launch for so many rows and units.

        The axes of the grid are tiles of rows, tiles of units (of each half), and `more`. In
        float32, values need twice the shared memory, so blocks and stages are smaller.
        """
        is_float32 = dtype == torch.float32
        grid = (
            triton.cdiv(batch, self.block_m),
            halves * triton.cdiv(size, self.block_n),
            *more,
        )
        return partial(
            kernel[grid],
            BLOCK_M=self.block_m,
            BLOCK_N=self.block_n,
            BLOCK_K=32 if is_float32 else self.block_k,
            FLOAT32=is_float32,
            num_warps=self.warps,
            num_stages=2 if is_float32 else self.stages,
        )


# --- the memory layout of weights and inputs ------------------------------------------------


class PackedWeights(NamedTuple):
    """N weights (4H, K) with interleaved gates; a bias is one more column."""

    weights: Tensor  # for the forward pass: (N, 4H, K) or, with biases, (N, 4H, K + BIAS_COLUMNS)
    transposed: Tensor  # for the backward pass: (N, K, 4H)


def pack_weights(
    weights: Sequence[Tensor], biases: Sequence[Sequence[Tensor]], dtype: torch.dtype
) -> PackedWeights:
    """Pack weights in this type, each with the sum of its one or two biases (4H,), if any."""
    (rows, width), more = weights[0].shape, BIAS_COLUMNS if biases else 0
    interleaved = weights[0].new_empty(len(weights), rows, width + more, dtype=dtype)
    transposed = weights[0].new_empty(len(weights), width, rows, dtype=dtype)
    grid = (triton.cdiv(rows // 4, _PACK[0]), triton.cdiv(width + more, _PACK[1]))
    for number, weight in enumerate(weights):
        bias = [*biases[number], None][:2] if biases else (None, None)
        _pack[grid](
            *(weight, weight.stride(0), *bias, interleaved[number], transposed[number]),
            *(rows // 4, width, width + more),
            **{"UNITS": _PACK[0], "TERMS": _PACK[1]},
        )
    return PackedWeights(interleaved, transposed)


_PACK: Final = (16, 64)  # units and terms of a tile


def deinterleave(gradient: Tensor) -> Tensor:
    """Rows of interleaved gates (4H, ...) -> gate by gate, as torch has them."""
    by_gate: Tensor = gradient.unflatten(0, (-1, 4)).transpose(0, 1)
    return by_gate.clone(memory_format=torch.contiguous_format).flatten(0, 1)


def with_bias_columns(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Values (B, J, K) -> (J, B, K + BIAS_COLUMNS): steps first; a one, then zeros, at the end."""
    batch, steps, size = values.shape
    out = values.new_empty(steps, batch, size + BIAS_COLUMNS, dtype=dtype)
    out[..., :size].copy_(values.transpose(0, 1))
    out[..., size] = 1
    out[..., size + 1 :] = 0
    return out


def batch_first(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Values (J, B, K) -> (B, J, K), in this type."""
    out = values.new_empty(values.transpose(0, 1).shape, dtype=dtype)
    return out.copy_(values.transpose(0, 1))


# --- in kernels -------------------------------------------------------------------------------


@triton.jit
def _pack(
    weight,
    stride,
    bias,
    second_bias,
    interleaved,
    transposed,
    size,
    width,
    padded_width,
    UNITS: tl.constexpr,
    TERMS: tl.constexpr,
):
    """Interleave a tile of a weight, and transpose it; after its columns the bias, and zeros."""
    units = tl.program_id(0) * UNITS + tl.arange(0, UNITS)
    terms = tl.program_id(1) * TERMS + tl.arange(0, TERMS)
    inside = (units < size)[:, None] & (terms < width)[None, :]
    mask = (units < size)[:, None] & (terms < padded_width)[None, :]
    in_gate, forget, candidate, out_gate = _load_gates(weight, stride, units, terms, size, inside)
    if bias is not None:
        here = (units < size)[:, None] & (terms == width)[None, :]
        one, two, three, four = _load_gates(bias, 1, units, terms * 0, size, here)
        in_gate, forget, candidate, out_gate = (
            in_gate + one,
            forget + two,
            candidate + three,
            out_gate + four,
        )
        if second_bias is not None:
            one, two, three, four = _load_gates(second_bias, 1, units, terms * 0, size, here)
            in_gate, forget, candidate = in_gate + one, forget + two, candidate + three
            out_gate += four
    at = interleaved + (units * 4)[:, None] * padded_width + terms[None, :]
    tl.store(at, in_gate, mask=mask)
    tl.store(at + padded_width, forget, mask=mask)
    tl.store(at + 2 * padded_width, candidate, mask=mask)
    tl.store(at + 3 * padded_width, out_gate, mask=mask)
    even, odd = tl.join(in_gate, candidate), tl.join(forget, out_gate)
    tile = tl.reshape(tl.permute(tl.join(even, odd), (1, 0, 2, 3)), (TERMS, 4 * UNITS))
    columns = tl.program_id(0) * UNITS * 4 + tl.arange(0, 4 * UNITS)
    tl.store(
        transposed + terms[:, None] * 4 * size + columns[None, :],
        tile,
        mask=(terms < width)[:, None] & (columns < 4 * size)[None, :],
    )


@triton.jit
def _load_gates(at, stride, units, terms, size, mask):
    """The rows of some units, of each of the four gates."""
    at += units[:, None] * stride + terms[None, :]
    in_gate = tl.load(at, mask=mask, other=0.0).to(tl.float32)
    forget = tl.load(at + size * stride, mask=mask, other=0.0).to(tl.float32)
    candidate = tl.load(at + 2 * size * stride, mask=mask, other=0.0).to(tl.float32)
    out_gate = tl.load(at + 3 * size * stride, mask=mask, other=0.0).to(tl.float32)
    return in_gate, forget, candidate, out_gate


@triton.jit
def matmul_tile(
    a,
    a_stride,
    w,
    rows,
    columns,
    size,
    wanted,
    BLOCK_M: tl.constexpr,
    COLUMNS: tl.constexpr,
    BLOCK_K: tl.constexpr,
    FLOAT32: tl.constexpr,
):
    """A tile of `a @ w^T`; both are row-major, and `w` is contiguous.

    All zeros if not `wanted`.
    """
    terms = tl.arange(0, BLOCK_K)
    sums = tl.zeros((BLOCK_M, COLUMNS), tl.float32)
    a_at = a + rows[:, None] * a_stride + terms[None, :]
    w_at = w + columns[None, :] * size + terms[:, None]
    for k in range(0, tl.where(wanted, size, 0), BLOCK_K):
        inside = terms < size - k
        left = tl.load(a_at + k, mask=inside[None, :], other=0.0)
        right = tl.load(w_at + k, mask=inside[:, None], other=0.0)
        sums = tl.dot(left, right, sums, input_precision="ieee" if FLOAT32 else "tf32")
    return sums


@triton.jit
def tanh(x):
    """Tanh by the sigmoid, which Triton has."""
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def split_gates(gates, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """A tile of interleaved gates -> input, forget, candidate, output."""
    even, odd = tl.split(tl.reshape(gates, (BLOCK_M, BLOCK_N, 2, 2)))
    in_gate, candidate = tl.split(even)
    forget, out_gate = tl.split(odd)
    return in_gate, forget, candidate, out_gate


@triton.jit
def join_gates(in_gate, forget, candidate, out_gate, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Undo `split_gates`."""
    even, odd = tl.join(in_gate, candidate), tl.join(forget, out_gate)
    return tl.reshape(tl.join(even, odd), (BLOCK_M, 4 * BLOCK_N))


@triton.jit
def cell_forward(sums, cell, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Gates before sigmoid and tanh, old cell -> gates after them, hidden state, new cell."""
    in_gate, forget, candidate, out_gate = split_gates(sums, BLOCK_M, BLOCK_N)
    in_gate, forget, out_gate = tl.sigmoid(in_gate), tl.sigmoid(forget), tl.sigmoid(out_gate)
    candidate = tanh(candidate)
    cell = forget * cell + in_gate * candidate
    gates = join_gates(in_gate, forget, candidate, out_gate, BLOCK_M, BLOCK_N)
    return gates, out_gate * tanh(cell), cell


@triton.jit
def cell_backward(
    gates, before, cell, d_hidden, d_cell, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """Gates, old and new cell, incoming gradients -> gradients of the gates and the old cell.

    The gates are those after sigmoid and tanh; their gradients are of the values before.
    """
    in_gate, forget, candidate, out_gate = split_gates(gates.to(tl.float32), BLOCK_M, BLOCK_N)
    tanh_cell = tanh(cell)
    d_out_gate = d_hidden * tanh_cell * out_gate * (1 - out_gate)
    d_cell += d_hidden * out_gate * (1 - tanh_cell * tanh_cell)
    d_in_gate = d_cell * candidate * in_gate * (1 - in_gate)
    d_forget = d_cell * before * forget * (1 - forget)
    d_candidate = d_cell * in_gate * (1 - candidate * candidate)
    return join_gates(
        d_in_gate, d_forget, d_candidate, d_out_gate, BLOCK_M, BLOCK_N
    ), d_cell * forget
