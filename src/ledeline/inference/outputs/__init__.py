"""Where headlines go: standard output, text files that grow by whole records, Parquet tables."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from ledeline.corpus import InvalidRow
from ledeline.corpus.records import Record
from ledeline.inference.headline import Headline


class Answer(NamedTuple):
    """A record, or what should have been one, and its headline."""

    record: Record | InvalidRow
    headline: Headline


class Resumed(NamedTuple):
    """What is left to do."""

    num_done: int  # rows of the input that need no answer any more
    records: Iterator[Record | InvalidRow]  # the others


class Output(Protocol):
    """Takes answers in the order of the input."""

    @property
    def needs_whole_records(self) -> bool:
        """Whether it writes other columns of the input, too."""

    def resume(self, records: Iterator[Record | InvalidRow]) -> Resumed:
        """Pass by the records that were answered before, if any; called once, at the beginning."""

    def write(self, answers: Sequence[Answer]) -> None:
        """Write answers such that a reader has them."""

    def finish(self) -> None:
        """Called once all is written."""
