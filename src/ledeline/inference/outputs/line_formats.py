"""The formats of lines: how an answer becomes a line, and which records a line can be of.

A line begins with what is known before there is a headline. By that, and by how lines end, a run
that goes on knows the lines of the run before it, whether they are whole or torn.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from ledeline.core.errors import CorpusError
from ledeline.corpus import InvalidRow
from ledeline.corpus.delimited import Dialect, csv_line, tsv_line
from ledeline.corpus.lines import json_line
from ledeline.corpus.records import Record
from ledeline.inference.outputs import Answer

_NO_BREAKS: Final = str.maketrans("\t\n\r", "   ")


class Format(Protocol):
    """A format of lines."""

    @property
    def header(self) -> bytes:
        """What the file begins with."""

    @property
    def has_bad_rows(self) -> bool:
        """Whether a bad row has a line; else it is left out."""

    @property
    def is_table(self) -> bool:
        """Whether a line has the other columns of its record."""

    @property
    def endings(self) -> tuple[bytes, ...]:
        """What a line ends with, whatever its headline is: one of these."""

    @property
    def is_quoted(self) -> bool:
        """Whether a line end between quotes is part of a line; quotes in there are doubled."""

    def beginning(self, record: Record | InvalidRow) -> bytes:
        """What the line of a record begins with, whatever its headline is.

        A record that the format cannot hold is a ``CorpusError``.
        """

    def line(self, answer: Answer) -> bytes:
        """The line of an answer, with its end."""


class PlainLines:
    """A headline a line; the headlines of an n-best list stand between tabs."""

    header: Final = b""
    has_bad_rows: Final = True
    is_table: Final = False
    is_quoted: Final = False
    endings: Final = (b"\n",)

    def beginning(self, record: Record | InvalidRow) -> bytes:  # noqa: ARG002 - a headline has no mark
        """Any headline can be of any record."""
        return b""

    def line(self, answer: Answer) -> bytes:
        """The headline or headlines; an empty line where there is none."""
        texts = [one.text for one in answer.headline.alternatives] or [answer.headline.text]
        line = "\t".join(text.translate(_NO_BREAKS) for text in texts) + "\n"
        return line.encode("utf-8", errors="replace")


class JsonLines:
    """An object a line with all there is to say about a headline."""

    header: Final = b""
    has_bad_rows: Final = True
    is_table: Final = False
    is_quoted: Final = False
    endings: Final = (b"]}\n", b"}}\n")  # a list, or the alignment, is last

    def beginning(self, record: Record | InvalidRow) -> bytes:
        """The source."""
        return json_line(self._source(record)).removesuffix("}\n").encode()

    def line(self, answer: Answer) -> bytes:
        """The headline with its score, its warnings and what else was asked for."""
        return json_line(answer.headline.as_dict() | self._source(answer.record)).encode()

    def _source(self, record: Record | InvalidRow) -> dict[str, str | None]:
        """The text as it stands in the input, which a headliner may read without a line end."""
        return {"source": record.text if isinstance(record, Record) else None}


class JsonTable:
    """The objects of a table with a key added; those of a text have its source."""

    header: Final = b""
    has_bad_rows: Final = False
    is_table: Final = True
    is_quoted: Final = False

    def __init__(
        self, name: str, columns: Sequence[str], column: str, line_end: str = "\n"
    ) -> None:
        self._name, self._column, self._line_end = name, column, line_end
        self.endings = (b'"}' + line_end.encode(),)
        refuse_taken(name, columns, column)
        for one in columns:
            if columns.count(one) > 1:
                times = f"{columns.count(one)} times"
                raise CorpusError(f"{name}: the column {one!r} occurs {times}; write CSV instead")

    def beginning(self, record: Record | InvalidRow) -> bytes:
        """The other columns, and the name of the new one."""
        return self._row(record, "").encode().removesuffix(*self.endings)

    def line(self, answer: Answer) -> bytes:
        """The object with the headline last."""
        return self._row(answer.record, answer.headline.text).encode()

    def _row(self, record: Record | InvalidRow, headline: str) -> str:
        assert isinstance(record, Record)
        place = f"{self._name}: line {record.line}"
        refuse_taken(place, record.columns, self._column)
        try:
            line = json_line(record.row | {self._column: headline})
        except TypeError:
            raise _unfit(place, record, "JSON") from None
        return line.removesuffix("\n") + self._line_end


class Delimited:
    """The rows of a table with a field added: CSV, or TSV, which has no quotes."""

    has_bad_rows: Final = False
    is_table: Final = True

    def __init__(
        self, kind: str, name: str, columns: Sequence[str], column: str, dialect: Dialect
    ) -> None:
        refuse_taken(name, columns, column)
        self._kind, self._name, self._columns = kind, name, tuple(columns)
        self._dialect = dialect
        self.is_quoted = kind == "CSV"
        self.endings = (b'"' * self.is_quoted + dialect.line_end.encode(),)
        header = self._encoded(f"{name}: the header", [*columns, column])
        self.header = dialect.byte_order_mark.encode() + header

    def beginning(self, record: Record | InvalidRow) -> bytes:
        """The other fields."""
        return self._row(record, "").removesuffix(*self.endings)

    def line(self, answer: Answer) -> bytes:
        """The fields with the headline last."""
        return self._row(answer.record, answer.headline.text)

    def _row(self, record: Record | InvalidRow, headline: str) -> bytes:
        assert isinstance(record, Record)
        place = f"{self._name}: line {record.line}"
        values = record.values
        if record.columns != self._columns:  # objects of JSON lines differ
            values = _in_order(place, record, self._columns)
        try:
            cells = [_cell(value) for value in values]
        except TypeError:
            raise _unfit(place, record, self._kind) from None
        return self._encoded(place, [*cells, headline])

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


class MetricsLog:
    """What a run notes down until the table can be written: line, source and headline."""

    header: Final = b""
    has_bad_rows: Final = False
    is_table: Final = False
    is_quoted: Final = False
    endings: Final = (b'"}\n',)

    def beginning(self, record: Record | InvalidRow) -> bytes:
        """The line and the source."""
        return self._row(record, "").encode().removesuffix(*self.endings)

    def line(self, answer: Answer) -> bytes:
        """The line, the source and the headline."""
        return self._row(answer.record, answer.headline.text).encode()

    def _row(self, record: Record | InvalidRow, headline: str) -> str:
        return json_line({"line": record.line, "source": record.text, "headline": headline})


def refuse_taken(place: str, columns: Sequence[str], column: str) -> None:
    """Refuse to write a column where there is one of that name."""
    if column in columns:
        raise CorpusError(
            f"{place}: the table already has a column {column!r}; name another with --column"
        )


def _in_order(place: str, record: Record, columns: tuple[str, ...]) -> list[object]:
    """The values of an object in the order of the header; one that is not there is null."""
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
    """The error that names a value which is no text, number or list of them."""
    for name, value in record.row.items():
        try:
            _cell(value)
        except TypeError:
            what = f"the value of {name!r} has the type {type(value).__name__}"
            return CorpusError(f"{place}: {what}, which {kind} cannot hold; write .parquet instead")
    raise AssertionError("only a value that cannot be written leads here")
