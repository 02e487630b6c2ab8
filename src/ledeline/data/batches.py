"""Batches of a split: first which pairs, by number and in which order; then the pairs themselves.

Legend: B pairs of a batch, I source length, J headline length, all in sub-words.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from ledeline.core.shuffle import permutation, random_keys
from ledeline.data.dataset import Batch, Ids, Split


class Position(NamedTuple):
    """A place in the endless sequence of batches: so many batches of this epoch are done."""

    epoch: int
    batch: int


START: Final = Position(0, 0)
FULL_ROWS: Final = 32  # a rectangle that is filled up has a multiple of them, or all that may be


@dataclass(frozen=True, eq=False)
class Plan:
    """The batches of an epoch, as numbers of rows; nothing is read yet."""

    order: Ids  # all rows, those of a batch side by side
    bounds: Ids  # (batches, 2): where each batch lies in it, in the order they come
    heights: Ids  # (batches,): rows of each rectangle where it is filled up
    source_widths: Ids  # (batches,): I of each rectangle
    headline_widths: Ids  # (batches,): J of each rectangle


class Draw(NamedTuple):
    """The pairs of one batch, drawn but not gathered."""

    plan: Plan
    number: int  # of the batch in its plan

    @property
    def rows(self) -> Ids:
        """Where the pairs are in the split. (B,)."""
        start, stop = self.plan.bounds[self.number]
        return self.plan.order[start:stop]


class Batches:
    """The batches of a split, epoch after epoch, in an order that seed and epoch fix.

    With `equal_lengths` all sources of a batch have one length, so that no source is padded and
    <pad> up to the source length is exactly the SPM's; otherwise a batch mixes lengths. In both a
    pair comes once an epoch. The order is the same for any number of ranks: each rank takes every
    `world_size`-th pair of the same batch (none, where a batch has fewer pairs than ranks).

    Headlines with <eos> are as wide as the widest, rounded up to a `multiple`, but not beyond the
    sources for that: so there are fewer shapes. Who fills batches up does so to one height for all
    of a length: that of a full batch or, where a length has fewer pairs than that, little more than
    it has.
    """

    def __init__(
        self,
        split: Split,
        *,
        size: int,
        seed: int,
        equal_lengths: bool = True,
        multiple: int = 1,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        if size < 1 or multiple < 1 or not 0 <= rank < world_size:
            raise ValueError(
                f"impossible batches: size {size}, multiple {multiple}, rank {rank} of {world_size}"
            )
        self.split, self.size, self._seed, self._multiple = split, size, seed, multiple
        self._rank, self._world_size = rank, world_size
        self._source_lengths = split.sources.lengths()
        self._headline_lengths = split.headlines.lengths()
        lengths = self._source_lengths if equal_lengths else np.zeros(len(split), np.int64)
        longest = int(lengths.max(initial=0))
        # Small numbers are sorted in one go through them.
        self._by_length = np.argsort(lengths.astype(np.min_scalar_type(longest)), kind="stable")
        ends = np.cumsum(np.bincount(lengths)).tolist() if len(split) else []
        self._runs = list(zip([0, *ends], ends, strict=False))  # of one length each
        self._bounds = _cut(self._runs, size)
        self._heights = _heights(self._runs, size)

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self._bounds)

    def after(self, position: Position = START) -> Iterator[tuple[Batch, Position]]:
        """Every batch from a position on, each with the position behind it; never ends.

        A position saved with a batch goes on with the next one, whatever the rank or machine.
        """
        for draw, behind in self.draws(position):
            yield self.gather(draw), behind

    def draws(self, position: Position = START) -> Iterator[tuple[Draw, Position]]:
        """The same with the batches drawn but not gathered, which costs next to nothing.

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
                    behind = Position(epoch + 1, 0) if last else Position(epoch, number + 1)
                    yield Draw(plan, number), behind
                epoch, done = epoch + 1, 0

    def epoch(self, epoch: int) -> Iterator[Batch]:
        """The batches of one epoch."""
        plan = self.plan(epoch)
        for number in range(len(self)):
            yield self.gather(Draw(plan, number))

    def plan(self, epoch: int) -> Plan:
        """What one epoch draws: pairs shuffled within their length, then batches shuffled."""
        keys = random_keys(self._seed, 2 * epoch, len(self._by_length))[self._by_length]
        order = np.empty_like(self._by_length)
        for run in (slice(*run) for run in self._runs):
            order[run] = self._by_length[run][np.argsort(keys[run])]  # no two keys are alike
        turns = permutation(self._seed, 2 * epoch + 1, len(self))
        sources, headlines = self._widths(order)
        of_batches = self._bounds, self._heights, sources, headlines
        return Plan(order, *(one[turns] for one in of_batches))

    def _widths(self, order: Ids) -> tuple[Ids, Ids]:
        """Of the rectangles of each batch, before the batches are shuffled."""
        if not len(self):
            return order, order
        sources, headlines = (
            np.maximum.reduceat(lengths[order], self._bounds[:, 0])
            for lengths in (self._source_lengths, self._headline_lengths)
        )
        rounded = -(-(headlines + 1) // self._multiple) * self._multiple - 1
        return sources, np.maximum(headlines, np.minimum(rounded, sources - 1))

    def gather(self, draw: Draw) -> Batch:
        """The pairs of a batch that are this rank's."""
        rows, width = draw.rows, int(draw.plan.headline_widths[draw.number])
        mine = slice(self._rank, None, self._world_size)
        sources, source_lengths = (a[mine] for a in self.split.sources.padded(rows))
        headlines, headline_lengths = (a[mine] for a in self.split.headlines.padded(rows, width))
        return Batch(sources, source_lengths, headlines, headline_lengths, len(rows))


def _cut(runs: list[tuple[int, int]], size: int) -> Ids:
    """Cut runs into batches of at most `size`: (start, stop) of each."""
    bounds = [
        (start, min(start + size, stop))
        for begin, stop in runs
        for start in range(begin, stop, size)
    ]
    return np.array(bounds, np.int64).reshape(-1, 2)


def _heights(runs: list[tuple[int, int]], size: int) -> Ids:
    """Rows of each batch that `_cut` makes, once it is filled up."""
    counts = np.diff(np.array(runs, np.int64).reshape(-1, 2)).squeeze(1)
    heights = np.minimum(size, -(-counts // FULL_ROWS) * FULL_ROWS)
    return np.repeat(heights, -(-counts // size))
