"""Where texts to write headlines for come from: a file, standard input, or the command line."""

import os
import select
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Final, Protocol

from ledeline.core.errors import ConfigError, CorpusError
from ledeline.corpus import BadRow
from ledeline.corpus.delimited import DELIMITERS, Dialect
from ledeline.corpus.kinds import Kind, count_rows, input_kind, looks_like_a_file, named_kind
from ledeline.corpus.lines import BrokenStream, RawLines, is_binary
from ledeline.corpus.records import (
    SOURCE,
    Layout,
    Opened,
    Record,
    open_lines,
    read_head,
    read_records,
    text_record,
    with_mark,
)

_BLOCK_BYTES: Final = 1 << 16  # what a pipe holds
_TEXT: Final = Layout("txt")


class Input(Protocol):
    """Texts with the rows they stand in."""

    @property
    def name(self) -> str:
        """What to call it in a sentence."""

    @property
    def noun(self) -> str:
        """What the line of a record counts."""

    @property
    def kind(self) -> Kind:
        """What it is made of."""

    @property
    def is_typed(self) -> bool:
        """Whether somebody types it."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table, those of the first object for JSON lines."""

    @property
    def dialect(self) -> Dialect:
        """How its lines are written."""

    @property
    def can_be_read_again(self) -> bool:
        """Whether `records` gives the same each time it is called."""

    def records(self, *, whole: bool) -> Iterator[Record | BadRow]:
        """The records in order; without `whole` perhaps only with the column of the texts."""

    def waits(self) -> bool:
        """Whether the next record is not there yet."""

    def num_rows(self) -> int | None:
        """About how many records there are, where that is cheap to say."""


class File:
    """The records of a file: a table, or a text a line."""

    noun: Final = "line"
    is_typed: Final = False
    can_be_read_again: Final = True

    def __init__(
        self,
        path: Path,
        field: str | None = None,
        kind: Kind | None = None,
        delimiter: str | None = None,
    ) -> None:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise CorpusError(f"{path} is a pipe or a device; give it as standard input")
        self.path, self.field, self.name = path, field, str(path)
        self.kind = kind or _kind_found(path)
        self._layout = Layout(self.kind, field, delimiter)
        self.columns, self.dialect = read_head(path, self._layout)

    def records(self, *, whole: bool) -> Iterator[Record | BadRow]:
        """The records of the file."""
        return read_records(self.path, self.field, whole=whole, layout=self._layout)

    def waits(self) -> bool:
        """A file is there."""
        return False

    def num_rows(self) -> int | None:
        """About how many records there are."""
        return count_rows(self.path, self.kind)


def _kind_found(path: Path) -> Kind:
    """What a file holds; one that is taken for text must look like it."""
    kind = input_kind(path)
    if named_kind(path) is None and is_binary(path):
        raise CorpusError(
            f"{path}: this is not a text file; set its format with --format: txt, jsonl, csv, tsv "
            "or parquet"
        )
    return kind


class Texts:
    """Texts at hand, such as those on the command line; the line of each is its number."""

    name: Final = "command line"
    noun: Final = "text"
    kind: Final = "txt"
    is_typed: Final = False
    columns: Final = (SOURCE,)
    dialect: Final = Dialect()
    can_be_read_again: Final = True

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = tuple(texts)

    def records(self, *, whole: bool) -> Iterator[Record | BadRow]:  # noqa: ARG002 - there is no more
        """One for each text."""
        return (text_record(text, number) for number, text in enumerate(self._texts, start=1))

    def waits(self) -> bool:
        """They are there."""
        return False

    def num_rows(self) -> int | None:
        """How many there are."""
        return len(self._texts)


