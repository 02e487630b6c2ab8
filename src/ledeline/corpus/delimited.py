"""Delimited files: the records of CSV and TSV, and how a table of text is written."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

from ledeline.corpus.lines import decode, encoding_reason

FIELD_LIMIT_CHARACTERS: Final = 16 << 20  # a quote left open must not eat the whole file
DELIMITERS: Final = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}
AMBIGUOUS: Final = "the delimiter is ambiguous"  # so the fault of such a header begins

_NAMES: Final = {delimiter: name for name, delimiter in DELIMITERS.items()}


class Dialect(NamedTuple):
    """How a table of text is written, beside its values."""

    delimiter: str = ","
    line_end: str = "\n"
    mark: str = ""  # a byte order mark, or nothing


class Record(NamedTuple):
    """One record of a delimited file."""

    line: int  # where it starts
    fields: list[str]
    fault: str  # why the fields cannot be used, or nothing
    text: bytes  # its first line


class Delimited(NamedTuple):
    """A delimited file whose header was read."""

    header: Record | None  # none where there are blank lines only
    records: Iterator[Record]  # the others
    delimiter: str
    line_end: str  # of the header
    between: str = ""  # what to say after a list of the columns, where it is not the usual


# --- TSV ------------------------------------------------------------------------------------------


def open_tsv(lines: Iterable[bytes]) -> Delimited:
    """Read the header of a file without any quoting: a record a line, its fields between tabs."""
    records = _tsv_records(lines)
    header = next(records, None)
    return Delimited(header, records, "\t", line_end(header.text if header else b""))


def _tsv_records(lines: Iterable[bytes]) -> Iterator[Record]:
    for number, raw in enumerate(lines, start=1):
        line = raw.removesuffix(b"\r")
        if not line:
            continue
        try:
            yield Record(number, decode(line).split("\t"), "", raw)
        except UnicodeDecodeError as error:
            yield Record(number, [], encoding_reason(error), raw)


def tsv_line(values: Sequence[str], end: str = "\n") -> str:
    """Return a record of a tab-separated file; a ValueError says that a value does not fit."""
    if any(character in value for value in values for character in "\t\n\r"):
        raise ValueError("has a tab or a line end, which TSV cannot hold; write CSV instead")
    return "\t".join(values) + end


# --- CSV ------------------------------------------------------------------------------------------


def open_csv(
    lines: Iterable[bytes], names: Sequence[str], delimiter: str | None = None
) -> Delimited:
    """Read the header of a CSV file; where the delimiter is not given, the header shows it.

    It is the comma where all columns of these names stand between commas, else the one delimiter
    between which they stand. Where that is none or several, the header cannot be used: it has a
    fault, or lacks one of the names.
    """
    source, fault = iter(lines), ""
    if delimiter is None:
        delimiter, fault, seen = _find_delimiter(source, names)
        source = chain(seen, source)
    numbered = _CsvLines(source)
    records = _csv_records(numbered, delimiter)
    header = next(records, None)
    if header and fault:
        header = header._replace(fault=fault)
    between = "" if delimiter == "," else f", between {_NAMES[delimiter]}s"
    return Delimited(header, records, delimiter, line_end(numbered.last), between)


def _find_delimiter(lines: Iterator[bytes], names: Sequence[str]) -> tuple[str, str, list[bytes]]:
    """Return the delimiter, why it is not clear if so, and the lines that were read to find it."""
    seen: list[bytes] = []
    headers: dict[str, list[str]] = {}
    for delimiter in DELIMITERS.values():
        header = next(_csv_records(_CsvLines(_again(seen, lines)), delimiter), None)
        headers[delimiter] = [] if header is None or header.fault else header.fields
        if delimiter == "," and _has_all(headers[","], names):
            return delimiter, "", seen
    fitting = [one for one, fields in headers.items() if _has_all(fields, names)]
    if len(fitting) > 1:
        found = " and ".join(f"between {_NAMES[one]}s" for one in fitting)
        return fitting[0], f"{AMBIGUOUS}: the columns are found {found}", seen
    if fitting:
        return fitting[0], "", seen
    most = max(headers, key=lambda one: len(headers[one]))  # for the sentence that lists them
    return most, "", seen


def _has_all(fields: Sequence[str], names: Sequence[str]) -> bool:
    return all(name in fields for name in names)


def _again(seen: list[bytes], lines: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines that were seen, then further ones, which are kept there too."""
    yield from tuple(seen)
    for line in lines:
        seen.append(line)
        yield line


def _csv_records(lines: "_CsvLines", delimiter: str) -> Iterator[Record]:
    """Yield the records of a file with strict quotes; after a bad one, go on at the next line."""
    csv.field_size_limit(max(csv.field_size_limit(), FIELD_LIMIT_CHARACTERS))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        lines.begin_record()
        try:
            fields = next(reader, None)
        except csv.Error as error:
            fault = _csv_fault(str(error), delimiter, lines.start, lines.number)
            yield Record(lines.start, [], lines.fault or fault, lines.first)
            continue
        if fields is None:
            return
        if fields:  # a blank line has none
            yield Record(lines.start, fields, lines.fault, lines.first)


class _CsvLines:
    """The lines that ``csv`` asks for, with a note of where the current record began."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = iter(lines)
        self.number = 0
        self.last = b""  # that was asked for
        self.begin_record()

    def begin_record(self) -> None:
        """Forget the last record."""
        self.start = self.number + 1
        self.first = b""
        self.fault = ""

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
            self.fault = f"{where} is {encoding_reason(error)}"
            return line.decode("utf-8", errors="replace") + "\n"


def _csv_fault(error: str, delimiter: str, start: int, end: int) -> str:
    """Say in our words what ``csv`` found wrong, and which lines went with it."""
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
    """Return a record of a CSV file, each field in quotes."""
    buffer = io.StringIO(newline="")
    quoted = csv.writer(buffer, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
    quoted.writerow(values)
    return buffer.getvalue()


def line_end(line: bytes) -> str:
    """Return what ended a line that was read without its line feed."""
    return "\r\n" if line.endswith(b"\r") else "\n"
