"""Encoded pairs on disk, and padded batches of them.

A dataset is a folder (`docs/dataset.md` has the format). Its arrays are memory-mapped, so opening
takes milliseconds whatever the size. Each block of a file is checked against its checksum when it
is first read, so that truncated or edited data are never used.

Legend: B pairs of a batch, I source length, J headline length, all in sub-words.
"""

import json
import zlib
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ledeline.core.errors import DatasetError
from ledeline.core.manifest import checksum_matches, with_checksum
from ledeline.text.profiles import PROFILES
from ledeline.text.subwords import EOS, PAD
from ledeline.text.subwords import FILES as SUBWORD_FILES
from ledeline.text.tokenizer import DATASET_FILE, DATASET_FORMAT, Tokenizer

VERSION: Final = 1
BLOCK: Final = 2**20  # bytes that share a checksum

Ids = npt.NDArray[np.int64]


# --- reading ----------------------------------------------------------------------------------


class Dataset:
    """An open dataset: its splits and its tokenizer."""

    def __init__(self, folder: Path | str) -> None:
        folder = Path(folder)
        manifest = _read_manifest(folder)
        for name in SUBWORD_FILES:
            _ChecksummedFile(folder / name, manifest["files"].get(name)).check_all()
        self.folder = folder
        self.checksum: str = manifest["checksum"]
        self.tokenizer = Tokenizer.read(folder, manifest["profile"])
        self.splits = {
            name: Split(folder, name, about, manifest["files"])
            for name, about in manifest["splits"].items()
        }

    def __getitem__(self, split: str) -> "Split":
        if split not in self.splits:
            there = ", ".join(self.splits) or "none"
            raise DatasetError(f"{self.folder} has no split {split}; it has: {there}")
        return self.splits[split]

    def verify(self) -> None:
        """Check the checksums of all files; a single wrong bit is an error."""
        for split in self.splits.values():
            for column in (split.sources, split.headlines):
                column.ids.check_all()
                column.starts.check_all()


class Split:
    """The pairs of one split, in the order they were written."""

    def __init__(self, folder: Path, name: str, about: Any, files: Any) -> None:
        self.num_pairs: int = about["pairs"]
        self.sources = Column(folder, f"{name}.source", about["dtype"], files)
        self.headlines = Column(folder, f"{name}.headline", about["dtype"], files)

    def __len__(self) -> int:
        return self.num_pairs

    def __getitem__(self, pair: int) -> tuple[list[int], list[int]]:
        return self.sources[pair], self.headlines[pair]

    def first(self, num_pairs: int) -> "Split":
        """Its first pairs only."""
        if not 0 <= num_pairs <= len(self):
            raise ValueError(f"{num_pairs} pairs are asked for, but the split has {len(self)}")
        part = copy(self)
        part.num_pairs = num_pairs
        part.sources = self.sources.first(num_pairs)
        part.headlines = self.headlines.first(num_pairs)
        return part


class Column:
    """The sources or the headlines of a split: concatenated ids, and where each sequence starts."""

    def __init__(self, folder: Path, stem: str, dtype: str, files: Any) -> None:
        ids, starts = f"{stem}.ids.bin", f"{stem}.starts.bin"
        self._end: int | None = None  # of `starts`, if not all sequences are used
        self.ids = _ChecksummedFile(folder / ids, files.get(ids), dtype)
        self.starts = _ChecksummedFile(folder / starts, files.get(starts), "<i8")

    def __getitem__(self, index: int) -> list[int]:
        start, stop = self.starts[index : index + 2]
        found: list[int] = self.ids[start:stop].tolist()
        return found

    def first(self, count: int) -> "Column":
        """Its first sequences only."""
        part = copy(self)
        part._end = count + 1
        return part

    def lengths(self) -> Ids:
        """The length of every sequence."""
        lengths: Ids = np.diff(self.starts[: self._end])
        return lengths

    def joined(self) -> npt.NDArray[Any]:
        """The ids of all sequences, concatenated."""
        ids: npt.NDArray[Any] = self.ids[: self.starts[: self._end][-1]]
        return ids

    def padded(self, rows: Ids, width: int = 0) -> tuple[Ids, Ids]:
        """The sequences at `rows`, padded to the longest or to `width`, and their lengths."""
        starts, stops = self.starts.at(rows), self.starts.at(rows + 1)
        lengths = stops - starts
        width = max(width, int(lengths.max(initial=0)))
        places = starts[:, None] + np.arange(width)  # (B, 1) + (J,) -> (B, J)
        inside = np.arange(width) < lengths[:, None]
        ids = np.full(places.shape, PAD, np.int64)
        ids[inside] = self.ids.at(places[inside])
        return ids, lengths