class Stream:
    """The records of a pipe or a terminal as their lines come; they can be read once.

    It reads the file descriptor itself, with no thread and no buffer of Python's, so that a signal
    ends the waiting and `waits` knows all that has come.
    """

    noun: Final = "line"
    can_be_read_again: Final = False

    def __init__(
        self, descriptor: int, name: str = "standard input", layout: Layout = _TEXT
    ) -> None:
        if layout.kind == "parquet":
            raise ConfigError(
                f"--format parquet: {name} cannot be Parquet; name a file with --input"
            )
        self._descriptor, self.name, self._layout = descriptor, name, layout
        self.kind, self.is_typed = layout.kind, os.isatty(descriptor)
        self._raw = RawLines(iter(self._read, b""))
        self._ahead: deque[bytes] = deque()  # whole lines that have come

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of the header, or of the first object, which must be a sound one then."""
        if self.kind != "jsonl":
            return self._opened.columns
        first = next(self._opened.records, None)
        if isinstance(first, BadRow):
            raise CorpusError(f"{first}; correct it, because the first object names the columns")
        if first is None:
            return ()
        self._opened = self._opened._replace(records=chain([first], self._opened.records))
        return first.columns

    @property
    def dialect(self) -> Dialect:
        """How its lines are written."""
        return with_mark(self._opened.dialect, self._raw)

    @cached_property
    def _opened(self) -> Opened:
        """The header is waited for where it is asked for, and not before."""
        return open_lines(self.name, self._lines(), self._layout)

    def records(self, *, whole: bool) -> Iterator[Record | BadRow]:  # noqa: ARG002 - all is there
        """One for each line, or for the lines of a record of CSV, once it is whole."""
        return self._opened.records

    def _lines(self) -> Iterator[bytes]:
        while self._ahead or self._advance():
            yield self._ahead.popleft()

    def waits(self) -> bool:
        """Take in what has come; whether that is no whole line."""
        while not self._ahead and select.select([self._descriptor], [], [], 0)[0]:
            if not self._take_run():
                return False
        return not self._ahead

    def num_rows(self) -> int | None:
        """Nobody knows."""
        return None

    def _advance(self) -> bool:
        """Wait for a whole line; False where there is none any more."""
        while not self._ahead:
            if not self._take_run():
                return False
        return True

    def _take_run(self) -> bool:
        """Take in the lines of the next block; False at the end."""
        try:
            lines = next(self._raw.runs, None)
        except BrokenStream as broken:
            if not broken.line:
                return False  # nothing came at all
            place = f"{self.name}: line {broken.line}"
            raise CorpusError(f"{place}: {broken.reason}") from None
        self._ahead.extend(lines or ())
        return lines is not None

    def _read(self) -> bytes:
        return os.read(self._descriptor, _BLOCK_BYTES)


def find_input(
    texts: Sequence[str],
    file: Path | None,
    field: str | None,
    kind: Kind | None = None,
    delimiter: str = "auto",
) -> Input:
    """Texts, or a file, or standard input where there is neither or only ``-``.

    ``kind`` says what a file or standard input holds, where its name does not. ``delimiter`` is a
    name in `DELIMITERS`, or ``auto``.
    """
    if texts and file is not None:
        raise ConfigError("give ledes or --input, not both")
    path = None if str(file) == "-" else file
    found = kind or (named_kind(path) if path else None) or "txt"
    if delimiter != "auto" and found != "csv":
        raise ConfigError(
            f"--delimiter {delimiter}: only CSV has a delimiter; leave it out, or use --format csv"
        )
    if path is not None:
        return File(path, field, kind, DELIMITERS.get(delimiter))
    if texts and list(texts) != ["-"]:
        return _texts(texts, field, kind)
    if field is not None and found == "txt":
        raise ConfigError(
            f"--field {field}: only a table has columns; name one with --input, or set the "
            "format of standard input with --format"
        )
    if sys.stdin is None:
        raise ConfigError("standard input is closed; give a lede, or a file with --input")
    layout = Layout(found, field, DELIMITERS.get(delimiter))
    return Stream(sys.stdin.fileno(), layout=layout)


def _texts(texts: Sequence[str], field: str | None, kind: Kind | None) -> Texts:
    _refuse_files(texts)
    if field is not None:
        raise ConfigError(f"--field {field}: only a table has columns; name one with --input")
    if kind is not None:
        raise ConfigError(f"--format {kind}: only a file has a format; name one with --input")
    return Texts(texts)


def _refuse_files(texts: Sequence[str]) -> None:
    """Refuse the name of a file, for which somebody would get a headline."""
    for text in filter(looks_like_a_file, texts):
        if os.path.exists(text):  # noqa: PTH110 - never fails
            raise ConfigError(f"{text} is a file; to read its ledes, use --input {text}")
        raise ConfigError(
            f"{text} is neither a lede nor an existing file; give a lede, or name a file with "
            "--input"
        )
