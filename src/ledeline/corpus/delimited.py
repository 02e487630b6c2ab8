"""Delimited files: read and write the rows of CSV and TSV."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

from ledeline.corpus.lines import decode, encoding_error

FIELD_LIMIT_CHARACTERS: Final = 16 << 20  # so that an open quote does not take the whole file
DELIMITERS: Final = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}
AMBIGUOUS_DELIMITER: Final = "the delimiter is ambiguous"  # the first words of that error

_NAMES: Final = {delimiter: name for name, delimiter in DELIMITERS.items()}


class Dialect(NamedTuple):
    """How a delimited file is written."""

    delimiter: str = ","
    line_end: str = "\n"
    byte_order_mark: str = ""  # or the mark


class DelimitedRow(NamedTuple):
    """One row of a delimited file."""

    line: int  # where it starts
    fields: list[str]
    error: str  # why the fields cannot be used, or ""
    text: bytes  # its first line


class DelimitedTable(NamedTuple):
    """A delimited file whose header has been read."""

    header: DelimitedRow | None  # None if there are only blank lines
    rows: Iterator[DelimitedRow]  # the other rows
    delimiter: str
    line_end: str  # of the header
    column_note: str = ""  # said behind a list of the columns if the delimiter is not a comma


# --- TSV ------------------------------------------------------------------------------------------


def open_tsv(lines: Iterable[bytes]) -> DelimitedTable:
    """Read the header of a TSV file: one row per line, fields between tabs, no quotes."""
    rows = _tsv_rows(lines)
    header = next(rows, None)
    return DelimitedTable(header, rows, "\t", line_end(header.text if header else b""))


def _tsv_rows(lines: Iterable[bytes]) -> Iterator[DelimitedRow]:
    for number, raw in enumerate(lines, start=1):
        line = raw.removesuffix(b"\r")
        if not line:
            continue
        try:
            yield DelimitedRow(number, decode(line).split("\t"), "", raw)
        except UnicodeDecodeError as error:
            yield DelimitedRow(number, [], encoding_error(error), raw)


def tsv_line(values: Sequence[str], end: str = "\n") -> str:
    """Return a row of a TSV file; a value with a tab or a line end is a ValueError."""
    if any(character in value for value in values for character in "\t\n\r"):
        raise ValueError("has a tab or a line end, which TSV cannot hold; write CSV instead")
    return "\t".join(values) + end


# --- CSV ------------------------------------------------------------------------------------------


def open_csv(
    lines: Iterable[bytes], names: Sequence[str], delimiter: str | None = None
) -> DelimitedTable:
    """Read the header of a CSV file, and detect the delimiter if it is not given.

    It is the comma if that gives all columns of these names, else the only delimiter that does. If
    there is none or several, the header cannot be used: it lacks a column, or has an error.
    """
    source, error = iter(lines), ""
    if delimiter is None:
        delimiter, error, seen = _find_delimiter(source, names)
        source = chain(seen, source)
    numbered = _CsvLines(source)
    rows = _csv_rows(numbered, delimiter)
    header = next(rows, None)
    if header and error:
        header = header._replace(error=error)
    note = "" if delimiter == "," else f", between {_NAMES[delimiter]}s"
    return DelimitedTable(header, rows, delimiter, line_end(numbered.last), note)


def _find_delimiter(lines: Iterator[bytes], names: Sequence[str]) -> tuple[str, str, list[bytes]]:
    """Return the delimiter, an error if it is ambiguous, and the lines read to find it."""
    seen: list[bytes] = []
    headers: dict[str, list[str]] = {}
    for delimiter in DELIMITERS.values():
        header = next(_csv_rows(_CsvLines(_again(seen, lines)), delimiter), None)
        headers[delimiter] = [] if header is None or header.error else header.fields
        if delimiter == "," and _has_all(headers[","], names):
            return delimiter, "", seen
    fitting = [one for one, fields in headers.items() if _has_all(fields, names)]
    if len(fitting) > 1:
        found = " and ".join(f"between {_NAMES[one]}s" for one in fitting)
        return fitting[0], f"{AMBIGUOUS_DELIMITER}: the columns are found {found}", seen
    if fitting:
        return fitting[0], "", seen
    most = max(headers, key=lambda one: len(headers[one]))  # for the error that lists the columns
    return most, "", seen


def _has_all(fields: Sequence[str], names: Sequence[str]) -> bool:
    return all(name in fields for name in names)


def _again(seen: list[bytes], lines: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines in ``seen``, then further ones, which are added to it."""
    yield from tuple(seen)
    for line in lines:
        seen.append(line)
        yield line


def _csv_rows(lines: "_CsvLines", delimiter: str) -> Iterator[DelimitedRow]:
    """Yield the rows of a file with strict quotes; after an invalid one, go on at the next line."""
    csv.field_size_limit(max(csv.field_size_limit(), FIELD_LIMIT_CHARACTERS))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        lines.begin_row()
        try:
            fields = next(reader, None)
        except csv.Error as error:
            reason = _csv_error(str(error), delimiter, lines.start, lines.number)
            yield DelimitedRow(lines.start, [], lines.error or reason, lines.first)
            continue
        if fields is None:
            return
        if fields:  # a blank line has none
            yield DelimitedRow(lines.start, fields, lines.error, lines.first)


class _CsvLines:
    """The lines that ``csv`` reads, and where the current row began."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = iter(lines)
        self.number = 0
        self.last = b""  # line that was read
        self.begin_row()

    def begin_row(self) -> None:
        """Start a new row."""
        self.start = self.number + 1
        self.first = b""
        self.error = ""

    def __iter__(self) -> "_CsvLines":
        return self

    def __next__(self) -> str:
        line = self.last = next(self._lines)
        self.number += 1
        if self.number == self.start:
            self.first = line
        try:
            return decode(line) + "\n"
        except UnicodeDecodeError as error:
            where = "it" if self.number == self.start else f"line {self.number}"
            self.error = f"{where} is {encoding_error(error)}"
            return line.decode("utf-8", errors="replace") + "\n"


def _csv_error(error: str, delimiter: str, start: int, end: int) -> str:
    """Say in our words what ``csv`` found wrong, and which lines are lost."""
    reasons = {
        "unexpected end of data": "a quote is opened and never closed",
        "field larger": f"a field is longer than {FIELD_LIMIT_CHARACTERS:,} characters, "
        "perhaps from a quote that is never closed",
        "expected after": f"a closing quote is followed by text instead of a {_NAMES[delimiter]}",
        "new-line character": "there is a carriage return outside quotes",
    }
    reason = next((ours for theirs, ours in reasons.items() if theirs in error), error)
    return reason if start == end else f"{reason} (lines {start} to {end} are lost)"


def csv_line(values: Sequence[str], delimiter: str = ",", end: str = "\n") -> str:
    """Return a row of a CSV file, with each field in quotes."""
    buffer = io.StringIO(newline="")
    quoted = csv.writer(buffer, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
    quoted.writerow(values)
    return buffer.getvalue()


def line_end(line: bytes) -> str:
    """Return the end of a line that was read without its line feed."""
    return "\r\n" if line.endswith(b"\r") else "\n"
