"""Where headlines are written: standard output, resumable text files, Parquet tables."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from ledeline.corpus import InvalidRow
from ledeline.corpus.records import Record
from ledeline.inference.headline import Headline


class RecordResult(NamedTuple):
    """A row of the input and its headline."""

    record: Record | InvalidRow
    headline: Headline


class ResumePoint(NamedTuple):
    """Where to continue."""

    num_done: int  # rows of the input that are already written
    records: Iterator[Record | InvalidRow]  # the remaining rows


class Output(Protocol):
    """Writes headlines in the order of the input."""

    @property
    def needs_whole_records(self) -> bool:
        """Whether it also writes the other columns of the input."""

    def resume(self, records: Iterator[Record | InvalidRow]) -> ResumePoint:
        """Skip the records that were written before, if any; called once, at the beginning."""

    def write(self, results: Sequence[RecordResult]) -> None:
        """Write results, so that a reader of the output sees them."""

    def finish(self) -> None:
        """Called once, when everything is written."""
