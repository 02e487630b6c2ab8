"""Batches of a split: first the plan of an epoch, which pairs in which order; then their ids.

A batch has a number of pairs, or as many as have a number of source tokens; or it is of single
words of headlines, and each comes with its whole pair.

Legend: B pairs of a batch, I source length, J headline length, all in sub-words.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ledeline.config.training import BatchUnit
from ledeline.core.shuffle import permutation, random_keys
from ledeline.data.dataset import Batch, Ids, Split


class BatchPosition(NamedTuple):
    """Where training is in the sequence of batches: how many of this epoch are done."""

    epoch: int
    batch: int


START: Final = BatchPosition(0, 0)
ROW_MULTIPLE: Final = 32  # a batch that is filled up has a multiple of these rows, or a full batch


@dataclass(frozen=True, eq=False)
class EpochPlan:
    """The batches of an epoch, as row numbers; no pair is read yet."""

    order: Ids  # all rows, or the numbers of all words, those of a batch side by side
    bounds: Ids  # (batches, 2): start and stop of each batch in `order`, in the order of batches
    heights: Ids  # (batches,): B of each batch if it is filled up
    source_widths: Ids  # (batches,): I of each batch
    headline_widths: Ids  # (batches,): J of each batch


class PlannedBatch(NamedTuple):
    """One batch of a plan; its pairs are not read yet."""

    plan: EpochPlan
    number: int  # of the batch in the plan

    @property
    def rows(self) -> Ids:
        """The rows of the pairs in the split or, of a batch of words, their numbers. (B,)."""
        start, stop = self.plan.bounds[self.number]
        return self.plan.order[start:stop]


class _Words:
    """The words of all headlines, <eos> included, numbered in the order of the split."""

    def __init__(self, headline_lengths: Ids) -> None:
        counts, rows = headline_lengths + 1, np.arange(len(headline_lengths))
        self._starts = np.cumsum(counts) - counts
        self._rows = np.repeat(rows.astype(np.min_scalar_type(len(rows))), counts)

    def rows(self, words: Ids | slice) -> Ids:
        """The rows of the pairs that these words are from."""
        return self._rows[words].astype(np.int64)

    def positions(self, words: Ids) -> Ids:
        """The position of each word in its headline."""
        positions: Ids = words - self._starts[self._rows[words]]
        return positions


class Batches:
    """The batches of a split, epoch after epoch, in an order that is fixed by seed and epoch.

    With `equal_lengths`, all sources of a batch have the same length, so that no source is padded
    and headlines are padded to the source length, as SPM needs it. Otherwise a batch mixes lengths.
    Either way, each pair occurs once per epoch. The size of a batch counts its pairs or, as `unit`
    says, its source tokens: sources then have equal lengths, and a batch has at most `size` tokens
    (but always one pair). Batches may also be of single words: each word of each headline, and each
    <eos>, occurs once, with its pair. With `similar_headlines`, those of a batch have similar
    lengths too, so that less is padded.

    The order is the same for any number of ranks: each rank takes every `world_size`-th pair of a
    batch (none if a batch has fewer pairs than ranks).

    Headline widths with <eos> are rounded up to a `multiple`, but not beyond the sources, so that
    there are fewer shapes. `EpochPlan.heights` serves the same purpose: one height for all batches
    of a source length, that of a full batch, or a little more than the pairs of that length.
    """

    def __init__(
        self,
        split: Split,
        *,
        size: int,
        seed: int,
        unit: BatchUnit = "pairs",
        equal_lengths: bool = True,
        similar_headlines: bool = False,
        multiple: int = 1,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        if size < 1 or multiple < 1 or not 0 <= rank < world_size:
            raise ValueError(
                f"impossible batches: size {size}, multiple {multiple}, rank {rank} of {world_size}"
            )
        if (unit == "source_tokens" or similar_headlines) and not equal_lengths:
            raise ValueError("these batches need sources of equal lengths")
        if unit == "words" and similar_headlines:
            raise ValueError("batches of single words have no headlines of similar lengths")
        self.split, self._seed, self._multiple = split, seed, multiple
        self._rank, self._world_size = rank, world_size
        self._source_lengths = split.sources.lengths()
        self._headline_lengths = split.headlines.lengths()
        lengths = self._source_lengths if equal_lengths else np.zeros(len(split), np.int64)
        # Small integers are sorted by radix sort.
        lengths = lengths.astype(np.min_scalar_type(int(lengths.max(initial=0))))
        self._words = _Words(self._headline_lengths) if unit == "words" else None
        if self._words is not None:
            lengths = lengths[self._words.rows(slice(None))]
        self._by_length = np.argsort(lengths, kind="stable")
        ends = np.cumsum(np.bincount(lengths)).tolist() if len(split) else []
        self._runs = list(zip([0, *ends], ends, strict=False))  # of sources of lengths 0, 1, ...
        self._similar_headlines = similar_headlines
        sizes = [size] * len(ends)
        if unit == "source_tokens":
            sizes = [max(1, size // max(1, length)) for length in range(len(ends))]
        self._bounds = _split_runs(self._runs, sizes)
        self._heights = _padded_heights(self._runs, sizes)

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self._bounds)

    @property
    def max_height(self) -> int:
        """The most rows of a batch if it is filled up."""
        return int(self._heights.max(initial=0))

    def iterate_from(
        self, position: BatchPosition = START
    ) -> Iterator[tuple[Batch, BatchPosition]]:
        """Every batch from a position on, each with the position after it, without end.

        To resume behind a batch, start from its position; ranks and machines may differ.
        """
        for planned, behind in self.planned_from(position):
            yield self.read(planned), behind

    def planned_from(
        self, position: BatchPosition = START
    ) -> Iterator[tuple[PlannedBatch, BatchPosition]]:
        """The same, but the pairs are not read, which costs next to nothing.

        The next epoch is planned in the background.
        """
        if not len(self):
            return
        epoch, done = position
        with ThreadPoolExecutor(1) as planner:
            coming = planner.submit(self.plan, epoch)
            while True:
                plan = coming.result()
                coming = planner.submit(self.plan, epoch + 1)
                for number in range(done, len(self)):
                    last = number + 1 == len(self)
                    behind = (
                        BatchPosition(epoch + 1, 0) if last else BatchPosition(epoch, number + 1)
                    )
                    yield PlannedBatch(plan, number), behind
                epoch, done = epoch + 1, 0

    def epoch(self, epoch: int) -> Iterator[Batch]:
        """The batches of one epoch."""
        plan = self.plan(epoch)
        for number in range(len(self)):
            yield self.read(PlannedBatch(plan, number))

    def plan(self, epoch: int) -> EpochPlan:
        """The plan of one epoch: shuffle the pairs of each length, then the batches."""
        keys = random_keys(self._seed, 2 * epoch, len(self._by_length))[self._by_length]
        order = np.empty_like(self._by_length)
        for run in (slice(*run) for run in self._runs):
            rows = self._by_length[run]
            order[run] = rows[self._shuffled(rows, keys[run])]
        turns = permutation(self._seed, 2 * epoch + 1, len(self))
        sources, headlines = self._widths(self._rows(order))
        of_batches = self._bounds, self._heights, sources, headlines
        return EpochPlan(order, *(one[turns] for one in of_batches))

    def _shuffled(self, rows: Ids, keys: npt.NDArray[np.uint64]) -> Ids:
        """The order of the pairs of one source length; no two keys are alike."""
        if self._similar_headlines:
            return np.lexsort((keys, self._headline_lengths[rows]))
        return np.argsort(keys)

    def _rows(self, order: Ids) -> Ids:
        """The rows of the pairs, whatever batches are of."""
        return order if self._words is None else self._words.rows(order)

    def _widths(self, order: Ids) -> tuple[Ids, Ids]:
        """The widths of each batch, before the batches are shuffled."""
        if not len(self):
            return order, order
        sources, headlines = (
            np.maximum.reduceat(lengths[order], self._bounds[:, 0])
            for lengths in (self._source_lengths, self._headline_lengths)
        )
        rounded = -(-(headlines + 1) // self._multiple) * self._multiple - 1
        return sources, np.maximum(headlines, np.minimum(rounded, sources - 1))

    def num_tokens(self, rows: Ids) -> int:
        """Headline tokens of these rows, <eos> included; of words, as many as there are."""
        if self._words is not None:
            return len(rows)
        return int(self._headline_lengths[rows].sum()) + len(rows)

    def read(self, planned: PlannedBatch) -> Batch:
        """The pairs, or words with their pairs, of a batch that this rank takes."""
        rows, width = self._rows(planned.rows), int(planned.plan.headline_widths[planned.number])
        mine = slice(self._rank, None, self._world_size)
        sources, source_lengths = (a[mine] for a in self.split.sources.padded(rows))
        headlines, headline_lengths = (a[mine] for a in self.split.headlines.padded(rows, width))
        positions = None if self._words is None else self._words.positions(planned.rows[mine])
        return Batch(sources, source_lengths, headlines, headline_lengths, len(rows), positions)


def _split_runs(runs: list[tuple[int, int]], sizes: list[int]) -> Ids:
    """Split runs into batches of at most so many rows, for each run its own: (start, stop)."""
    bounds = [
        (start, min(start + size, stop))
        for (begin, stop), size in zip(runs, sizes, strict=True)
        for start in range(begin, stop, size)
    ]
    return np.array(bounds, np.int64).reshape(-1, 2)


def _padded_heights(runs: list[tuple[int, int]], sizes: list[int]) -> Ids:
    """Rows of each batch of `_split_runs` if it is filled up."""
    counts = np.diff(np.array(runs, np.int64).reshape(-1, 2)).squeeze(1)
    most = np.array(sizes, np.int64)
    heights = np.minimum(most, -(-counts // ROW_MULTIPLE) * ROW_MULTIPLE)
    return np.repeat(heights, -(-counts // most))
