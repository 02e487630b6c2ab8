"""Line formats: how a headline is written as a line, and to which record a line belongs.

A line begins with what is known before the headline is generated. By this beginning, and by the end
of the line, a resumed run recognises the lines of the run before, whole or incomplete.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from ledeline.core.errors import CorpusError
from ledeline.corpus import InvalidRow
from ledeline.corpus.delimited import Dialect, csv_line, tsv_line
from ledeline.corpus.lines import json_line
from ledeline.corpus.records import Record
from ledeline.inference.outputs import RecordResult
from ledeline.inference.outputs.added_columns import AddedColumn, refuse_taken

_NO_BREAKS: Final = str.maketrans("\t\n\r", "   ")


class Format(Protocol):
    """A line format."""

    @property
    def header(self) -> bytes:
        """The start of the file."""

    @property
    def has_bad_rows(self) -> bool:
        """Whether a bad row has a line; else it is left out."""

    @property
    def is_table(self) -> bool:
        """Whether a line has all columns of its record."""

    @property
    def endings(self) -> tuple[bytes, ...]:
        """How a line can end, whatever its headline is."""

    @property
    def is_quoted(self) -> bool:
        """Whether quoted fields may contain line ends; quotes in them are doubled."""

    def beginning(self, record: Record | InvalidRow) -> bytes:
        """The beginning of a record's line, whatever its headline is.

        Raises a ``CorpusError`` for a record that the format cannot hold.
        """

    def line(self, result: RecordResult) -> bytes:
        """The line of a result, with its line end."""


class PlainLines:
    """One headline per line; an n-best list is separated by tabs."""

    header: Final = b""
    has_bad_rows: Final = True
    is_table: Final = False
    is_quoted: Final = False
    endings: Final = (b"\n",)

    def beginning(self, record: Record | InvalidRow) -> bytes:  # noqa: ARG002
        """Empty: a line does not show its record."""
        return b""

    def line(self, result: RecordResult) -> bytes:
        """The headline or headlines; an empty line where there is none."""
        texts = [one.text for one in result.headline.alternatives] or [result.headline.text]
        line = "\t".join(text.translate(_NO_BREAKS) for text in texts) + "\n"
        return line.encode("utf-8", errors="replace")


class JsonLines:
    """One JSON object per line, with everything about a headline."""

    header: Final = b""
    has_bad_rows: Final = True
    is_table: Final = False
    is_quoted: Final = False
    endings: Final = (b"]}\n", b"}}\n")  # the last value is a list, or the alignment

    def beginning(self, record: Record | InvalidRow) -> bytes:
        """The source."""
        return json_line(self._source(record)).removesuffix("}\n").encode()

    def line(self, result: RecordResult) -> bytes:
        """The headline with its score, its warnings and what else was asked for."""
        return json_line(result.headline.as_dict() | self._source(result.record)).encode()

    def _source(self, record: Record | InvalidRow) -> dict[str, str | None]:
        """The text as it is in the input; a headliner may drop its line end."""
        return {"source": record.text if isinstance(record, Record) else None}


class JsonTable:
    """A table as JSON lines, with keys added; for plain text, the other key is its source."""

    header: Final = b""
    has_bad_rows: Final = False
    is_table: Final = True
    is_quoted: Final = False

    def __init__(
        self,
        name: str,
        columns: Sequence[str],
        added: Sequence[AddedColumn],
        line_end: str = "\n",
    ) -> None:
        self._name, self._added, self._line_end = name, added, line_end
        self.endings = tuple(f"{end}}}{line_end}".encode() for end in added[-1].json_ends)
        refuse_taken(name, columns, added)
        for one in columns:
            if columns.count(one) > 1:
                times = f"{columns.count(one)} times"
                raise CorpusError(f"{name}: the column {one!r} occurs {times}; write CSV instead")

    def beginning(self, record: Record | InvalidRow) -> bytes:
        """The other columns, and the name of the first new one."""
        row = self._row(record, {self._added[0].name: None})
        return row.removesuffix(f"null}}{self._line_end}").encode()

    def line(self, result: RecordResult) -> bytes:
        """The object with the new columns last."""
        values = {one.name: one.value(result.headline) for one in self._added}
        return self._row(result.record, values).encode()

    def _row(self, record: Record | InvalidRow, values: dict[str, object]) -> str:
        assert isinstance(record, Record)
        place = f"{self._name}: line {record.line}"
        refuse_taken(place, record.columns, self._added)
        try:
            line = json_line(record.row | values)
        except TypeError:
            raise _unfit(place, record, "JSON") from None
        return line.removesuffix("\n") + self._line_end


class Delimited:
    """The rows of a table with fields added: CSV, or TSV, which has no quotes."""

    has_bad_rows: Final = False
    is_table: Final = True

    def __init__(
        self,
        kind: str,
        name: str,
        columns: Sequence[str],
        added: Sequence[AddedColumn],
        dialect: Dialect,
    ) -> None:
        refuse_taken(name, columns, added)
        self._kind, self._name, self._columns = kind, name, tuple(columns)
        self._added, self._dialect = added, dialect
        self.is_quoted = kind == "CSV"
        self.endings = (b'"' * self.is_quoted + dialect.line_end.encode(),)
        header = self._encoded(f"{name}: the header", [*columns, *(one.name for one in added)])
        self.header = dialect.byte_order_mark.encode() + header

    def beginning(self, record: Record | InvalidRow) -> bytes:
        """The other fields."""
        return self._row(record, [""]).removesuffix(*self.endings)

    def line(self, result: RecordResult) -> bytes:
        """The fields with the new ones last."""
        added = [_cell(one.value(result.headline)) for one in self._added]
        return self._row(result.record, added)

    def _row(self, record: Record | InvalidRow, added: Sequence[str]) -> bytes:
        assert isinstance(record, Record)
        place = f"{self._name}: line {record.line}"
        values = record.values
        if record.columns != self._columns:  # JSON objects may differ
            values = _in_order(place, record, self._columns)
        try:
            cells = [_cell(value) for value in values]
        except TypeError:
            raise _unfit(place, record, self._kind) from None
        return self._encoded(place, [*cells, *added])

    def _encoded(self, place: str, cells: Sequence[str]) -> bytes:
        try:
            return self._joined(cells).encode()
        except UnicodeEncodeError:
            raise CorpusError(
                f"{place} has half a character (a lone surrogate), which {self._kind} cannot hold; "
                "write .jsonl instead"
            ) from None
        except ValueError as error:
            raise CorpusError(f"{place} {error}") from None

    def _joined(self, cells: Sequence[str]) -> str:
        delimiter, line_end, _ = self._dialect
        if self._kind == "TSV":
            return tsv_line(cells, line_end)
        return csv_line(cells, delimiter, line_end)


class JournalLines:
    """The journal of a run until its table can be written: line, source and new columns."""

    header: Final = b""
    has_bad_rows: Final = False
    is_table: Final = False
    is_quoted: Final = False

    def __init__(self, added: Sequence[AddedColumn]) -> None:
        self._added = added
        self.endings = tuple(f"{end}}}\n".encode() for end in added[-1].json_ends)

    def beginning(self, record: Record | InvalidRow) -> bytes:
        """The line and the source."""
        row = json_line(self._place(record) | {self._added[0].key: None})
        return row.removesuffix("null}\n").encode()

    def line(self, result: RecordResult) -> bytes:
        """The line, the source and the new columns, whatever they are called in the table."""
        values = {one.key: one.value(result.headline) for one in self._added}
        return json_line(self._place(result.record) | values).encode()

    def _place(self, record: Record | InvalidRow) -> dict[str, object]:
        return {"line": record.line, "source": record.text}


def _in_order(place: str, record: Record, columns: tuple[str, ...]) -> list[object]:
    """The values of an object in the order of the header; a missing one is null."""
    row = record.row
    for name in row:
        if name not in columns:
            raise CorpusError(
                f"{place} has the key {name!r}, which the first object does not have; "
                "write .jsonl instead"
            )
    return [row.get(name) for name in columns]


def _cell(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json_line(value).removesuffix("\n")


def _unfit(place: str, record: Record, kind: str) -> CorpusError:
    """The error that names the value which cannot be written."""
    for name, value in record.row.items():
        try:
            _cell(value)
        except TypeError:
            what = f"the value of {name!r} has the type {type(value).__name__}"
            return CorpusError(f"{place}: {what}, which {kind} cannot hold; write .parquet instead")
    raise AssertionError("only a value that cannot be written leads here")
