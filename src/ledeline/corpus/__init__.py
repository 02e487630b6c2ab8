"""Pairs from the outside world: tables, parallel text, Annotated Gigaword, the synthetic newsroom.

A reader is a generator of rows in the order of the file. A row is a pair, a bad row with the
reason, or a document that holds no pair; readers do not decide what happens to a bad row.
"""

import datetime
from typing import NamedTuple


class Pair(NamedTuple):
    """A lede and its headline, as they stand in the file."""

    lede: str
    headline: str
    date: datetime.date | None
    file: str
    line: int


class BadRow(NamedTuple):
    """A place in a file that is no pair, and why."""

    file: str
    line: int  # counted from 1; 0 where the whole file is meant
    reason: str
    text: str  # the start of what stood there, for the rejects file

    def __str__(self) -> str:
        place = f"{self.file}: line {self.line}" if self.line else self.file
        return f"{place}: {self.reason}"


class BadHeader(BadRow):
    """A header, or what stands for one, without which no row of the table can be read."""

    __slots__ = ()


class NoPair(NamedTuple):
    """A sound document that gives no pair by a rule of its format; counted under that rule."""

    file: str
    line: int
    rule: str
    text: str


Row = Pair | BadRow | NoPair
