"""What bench/distill.py and bench/judge.py work on: sequences of ids, labels in ids, rules.

Legend: N headlines, J their sub-words.
"""

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ledeline.data.dataset import DatasetWriter, EncodedChunk, Ids
from ledeline.inference.checks.rules import RuleChecker
from ledeline.model.verifier_labels import KINDS, LABELS
from ledeline.text.tokenizer import Tokenizer
from truth_choice import is_held_out
from truth_labels import PUBLISHER, FoundLabel, find, load
from verifier_data import (
    MAX_HEADLINE,
    MAX_LEDE,
    UNKNOWN,
    worst_reading,
    wrong_marks,
)

TRAIN, HELD, OTHER = range(3)  # parts of labels, in ids
_TEXTS_AT_ONCE: Final = 500  # of which a process checks the rules

Array = npt.NDArray[np.generic]


class Sequences(NamedTuple):
    """Sequences of ids, end to end."""

    ids: npt.NDArray[np.uint16]
    starts: Ids  # of each, and the end of the last

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Self:
        """Put some together."""
        lengths = np.array([len(row) for row in rows], np.int64)
        ids = np.fromiter((one for row in rows for one in row), np.uint16, int(lengths.sum()))
        return cls(ids, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> npt.NDArray[np.uint16]:  # type: ignore[override]
        return self.ids[self.starts[row] : self.starts[row + 1]]

    @property
    def lengths(self) -> Ids:
        """The length of each."""
        return np.diff(self.starts)

    def taken(self, rows: Ids) -> "Sequences":
        """Those at some rows."""
        lengths = self.lengths[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        places = np.arange(starts[-1]) - np.repeat(starts[:-1] - self.starts[rows], lengths)
        return Sequences(self.ids[places], starts)

    def joined(self, other: "Sequences") -> "Sequences":
        """These, then the others."""
        starts = np.concatenate([self.starts, other.starts[1:] + self.starts[-1]])
        return Sequences(np.concatenate([self.ids, other.ids]), starts)

    def padded(self, rows: Ids) -> tuple[Ids, Ids]:
        """Those at some rows, padded with 0, and their lengths."""
        lengths = self.lengths[rows]
        places = np.arange(int(lengths.max(initial=0)))
        inside = places < lengths[:, None]
        found = np.zeros(inside.shape, np.int64)
        found[inside] = self.taken(rows).ids
        return found, lengths


class Written(NamedTuple):
    """Headlines of some ledes."""

    ledes: Sequences
    headlines: Sequences
    rows: Ids  # the lede of each headline, ascending

    def saved(self, path: Path, **more: Array) -> None:
        """Write them to a file, with more of the same length."""
        own = {"lede_ids": self.ledes.ids, "lede_starts": self.ledes.starts}
        own |= {"ids": self.headlines.ids, "starts": self.headlines.starts}  # type: ignore[dict-item]
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, rows=self.rows, **own, **more)

    @classmethod
    def read(cls, path: Path) -> tuple[Self, dict[str, npt.NDArray[np.float64]]]:
        """The same from a file, and what else is in it."""
        with np.load(path) as found:
            arrays = dict(found)
        ledes = Sequences(arrays.pop("lede_ids"), arrays.pop("lede_starts"))
        headlines = Sequences(arrays.pop("ids"), arrays.pop("starts"))
        return cls(ledes, headlines, arrays.pop("rows")), arrays

    def by_lede(self, some: Ids | None = None) -> Iterator[Ids]:
        """The numbers of the headlines of each lede, of all or of some."""
        bounds = np.searchsorted(self.rows, np.arange(len(self.ledes) + 1))
        for lede in range(len(self.ledes)) if some is None else some.tolist():
            yield np.arange(bounds[lede], bounds[lede + 1])


# --- labels ---------------------------------------------------------------------------------------


class Labels(NamedTuple):
    """Headlines that readers judged. All but `written` are (N,) or in step with its ids."""

    written: Written
    labels: Ids  # by their place in LABELS; of two readings the worse
    kinds: Ids  # by their place in KINDS, or UNKNOWN
    wrong: Ids  # of each id: 1 where a reader called it wrong, 0 elsewhere, or UNKNOWN
    parts: Ids
    is_publisher: Ids

    def saved(self, path: Path) -> None:
        """Write them to a file."""
        _, *arrays = self
        self.written.saved(path, **dict(zip(self._fields[1:], arrays, strict=True)))

    @classmethod
    def read(cls, path: Path) -> Self:
        """The same from a file."""
        written, arrays = Written.read(path)
        return cls(written, *(arrays[name].astype(np.int64) for name in cls._fields[1:]))


def packed_labels(paths: Sequence[Path], tables: Sequence[Path], tokenizer: Tokenizer) -> Labels:
    """The labels of some files, in ids."""
    found = find(load(paths), tables)
    print(f"{len(found.items):,} judged headlines; {found.missing:,} ledes not found")
    by_lede: dict[str, list[FoundLabel]] = {}
    for one in found.items:
        by_lede.setdefault(one.lede, []).append(one)
    ledes, headlines, rows, wrong, numbers = [], [], [], [], []
    for lede, own in by_lede.items():
        for one in own:
            ids = tokenizer.encode(tokenizer.headline_words(one.headline))[:MAX_HEADLINE]
            headlines.append(ids)
            rows.append(len(ledes))
            label, kind, words = worst_reading(one)
            wrong += wrong_marks(one.headline, label, words, ids, tokenizer)
            is_publisher = one.judged.writer == PUBLISHER
            kind_number = KINDS.index(kind) if kind in KINDS else UNKNOWN
            numbers.append((LABELS.index(label), kind_number, _part(one), is_publisher))
        ledes.append(tokenizer.encode(tokenizer.words(lede))[:MAX_LEDE])
    labels, kinds, parts, publishers = np.array(numbers, np.int64).T
    written = Written(Sequences.of(ledes), Sequences.of(headlines), np.array(rows, np.int64))
    return Labels(written, labels, kinds, np.array(wrong, np.int64), parts, publishers)


def _part(one: FoundLabel) -> int:
    if one.judged.part != "train":
        return OTHER
    return HELD if is_held_out(one.judged.lede) else TRAIN


# --- rules ----------------------------------------------------------------------------------------


def doubted(written: Written, tokenizer: Tokenizer) -> npt.NDArray[np.bool_]:
    """Whether a rule doubts each headline. (N,)."""
    global _asked
    _asked = written, tokenizer
    number = len(written.ledes)
    parts = [(at, min(number, at + _TEXTS_AT_ONCE)) for at in range(0, number, _TEXTS_AT_ONCE)]
    workers = min(len(parts), len(os.sched_getaffinity(0)))
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        found = pool.map(_doubted, parts)
    return np.concatenate(found) if found else np.zeros(0, np.bool_)


_asked: tuple[Written, Tokenizer]


def _doubted(part: tuple[int, int]) -> npt.NDArray[np.bool_]:
    written, tokenizer = _asked
    found = []
    some = np.arange(*part)
    for lede, numbers in zip(some.tolist(), written.by_lede(some), strict=True):
        rules = RuleChecker(tokenizer.decode(written.ledes[lede].tolist()))
        for number in numbers.tolist():
            text = tokenizer.decode(written.headlines[number].tolist())
            found.append(bool(rules.doubts(text)))
    return np.array(found, np.bool_)


# --- datasets -------------------------------------------------------------------------------------


def write_dataset(
    folder: Path, tokenizer: Tokenizer, splits: dict[str, tuple[Sequences, Sequences]]
) -> None:
    """A dataset of some pairs."""
    folder.mkdir(parents=True, exist_ok=True)
    writer = DatasetWriter(folder, tokenizer)
    dtype = tokenizer.subwords.id_dtype
    for name, (ledes, headlines) in splits.items():
        sides = [
            (one.ids[: one.starts[-1]].astype(dtype), one.lengths) for one in (ledes, headlines)
        ]
        writer.write_split(name, [EncodedChunk(*sides[0], *sides[1])])
    writer.finish()
