"""A text file that grows by whole records, and that a later run can go on with."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from ledeline.core.atomic import fsync
from ledeline.core.errors import CorpusError
from ledeline.corpus import InvalidRow
from ledeline.corpus.records import Record
from ledeline.inference.outputs import Answer, Resumed
from ledeline.inference.outputs.line_formats import Format


class GrowingFile:
    """Appends answers to a file, and knows again those that an earlier run wrote.

    A run that is killed leaves whole records and perhaps the start of one, which the next run cuts
    off. The file is not touched before all of it was found to fit the input.
    """

    def __init__(self, path: Path, form: Format) -> None:
        self._path, self._format = path, form
        self._size = 0  # of the whole records
        self._descriptor: int | None = None

    @property
    def needs_whole_records(self) -> bool:
        """Whether other columns are written, too."""
        return self._format.is_table

    def resume(self, records: Iterator[Record | InvalidRow]) -> Resumed:
        """Pass by the records that have a line already, and cut off a torn one."""
        num_done = 0
        with suppress(FileNotFoundError), self._path.open("rb") as file:
            lines = _lines(file, self._format)
            if self._format.header:
                self._keep(next(lines, b""), self._format.header, "header")
            for number, line in enumerate(lines, start=1):
                taken, record = self._next(records)
                if not self._keep(line, self._format.beginning(record), f"record {number}"):
                    num_done, records = num_done + taken - 1, chain([record], records)
                    break
                num_done += taken
            os.truncate(self._path, self._size)
        return Resumed(num_done, records)

    def _next(self, records: Iterator[Record | InvalidRow]) -> tuple[int, Record | InvalidRow]:
        """How many rows the next one that has a line takes, and that row."""
        for taken, record in enumerate(records, start=1):
            if self._has_line(record):
                return taken, record
        raise self._misfit("has more records than the input")

    def _keep(self, line: bytes, beginning: bytes, what: str) -> bool:
        """Whether a line is whole; one that is not of the input is an error."""
        whole = _is_whole(line, self._format)
        fits = line.startswith(beginning) or (not whole and beginning.startswith(line))
        if not fits or (whole and not line.endswith(self._format.endings)):
            raise self._misfit(f"has a {what} that is not from this input")
        self._size += len(line) if whole else 0
        return whole

    def _misfit(self, what: str) -> CorpusError:
        return CorpusError(
            f"{self._path} {what}, so --resume cannot continue it; use the same input and "
            "options as before, or name another output"
        )

    def _has_line(self, record: Record | InvalidRow) -> bool:
        return self._format.has_bad_rows or isinstance(record, Record)

    def write(self, answers: Sequence[Answer]) -> None:
        """Append the lines of answers; those before one that does not fit are written."""
        data = bytearray()
        try:
            for answer in answers:
                if self._has_line(answer.record):
                    data += self._format.line(answer)
        finally:
            self._append(bytes(data))

    def finish(self) -> None:
        """See to it that the file is there, with its header, and on the disk."""
        self._append(b"")
        fsync(self._path)
        fsync(self._path.parent)

    def _append(self, data: bytes) -> None:
        """Append all or nothing."""
        if not self._size:
            data = self._format.header + data
        if self._descriptor is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            self._descriptor = os.open(self._path, flags, 0o666)
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(data)

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _lines(file: BinaryIO, form: Format) -> Iterator[bytes]:
    """The records of a file, with their ends; the last may be torn."""
    line = b""
    for piece in file:
        line += piece
        if _is_whole(line, form):
            yield line
            line = b""
    if line:
        yield line


def _is_whole(line: bytes, form: Format) -> bool:
    return line.endswith(b"\n") and not (form.is_quoted and line.count(b'"') % 2)
