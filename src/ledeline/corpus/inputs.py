"""Inputs with texts to write headlines for: a file, standard input, or the command line."""

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
from ledeline.corpus import InvalidRow
from ledeline.corpus.delimited import DELIMITERS, Dialect
from ledeline.corpus.formats import (
    FileFormat,
    count_rows,
    format_by_name,
    input_format,
    looks_like_file_name,
)
from ledeline.corpus.lines import FileReadError, RawLines, is_binary
from ledeline.corpus.records import (
    SOURCE,
    InputLayout,
    OpenedInput,
    Record,
    open_lines,
    read_header,
    read_records,
    text_record,
    with_byte_order_mark,
)

_BLOCK_BYTES: Final = 1 << 16  # the capacity of a pipe
_PLAIN_TEXT: Final = InputLayout("txt")


class Input(Protocol):
    """Texts, and the rows that they come from."""

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def unit(self) -> str:
        """What is counted in messages: a line, or a text."""

    @property
    def file_format(self) -> FileFormat:
        """Its format."""

    @property
    def is_terminal(self) -> bool:
        """Whether it is a terminal, where somebody types."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table, for JSON lines those of the first object."""

    @property
    def dialect(self) -> Dialect:
        """How its lines are written."""

    @property
    def is_repeatable(self) -> bool:
        """Whether `records` can be called again."""

    def records(self, *, whole: bool) -> Iterator[Record | InvalidRow]:
        """The records in order; without `whole`, they may have the column of the texts only."""

    def would_block(self) -> bool:
        """Whether reading the next record would have to wait."""

    def num_rows(self) -> int | None:
        """About how many records there are, or None if counting them would be slow."""


class FileInput:
    """The records of a file: a table, or one text per line."""

    unit: Final = "line"
    is_terminal: Final = False
    is_repeatable: Final = True

    def __init__(
        self,
        path: Path,
        field: str | None = None,
        file_format: FileFormat | None = None,
        delimiter: str | None = None,
    ) -> None:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise CorpusError(f"{path} is a pipe or a device; give it as standard input")
        self.path, self.field, self.name = path, field, str(path)
        self.file_format = file_format or _detect_format(path)
        self._layout = InputLayout(self.file_format, field, delimiter)
        self.columns, self.dialect = read_header(path, self._layout)

    def records(self, *, whole: bool) -> Iterator[Record | InvalidRow]:
        """The records of the file."""
        return read_records(self.path, self.field, whole=whole, layout=self._layout)

    def would_block(self) -> bool:
        """A file never has to wait."""
        return False

    def num_rows(self) -> int | None:
        """About how many records there are."""
        return count_rows(self.path, self.file_format)


def _detect_format(path: Path) -> FileFormat:
    """The format of a file; one that is read as plain text must look like text."""
    file_format = input_format(path)
    if format_by_name(path) is None and is_binary(path):
        raise CorpusError(
            f"{path}: this is not a text file; set its format with --format: txt, jsonl, csv, tsv "
            "or parquet"
        )
    return file_format


class TextInput:
    """Texts of the command line; the line of each is its number."""

    name: Final = "command line"
    unit: Final = "text"
    file_format: Final = "txt"
    is_terminal: Final = False
    columns: Final = (SOURCE,)
    dialect: Final = Dialect()
    is_repeatable: Final = True

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = tuple(texts)

    def records(self, *, whole: bool) -> Iterator[Record | InvalidRow]:  # noqa: ARG002 - there are no more columns
        """One for each text."""
        return (text_record(text, number) for number, text in enumerate(self._texts, start=1))

    def would_block(self) -> bool:
        """Texts never have to wait."""
        return False

    def num_rows(self) -> int | None:
        """How many there are."""
        return len(self._texts)


