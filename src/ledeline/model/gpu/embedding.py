"""Word embeddings whose gradient is deterministic, bit for bit.

The gradient of a type is the sum over all positions where it occurs; in a batch some types occur
thousands of times. Sorted by type, the positions of one type are a run. The sorted positions are
cut into chunks, and the runs are added up in two launches, in an order that does not depend on
which program runs first:

1. A program for each chunk adds up the part of each run in it. The sum of a run that began in an
   earlier chunk is stored as a partial sum of the chunk; all others go to the gradient.
2. For each run that reaches beyond the chunk it began in, a program adds its partial sums.
"""

from typing import Any, Final

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from ledeline.model.gpu.triton_language import tl, triton

CHUNK: Final = 32  # sorted positions of a program in the first launch
_BLOCK_COLUMNS: Final = 128  # columns of a program there: four per thread
_SECOND_BLOCK: Final = (32, 32)  # chunks and columns of a block in the second launch


def embed(ids: Tensor, weight: Tensor) -> Tensor:
    """Rows of a weight (V, D) by ids. (B, J) -> (B, J, D)."""
    rows: Tensor = _Embed.apply(ids, weight)
    return rows


class _Embed(torch.autograd.Function):
    """See `embed`."""

    @staticmethod
    def forward(ctx: Any, ids: Tensor, weight: Tensor) -> Tensor:
        """Only the ids are saved."""
        ctx.save_for_backward(ids)
        ctx.vocabulary = len(weight)
        return functional.embedding(ids, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_rows: Tensor) -> tuple[None, Tensor]:
        """Summed in float32, whatever the type; autograd casts it to that of the weight."""
        (ids,) = ctx.saved_tensors
        return None, _gradient(ids, d_rows, ctx.vocabulary)


def _gradient(ids: Tensor, d_rows: Tensor, vocabulary: int) -> Tensor:
    """The sum of the rows of each id; zeros where there are none. (B, J, D) -> (V, D)."""
    size, rows = d_rows.shape[-1], d_rows.contiguous()
    sorted_ids, positions = _narrow(ids.flatten(), vocabulary).sort(stable=True)
    num_ids = len(sorted_ids)
    num_chunks = triton.cdiv(num_ids, CHUNK)
    gradient = rows.new_zeros(vocabulary, size, dtype=torch.float32)
    partial_sums = rows.new_empty(num_chunks, size, dtype=torch.float32)
    block_columns = min(_BLOCK_COLUMNS, triton.next_power_of_2(size))
    _add_chunk[(num_chunks, triton.cdiv(size, block_columns))](
        *(sorted_ids, positions, rows, gradient, partial_sums, num_ids),
        SIZE=size,
        CHUNK=CHUNK,
        BLOCK_COLUMNS=block_columns,
        num_warps=1,
    )
    chunks, block_columns = _SECOND_BLOCK
    _add_partial_sums[(num_chunks, triton.cdiv(size, block_columns))](
        *(sorted_ids, gradient, partial_sums, num_ids),
        SIZE=size,
        CHUNK=CHUNK,
        BLOCK_CHUNKS=chunks,
        BLOCK_COLUMNS=block_columns,
        num_warps=4,
    )
    return gradient


def _narrow(ids: Tensor, vocabulary: int) -> Tensor:
    """Ids in fewer bits: a GPU sorts them eight bits at a time."""
    return ids.to(torch.int16 if vocabulary <= torch.iinfo(torch.int16).max else torch.int32)


# --- kernels ----------------------------------------------------------------------------------


@triton.jit
def _segmented_sum(one, total, other, value):
    """For a scan: a sum that starts anew with each id. (id, sum) twice -> (id, sum)."""
    return other, tl.where(one == other, total + value, value)


