"""Where texts to write headlines for come from: a file, standard input, or the command line."""

import os
import select
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

from ledeline.corpus import BadRow
from ledeline.corpus.lines import BrokenStream, line_runs, table_suffix
from ledeline.corpus.records import (
    SOURCE,
    TEXT_SUFFIX,
    Record,
    line_record,
    read_columns,
    read_records,
    text_record,
)
from ledeline.errors import ConfigError, CorpusError

_BLOCK_BYTES: Final = 1 << 16  # what a pipe holds


class Input(Protocol):
    """Texts with the rows they stand in."""

    @property
    def name(self) -> str:
        """What to call it in a sentence."""

    @property
    def noun(self) -> str:
        """What the line of a record counts."""

    @property
    def is_typed(self) -> bool:
        """Whether somebody types it."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table, those of the first object for JSON lines."""

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

    def __init__(self, path: Path, field: str | None = None) -> None:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise CorpusError(f"{path} is a pipe or a device; give it as standard input")
        self.path, self.field, self.name = path, field, str(path)
        self.columns = read_columns(path, field)

    @property
    def is_table(self) -> bool:
        """Whether it has columns of its own."""
        return table_suffix(self.path) != TEXT_SUFFIX

    def records(self, *, whole: bool) -> Iterator[Record | BadRow]:
        """The records of the file."""
        return read_records(self.path, self.field, whole=whole)

    def waits(self) -> bool:
        """A file is there."""
        return False

    def num_rows(self) -> int | None:
        """About how many records there are."""
        from ledeline.corpus.files import Source

        return Source((self.path,)).num_rows()


class Texts:
    """Texts at hand, such as those on the command line; the line of each is its number."""

    name: Final = "command line"
    noun: Final = "text"
    is_typed: Final = False
    columns: Final = (SOURCE,)
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
    """The lines of a pipe or a terminal as they come; they can be read once.

    It reads the file descriptor itself, with no thread and no buffer of Python's, so that a signal
    ends the waiting and `waits` knows all that has come.
    """

    noun: Final = "line"
    columns: Final = (SOURCE,)
    can_be_read_again: Final = False

    def __init__(self, descriptor: int, name: str = "standard input") -> None:
        self._descriptor, self.name = descriptor, name
        self.is_typed = os.isatty(descriptor)
        self._runs = line_runs(iter(self._read, b""))
        self._ahead: deque[bytes] = deque()  # whole lines that have come

    def records(self, *, whole: bool) -> Iterator[Record | BadRow]:  # noqa: ARG002 - there is no more
        """One for each line, once it is whole."""
        number = 0
        while self._ahead or self._advance():
            number += 1
            yield line_record(self.name, number, self._ahead.popleft().removesuffix(b"\r"))

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
            lines = next(self._runs, None)
        except BrokenStream as broken:
            if not broken.line:
                return False  # nothing came at all
            place = f"{self.name}: line {broken.line}"
            raise CorpusError(f"{place}: {broken.reason}") from None
        self._ahead.extend(lines or ())
        return lines is not None

    def _read(self) -> bytes:
        return os.read(self._descriptor, _BLOCK_BYTES)


def find_input(texts: Sequence[str], file: Path | None, field: str | None) -> Input:
    """Texts, or a file, or standard input where there is neither or only ``-``."""
    if texts and file is not None:
        raise ConfigError("ledes are given and --input is too; leave one of them out")
    if file is not None and str(file) != "-":
        return File(file, field)
    if field is not None:
        raise ConfigError(f"--field {field}: only a table has columns; name one with --input")
    if texts and list(texts) != ["-"]:
        return Texts(texts)
    if sys.stdin is None:
        raise ConfigError("standard input is closed; give a lede, or a file with --input")
    return Stream(sys.stdin.fileno())