class _ChecksummedFile:
    """A memory-mapped array; the checksum of a block is checked when it is first read."""

    def __init__(self, path: Path, about: Any, dtype: str = "|u1") -> None:
        if about is None:
            raise DatasetError(
                f"{path.parent / DATASET_FILE} does not list {path.name}; {_PREPARE_AGAIN}"
            )
        self._path, self._checksums = path, about["crc32"]
        try:
            size = path.stat().st_size
        except OSError as error:
            raise DatasetError(f"{path}: {error.strerror}; {_PREPARE_AGAIN}") from None
        if size != about["bytes"]:
            raise DatasetError(
                f"{path} has {size} bytes instead of {about['bytes']}; {_PREPARE_AGAIN}"
            )
        self._array: npt.NDArray[Any] = np.memmap(path, dtype, "r") if size else np.empty(0, dtype)
        self._checked = np.zeros(len(self._checksums), bool)

    def __getitem__(self, places: slice) -> Any:
        start, stop, _ = places.indices(len(self._array))
        size = self._array.itemsize
        self._check(np.arange(start * size // BLOCK, -(-stop * size // BLOCK)))
        return self._array[start:stop]

    def at(self, places: Ids) -> Ids:
        """The values at these places."""
        if not self._checked.all():
            self._check(np.unique(places * self._array.itemsize // BLOCK))
        found: Ids = self._array[places].astype(np.int64)
        return found

    def check_all(self) -> None:
        """Check all blocks."""
        self._check(np.arange(len(self._checked)))

    def _check(self, blocks: Ids) -> None:
        for block in blocks[~self._checked[blocks]].tolist():
            piece = self._array.view(np.uint8)[block * BLOCK : (block + 1) * BLOCK]
            if zlib.crc32(piece.data) != self._checksums[block]:
                raise DatasetError(
                    f"{self._path} was changed after it was written; {_PREPARE_AGAIN}"
                )
            self._checked[block] = True


_PREPARE_AGAIN = "prepare the dataset again"


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / DATASET_FILE
    try:
        manifest = json.loads(path.read_bytes())
    except OSError as error:
        raise DatasetError(f"{folder} is not a dataset: {DATASET_FILE}: {error.strerror}") from None
    except ValueError:
        raise DatasetError(f"{path} is damaged; {_PREPARE_AGAIN}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != DATASET_FORMAT:
        raise DatasetError(f"{path} does not describe a dataset of ledeline")
    if manifest.get("version") != VERSION:
        raise DatasetError(
            f"{folder} has format version {manifest.get('version')}, but this ledeline reads "
            f"version {VERSION}; {_PREPARE_AGAIN}"
        )
    if not checksum_matches(manifest):
        raise DatasetError(f"{path} was changed after it was written; {_PREPARE_AGAIN}")
    if manifest.get("profile") not in list(PROFILES):
        known = " and ".join(PROFILES)
        raise DatasetError(
            f"{path} has the text profile {manifest.get('profile')}, but this ledeline knows "
            f"{known}; {_PREPARE_AGAIN}"
        )
    return manifest


# --- writing ----------------------------------------------------------------------------------


class EncodedChunk(NamedTuple):
    """Some encoded pairs: concatenated ids, and how many belong to each pair."""

    source_ids: npt.NDArray[Any]
    source_lengths: Ids
    headline_ids: npt.NDArray[Any]
    headline_lengths: Ids


class DatasetWriter:
    """Writes the files of a dataset into a folder; `finish` completes it."""

    def __init__(self, folder: Path, tokenizer: Tokenizer) -> None:
        self._folder, self._tokenizer = folder, tokenizer
        self._splits: dict[str, Any] = {}
        self._files = [*SUBWORD_FILES]

    def write_split(self, name: str, chunks: Iterable[EncodedChunk]) -> None:
        """Write a split from chunks of pairs, in order."""
        dtype = self._tokenizer.subwords.id_dtype.str
        with (
            _ColumnWriter(self._folder, f"{name}.source", dtype) as sources,
            _ColumnWriter(self._folder, f"{name}.headline", dtype) as headlines,
        ):
            for chunk in chunks:
                sources.append(chunk.source_ids, chunk.source_lengths)
                headlines.append(chunk.headline_ids, chunk.headline_lengths)
        self._files += [*sources.names, *headlines.names]
        self._splits[name] = {
            "pairs": sources.num_sequences,
            "source_subwords": sources.num_ids,
            "headline_subwords": headlines.num_ids,
            "dtype": dtype,
        }

    def finish(self) -> None:
        """Write the sub-words, and then the manifest, which makes the folder a dataset."""
        self._tokenizer.subwords.save(self._folder)
        manifest = {
            "format": DATASET_FORMAT,
            "version": VERSION,
            "profile": self._tokenizer.profile.name,
            "vocabulary": self._tokenizer.vocabulary_size,
            "splits": self._splits,
            "files": {name: _file_checksums(self._folder / name) for name in self._files},
        }
        text = json.dumps(with_checksum(manifest))
        (self._folder / DATASET_FILE).write_text(text, encoding="utf-8")


class _ColumnWriter:
    def __init__(self, folder: Path, stem: str, dtype: str) -> None:
        self.names = (f"{stem}.ids.bin", f"{stem}.starts.bin")
        self._ids, self._starts = ((folder / name).open("wb") for name in self.names)
        self._starts.write(np.zeros(1, "<i8").tobytes())
        self._dtype = dtype
        self.num_ids = self.num_sequences = 0

    def append(self, ids: npt.NDArray[Any], lengths: Ids) -> None:
        self._ids.write(ids.astype(self._dtype).tobytes())
        self._starts.write((self.num_ids + np.cumsum(lengths)).astype("<i8").tobytes())
        self.num_ids += len(ids)
        self.num_sequences += len(lengths)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ids.close()
        self._starts.close()


def _file_checksums(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        blocks = [zlib.crc32(block) for block in iter(lambda: file.read(BLOCK), b"")]
    return {"bytes": path.stat().st_size, "crc32": blocks}


# --- padded batches ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Batch:
    """The pairs of one step, padded to the width of the whole batch on every rank."""

    sources: Ids  # (B, I), padded
    source_lengths: Ids  # (B,)
    headlines: Ids  # (B, J), without <eos>, padded
    headline_lengths: Ids  # (B,)
    num_pairs: int  # of the whole batch over all ranks; B is the number of this rank
    positions: Ids | None = None  # (B,): the word of each headline to learn; None: all of them

    @classmethod
    def of(cls, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Self:
        """Pairs of source and headline ids as one batch."""
        sources, headlines = (padded([pair[side] for pair in pairs]) for side in (0, 1))
        return cls(*sources, *headlines, len(pairs))

    @property
    def num_tokens(self) -> int:
        """Words to learn, each <eos> included."""
        if self.positions is not None:
            return len(self.positions)
        return int((self.headline_lengths + 1).sum())

    def targets(self, length: int) -> Ids:
        """The targets of the decoder: headline, <eos>, then <pad> up to `length`.

        With `length` = I of an equal-length batch this is the Y' of the paper. (B, length).
        """
        if length < int(self.headline_lengths.max(initial=0)) + 1:
            raise ValueError(f"targets of length {length} are too short for headline and <eos>")
        width = min(length, self.headlines.shape[1])
        targets = np.full((len(self.headlines), length), PAD, np.int64)
        targets[:, :width] = self.headlines[:, :width]
        targets[np.arange(len(targets)), self.headline_lengths] = EOS
        return targets


def padded(rows: Sequence[Sequence[int]]) -> tuple[Ids, Ids]:
    """Rows of ids, padded to the longest, and their lengths. (B, I), (B,)."""
    lengths = np.array([len(row) for row in rows], np.int64)
    ids = np.full((len(rows), int(lengths.max(initial=0))), PAD, np.int64)
    for row, into in zip(rows, ids, strict=True):
        into[: len(row)] = row
    return ids, lengths
