"""Reading pairs from files: tables, parallel text, Annotated Gigaword.

A reader is a generator of rows in the order of the file. A row is a pair, an invalid row with the
reason, or a document that gives no pair. Readers do not decide what happens to an invalid row.
"""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import datetime


class Pair(NamedTuple):
    """A lede and its headline, as they are in the file."""

    lede: str
    headline: str
    date: "datetime.date | None"
    file: str
    line: int


class InvalidRow(NamedTuple):
    """A row of a file that cannot be read as a pair, and why."""

    file: str
    line: int  # counted from 1; 0 stands for the whole file
    reason: str
    text: str  # the start of the row, for the rejects file

    def __str__(self) -> str:
        place = f"{self.file}: line {self.line}" if self.line else self.file
        return f"{place}: {self.reason}"


class InvalidHeader(InvalidRow):
    """An invalid header or schema, without which no row of the table can be read."""

    __slots__ = ()


class SkippedDocument(NamedTuple):
    """A valid document that gives no pair; it is counted under the rule that says so."""

    file: str
    line: int
    rule: str
    text: str


Row = Pair | InvalidRow | SkippedDocument
