"""A text file to which whole records are appended, so that a later run can resume it."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from ledeline.core.atomic import fsync, hidden_path
from ledeline.core.errors import CorpusError
from ledeline.corpus import InvalidRow
from ledeline.corpus.records import Record
from ledeline.inference.outputs import RecordResult, ResumePoint
from ledeline.inference.outputs.line_formats import Format


def journal_path(path: Path) -> Path:
    """Where the results lie until a table that cannot be appended to is written."""
    return hidden_path(path, "partial.jsonl")


class ResumableFile:
    """Appends records to a file, and recognises those that an earlier run wrote.

    A run that is killed leaves whole records, and perhaps an incomplete one, which the next run
    removes. The file is not changed before all of its records were checked against the input.
    """

    def __init__(self, path: Path, form: Format) -> None:
        self._path, self._format = path, form
        self._size = 0  # bytes of whole records
        self._descriptor: int | None = None

    @property
    def needs_whole_records(self) -> bool:
        """Whether other columns are written, too."""
        return self._format.is_table

    def resume(self, records: Iterator[Record | InvalidRow]) -> ResumePoint:
        """Skip the records that have a line already, and remove an incomplete line."""
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
        return ResumePoint(num_done, records)

    def _next(self, records: Iterator[Record | InvalidRow]) -> tuple[int, Record | InvalidRow]:
        """The next row that has a line, and how many rows were read up to it."""
        for taken, record in enumerate(records, start=1):
            if self._has_line(record):
                return taken, record
        raise self._misfit("has more records than the input")

    def _keep(self, line: bytes, beginning: bytes, what: str) -> bool:
        """Whether a line is whole; raises an error if it is not from this input."""
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

    def write(self, results: Sequence[RecordResult]) -> None:
        """Append lines; if the format cannot hold a record, those before it are still written."""
        data = bytearray()
        try:
            for result in results:
                if self._has_line(result.record):
                    data += self._format.line(result)
        finally:
            self._append(bytes(data))

    def finish(self) -> None:
        """Create the file with its header if nothing was written, and flush it to disk."""
        self._append(b"")
        fsync(self._path)
        fsync(self._path.parent)

    def _append(self, data: bytes) -> None:
        """Append all of the data, or nothing if that fails."""
        if not self._size:
            data = self._format.header + data
        if self._descriptor is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
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
    """The records of a file, with their line ends; the last may be incomplete."""
    line = b""
    for piece in file:
        line += piece
        if _is_whole(line, form):
            yield line
            line = b""
    line = line.rstrip(b"\0")  # the file had grown when the machine crashed, but was not written
    if line:
        yield line


def _is_whole(line: bytes, form: Format) -> bool:
    return line.endswith(b"\n") and not (form.is_quoted and line.count(b'"') % 2)