@triton.jit(do_not_specialize=["num_ids"])
def _add_chunk(
    ids,  # (N,), sorted
    positions,  # (N,): of each sorted id, where it occurs
    rows,  # (N, D), by positions
    gradient,  # (V, D): gets the sum of each run that begins in this chunk
    partial_sums,  # (chunks, D): gets that of the run that began before, if there is one
    num_ids,
    SIZE: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK_COLUMNS: tl.constexpr,
):
    """Some columns of a chunk. The sum of a run is complete at its last position in the chunk."""
    chunk = tl.program_id(0).to(tl.int64)
    start = chunk * CHUNK
    at = start + tl.arange(0, CHUNK)
    columns = tl.program_id(1) * BLOCK_COLUMNS + tl.arange(0, BLOCK_COLUMNS)
    inside = (columns < SIZE)[None, :]
    before = tl.load(ids + start - 1, mask=start > 0, other=-1)
    own = tl.load(ids + at, mask=at < num_ids, other=-1)
    after = tl.load(ids + at + 1, mask=at + 1 < num_ids, other=-1)
    position = tl.load(positions + at, mask=at < num_ids, other=0)
    mask = (at < num_ids)[:, None] & inside
    values = tl.load(rows + position[:, None] * SIZE + columns[None, :], mask=mask, other=0.0)
    keys = tl.broadcast_to(own[:, None], (CHUNK, BLOCK_COLUMNS))
    _, sums = tl.associative_scan((keys, values.to(tl.float32)), 0, _segmented_sum)
    last = ((own != after) | (at == start + CHUNK - 1)) & (at < num_ids)
    row = gradient + own.to(tl.int64)[:, None] * SIZE + columns[None, :]
    tl.store(row, sums, mask=(last & (own != before))[:, None] & inside)
    row = partial_sums + (at // CHUNK)[:, None] * SIZE + columns[None, :]
    tl.store(row, sums, mask=(last & (own == before))[:, None] & inside)


@triton.jit(do_not_specialize=["num_ids"])
def _add_partial_sums(
    ids,  # (N,), sorted
    gradient,  # (V, D)
    partial_sums,  # (chunks, D)
    num_ids,
    SIZE: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK_CHUNKS: tl.constexpr,
    BLOCK_COLUMNS: tl.constexpr,
):
    """Some columns of the run that begins in a chunk and reaches beyond it, if there is one.

    It reaches into the following chunks as long as they begin with its id. Each iteration looks at
    the ids of the next block while the partial sums of this one are being loaded.
    """
    start = tl.program_id(0).to(tl.int64) * CHUNK
    columns = tl.program_id(1) * BLOCK_COLUMNS + tl.arange(0, BLOCK_COLUMNS)
    inside = columns < SIZE
    before = tl.load(ids + start - 1, mask=start > 0, other=-1)
    own = tl.load(ids + start + CHUNK - 1, mask=start + CHUNK < num_ids, other=-1)
    at = start + CHUNK * (1 + tl.arange(0, BLOCK_CHUNKS))
    continues = _starts_with(own, ids, at, num_ids) & (own != before)
    if tl.max(continues, 0) > 0:
        row = gradient + own.to(tl.int64) * SIZE + columns
        total = tl.load(row, mask=inside, other=0.0)
        sums = tl.zeros((BLOCK_CHUNKS, BLOCK_COLUMNS), tl.float32)
        while tl.max(continues, 0) > 0:
            piece = partial_sums + (at // CHUNK)[:, None] * SIZE + columns[None, :]
            sums += tl.load(piece, mask=(continues > 0)[:, None] & inside[None, :], other=0.0)
            at += CHUNK * BLOCK_CHUNKS
            continues = _starts_with(own, ids, at, num_ids)
        tl.store(row, total + tl.sum(sums, 0), mask=inside)


@triton.jit
def _starts_with(own, ids, at, num_ids):
    """1 where this id is at the position, else 0."""
    inside = at < num_ids
    return (inside & (tl.load(ids + at, mask=inside, other=-1) == own)).to(tl.int32)
