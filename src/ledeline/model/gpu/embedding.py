"""The embeddings of words, with a gradient that is the same, bit for bit, each time.

The gradient of a type is the sum over all places where it stands, and in a batch some types stand
in thousands. Sorted by type, the places of one are a run. The sorted places are cut into chunks,
and the runs are added up in two launches, in an order that does not depend on which program comes
first:

1. A program for each chunk adds up the part of each run in it. What belongs to a run that came
   from the chunk before is set aside; all else is written to the gradient.
2. For each run that leaves the chunk it began in, a program adds what was set aside of it.
"""

from typing import Any, Final

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from ledeline.model.gpu.triton_language import tl, triton

CHUNK: Final = 32  # sorted places that a program adds up one by one
_WIDE: Final = 128  # columns of a program there: four to a thread, which so has all their rows
_PIECES: Final = (32, 32)  # chunks and columns that a program takes at once in the second launch


def embed(ids: Tensor, weight: Tensor) -> Tensor:
    """Rows of a weight (V, D) by ids. (B, J) -> (B, J, D)."""
    rows: Tensor = _Embed.apply(ids, weight)
    return rows


class _Embed(torch.autograd.Function):
    """See `embed`."""

    @staticmethod
    def forward(ctx: Any, ids: Tensor, weight: Tensor) -> Tensor:
        """Nothing but the ids is kept."""
        ctx.save_for_backward(ids)
        ctx.vocabulary = len(weight)
        return functional.embedding(ids, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_rows: Tensor) -> tuple[None, Tensor]:
        """Added up in float32, whatever the type; autograd makes it the weight's."""
        (ids,) = ctx.saved_tensors
        return None, _gradient(ids, d_rows, ctx.vocabulary)


def _gradient(ids: Tensor, d_rows: Tensor, vocabulary: int) -> Tensor:
    """The sum of the rows of each id; zeros where there are none. (B, J, D) -> (V, D)."""
    size, rows = d_rows.shape[-1], d_rows.contiguous()
    sorted_ids, places = _narrow(ids.flatten(), vocabulary).sort(stable=True)
    num_ids = len(sorted_ids)
    num_chunks = triton.cdiv(num_ids, CHUNK)
    gradient = rows.new_zeros(vocabulary, size, dtype=torch.float32)
    set_aside = rows.new_empty(num_chunks, size, dtype=torch.float32)
    wide = min(_WIDE, triton.next_power_of_2(size))
    _add_chunk[(num_chunks, triton.cdiv(size, wide))](
        *(sorted_ids, places, rows, gradient, set_aside, num_ids),
        SIZE=size,
        CHUNK=CHUNK,
        WIDE=wide,
        num_warps=1,
    )
    chunks, wide = _PIECES
    _add_set_aside[(num_chunks, triton.cdiv(size, wide))](
        *(sorted_ids, gradient, set_aside, num_ids),
        SIZE=size,
        CHUNK=CHUNK,
        CHUNKS=chunks,
        WIDE=wide,
        num_warps=4,
    )
    return gradient


def _narrow(ids: Tensor, vocabulary: int) -> Tensor:
    """Ids in fewer bits: a GPU sorts them eight bits at a time."""
    return ids.to(torch.int16 if vocabulary <= torch.iinfo(torch.int16).max else torch.int32)


# --- kernels ----------------------------------------------------------------------------------


@triton.jit
def _within_runs(one, total, other, value):
    """A sum that starts anew with each id, from the sums of two neighbours up to their last id."""
    return other, tl.where(one == other, total + value, value)


@triton.jit(do_not_specialize=["num_ids"])
def _add_chunk(
    ids,  # (N,), sorted
    places,  # (N,): where they stood
    rows,  # (N, D), by places
    gradient,  # (V, D): of each run that begins here, what lies in this chunk
    set_aside,  # (chunks, D): of the run that came from the chunk before, if one did
    num_ids,
    SIZE: tl.constexpr,
    CHUNK: tl.constexpr,
    WIDE: tl.constexpr,
):
    """Some columns of a chunk. What a run has in it is known at its last place there."""
    chunk = tl.program_id(0).to(tl.int64)
    start = chunk * CHUNK
    at = start + tl.arange(0, CHUNK)
    columns = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    inside = (columns < SIZE)[None, :]
    before = tl.load(ids + start - 1, mask=start > 0, other=-1)
    own = tl.load(ids + at, mask=at < num_ids, other=-1)
    behind = tl.load(ids + at + 1, mask=at + 1 < num_ids, other=-1)
    place = tl.load(places + at, mask=at < num_ids, other=0)
    mask = (at < num_ids)[:, None] & inside
    values = tl.load(rows + place[:, None] * SIZE + columns[None, :], mask=mask, other=0.0)
    keys = tl.broadcast_to(own[:, None], (CHUNK, WIDE))
    _, sums = tl.associative_scan((keys, values.to(tl.float32)), 0, _within_runs)
    last = ((own != behind) | (at == start + CHUNK - 1)) & (at < num_ids)
    row = gradient + own.to(tl.int64)[:, None] * SIZE + columns[None, :]
    tl.store(row, sums, mask=(last & (own != before))[:, None] & inside)
    row = set_aside + (at // CHUNK)[:, None] * SIZE + columns[None, :]
    tl.store(row, sums, mask=(last & (own == before))[:, None] & inside)


@triton.jit(do_not_specialize=["num_ids"])
def _add_set_aside(
    ids,  # (N,), sorted
    gradient,  # (V, D)
    set_aside,  # (chunks, D)
    num_ids,
    SIZE: tl.constexpr,
    CHUNK: tl.constexpr,
    CHUNKS: tl.constexpr,
    WIDE: tl.constexpr,
):
    """Some columns of the run that begins in a chunk and leaves it, if one does.

    The chunks behind are its own as far as they begin with its id. Those of the next turn are
    looked at while the sums of this one are on their way.
    """
    start = tl.program_id(0).to(tl.int64) * CHUNK
    columns = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    inside = columns < SIZE
    before = tl.load(ids + start - 1, mask=start > 0, other=-1)
    own = tl.load(ids + start + CHUNK - 1, mask=start + CHUNK < num_ids, other=-1)
    at = start + CHUNK * (1 + tl.arange(0, CHUNKS))
    going_on = _begin_with(own, ids, at, num_ids) & (own != before)
    if tl.max(going_on, 0) > 0:
        row = gradient + own.to(tl.int64) * SIZE + columns
        total = tl.load(row, mask=inside, other=0.0)
        sums = tl.zeros((CHUNKS, WIDE), tl.float32)
        while tl.max(going_on, 0) > 0:
            piece = set_aside + (at // CHUNK)[:, None] * SIZE + columns[None, :]
            sums += tl.load(piece, mask=(going_on > 0)[:, None] & inside[None, :], other=0.0)
            at += CHUNK * CHUNKS
            going_on = _begin_with(own, ids, at, num_ids)
        tl.store(row, total + tl.sum(sums, 0), mask=inside)


@triton.jit
def _begin_with(own, ids, at, num_ids):
    """1 where this id is, else 0."""
    inside = at < num_ids
    return (inside & (tl.load(ids + at, mask=inside, other=-1) == own)).to(tl.int32)
