"""Learn byte-pair encoding: which merges, from word counts.

The merges are those of subword-nmt 0.3.8. NumPy is needed here, and not for applying merges.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from ledeline.core.progress import Progress, no_progress
from ledeline.text.bpe import WORD_END, SymbolPair

_MIN_PAIR_COUNT = 2  # the default of subword-nmt's --min-frequency
_NUM_CODE_POINTS = 0x110000

_Cells = npt.NDArray[np.int32]


def learn_merges(
    counts: Mapping[str, int], num_merges: int, *, progress: Progress = no_progress
) -> list[SymbolPair]:
    """Learn at most ``num_merges`` merges from word counts, the most frequent pair first.

    Of equally frequent pairs the largest goes first, compared as tuples of strings. Learning ends
    early when no pair occurs twice. The merges are exactly those of subword-nmt, with one
    exception: if the text ``</w>`` is so frequent inside words that it becomes a symbol, the counts
    of subword-nmt drift from the true ones, which are used here.
    """
    for word in counts:
        if word.split() != [word]:
            raise ValueError(f"a word needs characters and no white space, unlike {word!r}")
    symbols = _SymbolChain(counts)
    merges: list[SymbolPair] = []
    while len(merges) < num_merges and (pair := symbols.best_pair()):
        symbols.merge(pair)
        merges.append(pair)
        if len(merges) % 50 == 0:
            progress("learn sub-words", len(merges), num_merges)
    progress("learn sub-words", len(merges), num_merges)
    return merges


class _HeapItem(tuple[int, SymbolPair]):
    """A count and its pair, ordered so that a heap gives the largest first."""

    __slots__ = ()
    __lt__ = tuple.__gt__


class _SymbolChain:
    """The words as one long chain of symbols, with the count of each pair of neighbours.

    Symbols are numbers, spelled out in ``texts``; number 0 separates words. A cell of the
    chain has a symbol, a cell to its left and one to its right, and the count of its word as its
    weight. Merging two cells keeps the left one and marks the other as gone, with symbol -1.
    ``cells[s]`` has every cell with symbol ``s``, in order, and maybe some that had it before.
    """

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.texts, self.symbols, gaps = _first_symbols(counts)
        self.numbers = {text: number for number, text in enumerate(self.texts)}
        self.left = np.arange(-1, len(self.symbols) - 1, dtype=np.int32)
        self.right = np.arange(1, len(self.symbols) + 1, dtype=np.int32)
        # Floating point, because bincount adds nothing else; exact up to 2**53.
        word_counts = np.array([0, *counts.values()], dtype=np.float64)
        self.weights = np.repeat(word_counts, np.diff(gaps, prepend=-1))
        by_symbol = np.argsort(self.symbols, kind="stable").astype(np.int32)
        self.cells = np.split(by_symbol, np.cumsum(np.bincount(self.symbols))[:-1])
        self.counts: dict[SymbolPair, int] = {}
        self.heap: list[_HeapItem] = []
        for first, cells in zip(self.texts[1:], self.cells[1:], strict=True):
            for second, total in self._totals(self.right[cells], cells):
                self._record((first, second), total)

    def best_pair(self) -> SymbolPair | None:
        """Return the pair to merge next, or None if no pair is frequent enough."""
        while self.heap:  # a count in the heap may be too high by now; it is corrected here
            count, pair = self.heap[0]
            true_count = self.counts.get(pair, 0)
            if true_count == count:
                return pair
            heapq.heappop(self.heap)
            if 0 < true_count < count:
                heapq.heappush(self.heap, _HeapItem((true_count, pair)))
        return None

    def merge(self, pair: SymbolPair) -> None:
        """Make one symbol of each occurrence of ``pair``, from left to right in each word."""
        starts = self._find(self.numbers[pair[0]], self.numbers[pair[1]])
        ends = self.right[starts]
        beyond = self.right[ends]
        del self.counts[pair]
        for broken_pair, total in self._around(starts, beyond, pair):
            remaining = self.counts.pop(broken_pair, 0) - total
            if remaining >= _MIN_PAIR_COUNT:
                self.counts[broken_pair] = remaining
        merged = self._number(pair[0] + pair[1])
        self.symbols[starts] = merged
        self.symbols[ends] = -1
        self.right[starts] = beyond
        self.left[beyond] = starts
        self._count_around(merged, starts)

    def _find(self, first: int, second: int) -> _Cells:
        """Return the cells where ``first`` is followed by ``second``, without overlaps."""
        if len(self.cells[first]) <= len(self.cells[second]):
            starts: _Cells = self._holders(first)
            starts = starts[self.symbols[self.right[starts]] == second]
        else:
            starts = self.left[self._holders(second)]
            starts = starts[self.symbols[starts] == first]
        if first == second:  # of each run of starts keep the first, the third, ...
            order = np.arange(len(starts))
            inside_run = np.zeros(len(starts), dtype=bool)
            inside_run[1:] = self.right[starts[:-1]] == starts[1:]
            run_begin = np.maximum.accumulate(np.where(inside_run, 0, order))
            starts = starts[(order - run_begin) % 2 == 0]
        return starts

    def _holders(self, symbol: int) -> _Cells:
        """Return the cells that have ``symbol`` now, and forget those that had it before."""
        cells: _Cells = self.cells[symbol]
        self.cells[symbol] = cells = cells[self.symbols[cells] == symbol]
        return cells

    def _number(self, text: str) -> int:
        """Return the number of the symbol ``text``, a new one if need be."""
        if text not in self.numbers:
            self.numbers[text] = len(self.texts)
            self.texts.append(text)
            self.cells.append(np.empty(0, dtype=np.int32))
        return self.numbers[text]

    def _count_around(self, symbol: int, new_cells: _Cells) -> None:
        """Count the pairs with ``symbol`` in them, now that ``new_cells`` have it too."""
        self.cells[symbol] = cells = np.sort(np.concatenate([self._holders(symbol), new_cells]))
        text = self.texts[symbol]
        for pair, total in self._around(cells, self.right[cells], (text, text)):
            self._record(pair, total)

    def _around(
        self, cells: _Cells, beyond: _Cells, pair: SymbolPair
    ) -> Iterator[tuple[SymbolPair, int]]:
        """Count the pairs that end where ``pair`` begins, at ``cells``, or begin where it ends."""
        for text, total in self._totals(self.left[cells], cells):
            yield (text, pair[0]), total
        apart = np.append(beyond[:-1] != cells[1:], True)  # from the next, which is counted above
        for text, total in self._totals(beyond[apart], cells[apart]):
            yield (pair[1], text), total

    def _totals(self, neighbours: _Cells, cells: _Cells) -> Iterator[tuple[str, int]]:
        """Add up the weights of ``cells`` for each symbol among their neighbours in a word."""
        totals = np.bincount(self.symbols[neighbours], self.weights[cells])
        totals[:1] = 0
        present = np.flatnonzero(totals)
        for symbol, total in zip(present.tolist(), totals[present].tolist(), strict=True):
            yield self.texts[symbol], int(total)

    def _record(self, pair: SymbolPair, total: int) -> None:
        if total >= _MIN_PAIR_COUNT:
            self.counts[pair] = total
            heapq.heappush(self.heap, _HeapItem((total, pair)))


def _first_symbols(words: Iterable[str]) -> tuple[list[str], _Cells, npt.NDArray[np.int64]]:
    """Return the texts of the symbols, the symbol of each character, and where the gaps are."""
    text = " ".join(["", *words, ""])
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.int32)
    gaps = np.flatnonzero(codes == ord(" "))
    codes[gaps[1:] - 1] += _NUM_CODE_POINTS  # the last character of each word
    codes[gaps] = -1
    kinds = np.unique(codes)
    ends_and_codes = (divmod(kind, _NUM_CODE_POINTS) for kind in kinds[1:].tolist())
    texts = ["", *(chr(code) + WORD_END * ends for ends, code in ends_and_codes)]
    return texts, np.searchsorted(kinds, codes).astype(np.int32), gaps
