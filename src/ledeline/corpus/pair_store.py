"""Pairs kept on disk as word numbers while a corpus is prepared.

Each distinct word has a number, and a lede or a headline is a sequence of numbers. So the corpus is
tokenised once, and counting, splitting and encoding work on arrays.
"""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]

CHUNK = 2**15  # pairs handled at a time
_BUFFER = 2**20  # numbers that are buffered before they are written


class WordIndex(dict[str, int]):
    """The number of each word; a new word gets the next number."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


class RaggedArray(NamedTuple):
    """Rows of different lengths, concatenated: row r is ``values[starts[r]:starts[r + 1]]``."""

    values: npt.NDArray[Any]
    starts: IntArray

    def take(self, rows: IntArray) -> tuple[npt.NDArray[Any], IntArray]:
        """The values of these rows, concatenated, and the length of each row."""
        lengths = self.starts[rows + 1] - self.starts[rows]
        shifts = self.starts[rows] - (np.cumsum(lengths) - lengths)
        return self.values[np.repeat(shifts, lengths) + np.arange(lengths.sum())], lengths


@dataclass(frozen=True)
class StoredPairs:
    """The ledes and headlines of some pairs, and a hash of each pair."""

    ledes: RaggedArray
    headlines: RaggedArray
    hashes: IntArray

    def __len__(self) -> int:
        return len(self.hashes)


class PairStore:
    """Collects pairs one by one; `close` returns them as memory-mapped arrays."""

    def __init__(self, folder: Path, name: str, numbers: WordIndex) -> None:
        self._number = numbers.__getitem__
        self._columns = [
            _WordColumn(folder / f"{name}.{side}.words") for side in ("lede", "headline")
        ]
        self._hashes = array("q")

    def append(self, lede: Sequence[str], headline: Sequence[str]) -> None:
        """Add a pair."""
        sides = [tuple(map(self._number, words)) for words in (lede, headline)]
        for column, side in zip(self._columns, sides, strict=True):
            column.append(side)
        self._hashes.append(hash(tuple(sides)))

    def close(self) -> StoredPairs:
        """All pairs, in the order they were added."""
        ledes, headlines = (column.close() for column in self._columns)
        return StoredPairs(ledes, headlines, np.array(self._hashes, np.int64))


class _WordColumn:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._buffer, self._lengths = array("i"), array("i")

    def append(self, numbers: tuple[int, ...]) -> None:
        self._buffer.extend(numbers)
        self._lengths.append(len(numbers))
        if len(self._buffer) > _BUFFER:
            self._flush()

    def close(self) -> RaggedArray:
        self._flush()
        starts = np.concatenate(([0], np.cumsum(self._lengths, dtype=np.int64)))
        size = self._path.stat().st_size
        values = np.memmap(self._path, np.int32, "r") if size else np.empty(0, np.int32)
        return RaggedArray(values, starts)

    def _flush(self) -> None:
        with self._path.open("ab") as file:
            self._buffer.tofile(file)
        self._buffer = array("i")


def chunks(rows: IntArray) -> Iterator[IntArray]:
    """Rows in chunks that fit into memory."""
    for start in range(0, len(rows), CHUNK):
        yield rows[start : start + CHUNK]