class StreamInput:
    """The records of a pipe or a terminal, as their lines arrive; they can be read once.

    It reads the file descriptor directly, without a thread or Python's buffer. So a signal ends the
    waiting, and `would_block` knows everything that has arrived.
    """

    unit: Final = "line"
    is_repeatable: Final = False

    def __init__(
        self, descriptor: int, name: str = "standard input", layout: InputLayout = _PLAIN_TEXT
    ) -> None:
        if layout.file_format == "parquet":
            raise ConfigError(
                f"--format parquet: {name} cannot be Parquet; name a file with --input"
            )
        self._descriptor, self.name, self._layout = descriptor, name, layout
        self.file_format, self.is_terminal = layout.file_format, os.isatty(descriptor)
        self._raw = RawLines(iter(self._read_bytes, b""))
        self._ahead: deque[bytes] = deque()  # complete lines that have arrived

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of the header, or of the first JSON object, which must be valid."""
        if self.file_format != "jsonl":
            return self._opened.columns
        first = next(self._opened.records, None)
        if isinstance(first, InvalidRow):
            raise CorpusError(f"{first}; correct it, because the first object names the columns")
        if first is None:
            return ()
        self._opened = self._opened._replace(records=chain([first], self._opened.records))
        return first.columns

    @property
    def dialect(self) -> Dialect:
        """How its lines are written."""
        return with_byte_order_mark(self._opened.dialect, self._raw)

    @cached_property
    def _opened(self) -> OpenedInput:
        """Wait for the header only when it is needed."""
        return open_lines(self.name, self._lines(), self._layout)

    def records(self, *, whole: bool) -> Iterator[Record | InvalidRow]:  # noqa: ARG002 - always whole
        """One for each line, or for the lines of a CSV row, once they are complete."""
        return self._opened.records

    def _lines(self) -> Iterator[bytes]:
        while self._ahead or self._advance():
            yield self._ahead.popleft()

    def would_block(self) -> bool:
        """Read what has arrived; whether there is no complete line yet.

        Windows cannot say what has arrived: there the next line is waited for.
        """
        if sys.platform == "win32":
            return not self._ahead
        while not self._ahead and select.select([self._descriptor], [], [], 0)[0]:
            if not self._read_block():
                return False
        return not self._ahead

    def num_rows(self) -> int | None:
        """Unknown."""
        return None

    def _advance(self) -> bool:
        """Wait for a complete line; False at the end."""
        while not self._ahead:
            if not self._read_block():
                return False
        return True

    def _read_block(self) -> bool:
        """Read the lines of the next block; False at the end."""
        try:
            lines = next(self._raw.by_block, None)
        except FileReadError as broken:
            if not broken.line:
                return False  # nothing arrived at all
            place = f"{self.name}: line {broken.line}"
            raise CorpusError(f"{place}: {broken.reason}") from None
        self._ahead.extend(lines or ())
        return lines is not None

    def _read_bytes(self) -> bytes:
        return os.read(self._descriptor, _BLOCK_BYTES)


def open_input(
    texts: Sequence[str],
    file: Path | None,
    field: str | None,
    file_format: FileFormat | None = None,
    delimiter: str = "auto",
) -> Input:
    """Texts, or a file, or standard input if there is neither or only ``-``.

    ``file_format`` is that of a file or of standard input; None: the name tells it. ``delimiter``
    is a name in `DELIMITERS`, or ``auto``.
    """
    if texts and file is not None:
        raise ConfigError("give ledes or --input, not both")
    if "-" in texts and len(texts) > 1:
        raise ConfigError("- reads standard input; give ledes or -, not both")
    path = None if str(file) == "-" else file
    found = file_format or (format_by_name(path) if path else None) or "txt"
    if delimiter != "auto" and found != "csv":
        raise ConfigError(
            f"--delimiter {delimiter}: only CSV has a delimiter; leave it out, or use --format csv"
        )
    if path is not None:
        return FileInput(path, field, file_format, DELIMITERS.get(delimiter))
    if texts and list(texts) != ["-"]:
        return _text_input(texts, field, file_format)
    if field is not None and found == "txt":
        raise ConfigError(
            f"--field {field}: only a table has columns; name one with --input, or set the "
            "format of standard input with --format"
        )
    if sys.stdin is None:
        raise ConfigError("standard input is closed; give a lede, or a file with --input")
    layout = InputLayout(found, field, DELIMITERS.get(delimiter))
    return StreamInput(sys.stdin.fileno(), layout=layout)


def _text_input(
    texts: Sequence[str], field: str | None, file_format: FileFormat | None
) -> TextInput:
    _check_not_files(texts)
    if field is not None:
        raise ConfigError(f"--field {field}: only a table has columns; name one with --input")
    if file_format is not None:
        raise ConfigError(
            f"--format {file_format}: only a file has a format; name one with --input"
        )
    return TextInput(texts)


def _check_not_files(texts: Sequence[str]) -> None:
    """Raise an error for a text that is a file name, not a lede."""
    for text in filter(looks_like_file_name, texts):
        if os.path.exists(text):  # noqa: PTH110 - never fails
            raise ConfigError(f"{text} is a file; to read its ledes, use --input {text}")
        raise ConfigError(
            f"{text} is neither a lede nor an existing file; give a lede, or name a file with "
            "--input"
        )
