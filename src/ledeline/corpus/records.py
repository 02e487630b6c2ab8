"""Texts from the outside world with the whole rows they stand in.

Where ``tables`` gives pairs to learn from, this gives records to write headlines for: a text, and
the other columns as they are, so that the same table can be written with a column added. A row that
cannot be used is a bad row and reading goes on; a file that cannot be used, or breaks off, is a
``CorpusError``.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ledeline.core.errors import CorpusError
from ledeline.corpus import BadRow
from ledeline.corpus.delimited import AMBIGUOUS, Delimited, Dialect, line_end, open_csv, open_tsv
from ledeline.corpus.kinds import Kind, input_kind
from ledeline.corpus.lines import (
    BYTE_ORDER_MARK,
    BrokenStream,
    RawLines,
    decode,
    encoding_reason,
    excerpt,
    read_blocks,
    unpacked,
)
from ledeline.corpus.tables import (
    BATCH_ROWS,
    NO_HEADER,
    column_fault,
    column_texts,
    is_text,
    json_object,
    json_texts,
    record_fault,
    unsound_parquet,
)

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

LEDE: Final = "lede"  # the column that is read where none is named
SOURCE: Final = "source"  # the column of a text that stands in no table


class Record(NamedTuple):
    """A text and the row it stands in."""

    text: str
    line: int  # where it starts, counted from 1; in Parquet the row
    columns: tuple[str, ...]
    values: Sequence[object]  # one for each column; what JSON can hold, or bytes

    @property
    def row(self) -> dict[str, object]:
        """The values by column."""
        return dict(zip(self.columns, self.values, strict=True))


def text_record(text: str, line: int) -> Record:
    """Return the record of a text that stands in no table."""
    return Record(text, line, (SOURCE,), (text,))


def line_record(file: str, number: int, line: bytes) -> Record | BadRow:
    """Return the record of a line of text, which may be empty."""
    try:
        return text_record(decode(line), number)
    except UnicodeDecodeError as error:
        return BadRow(file, number, encoding_reason(error), excerpt(line))


class Layout(NamedTuple):
    """What a file or a stream of texts holds, and where the texts are."""

    kind: Kind = "txt"
    field: str | None = None  # the column of the texts; with None ``lede``, or the only one
    delimiter: str | None = None  # of CSV; with None it is found by the header

    @property
    def texts(self) -> list[str]:
        """The column that must be there."""
        return [self.field or LEDE]


class Opened(NamedTuple):
    """Lines whose header, where they have one, was read."""

    columns: tuple[str, ...]  # none for JSON lines, where each object has its own
    dialect: Dialect
    records: Iterator[Record | BadRow]


def read_records(
    path: Path, field: str | None, *, whole: bool = True, layout: Layout | None = None
) -> Iterator[Record | BadRow]:
    """Yield the records of a file, in the format that the suffix of its name says.

    ``field`` names the column of the texts; with None that is ``lede``, or the only column. Without
    ``whole``, records may come without their other columns, where that saves reading them. A
    ``layout`` goes before the name and ``field``.
    """
    layout = layout or Layout(input_kind(path), field)
    if layout.kind == "parquet":
        return _read_parquet(path, layout.field, whole=whole)
    return _until_break(path, layout)


def read_columns(path: Path, field: str | None) -> tuple[str, ...]:
    """Return the columns of a file, those of the first object for JSON lines.

    What is wrong with the file as a whole, such as a missing column, is a ``CorpusError``.
    """
    return read_head(path, Layout(input_kind(path), field))[0]


def read_head(path: Path, layout: Layout) -> tuple[tuple[str, ...], Dialect]:
    """Return the columns of a file as ``read_columns`` does, and how its lines are written."""
    if layout.kind == "parquet":
        return tuple(read_schema(path, layout.field).names), Dialect()
    lines = RawLines(read_blocks(path))
    try:
        columns, dialect, records = open_lines(str(path), lines, layout)
        if layout.kind == "txt":
            next(records, None)  # whether there is such a file
        if layout.kind == "jsonl":
            first = next((one for one in records if isinstance(one, Record)), None)
            columns = first.columns if first else ()
    except BrokenStream as broken:
        _refuse_break(path, layout, broken)
        return ((SOURCE,) if layout.kind == "txt" else ()), Dialect()
    return columns, with_mark(dialect, lines)


def with_mark(dialect: Dialect, lines: RawLines) -> Dialect:
    """Return the dialect with the byte order mark that the lines began with, if any."""
    return dialect._replace(mark=BYTE_ORDER_MARK.decode() if lines.has_mark else "")


def _until_break(path: Path, layout: Layout) -> Iterator[Record | BadRow]:
    """Yield the records of lines; an empty file may have none, and any other break is an error."""
    try:
        yield from open_lines(str(path), RawLines(read_blocks(path)), layout).records
    except BrokenStream as broken:
        _refuse_break(path, layout, broken)


def _refuse_break(path: Path, layout: Layout, broken: BrokenStream) -> None:
    """Refuse what breaks off, and an empty file that should have a header."""
    if broken.line or layout.kind not in ("txt", "jsonl"):
        raise CorpusError(str(broken.row(path))) from None


def open_lines(name: str, lines: Iterable[bytes], layout: Layout) -> Opened:
    """Read what lines begin with: the header of a table, or nothing of a text."""
    match layout.kind:
        case "txt":
            return Opened((SOURCE,), Dialect(), _text_records(name, lines, layout.field))
        case "jsonl":
            return _open_jsonl(name, iter(lines), layout.field)
        case "tsv":
            return _open_delimited(name, open_tsv(lines), layout)
        case "csv":
            return _open_delimited(name, open_csv(lines, layout.texts, layout.delimiter), layout)
    raise AssertionError(f"{layout.kind} is not of lines")


# --- text -----------------------------------------------------------------------------------------


def _text_records(
    name: str, lines: Iterable[bytes], field: str | None
) -> Iterator[Record | BadRow]:
    if field is not None:
        raise CorpusError(
            f"{name}: plain text has no column {field!r}; leave --field out, or set the format "
            "of a table with --format"
        )
    for number, line in enumerate(lines, start=1):
        yield line_record(name, number, line.removesuffix(b"\r"))


# --- CSV and TSV ----------------------------------------------------------------------------------


def _open_delimited(name: str, table: Delimited, layout: Layout) -> Opened:
    header = table.header
    if header is None:
        raise CorpusError(f"{name}: {NO_HEADER}")
    if header.fault:
        way_on = "; set it with --delimiter" if header.fault.startswith(AMBIGUOUS) else ""
        raise CorpusError(f"{name}: line {header.line}: {header.fault}{way_on}")
    columns = tuple(header.fields)
    place = columns.index(_chosen(name, columns, layout.field, table.between))
    dialect = Dialect(table.delimiter, table.line_end)
    return Opened(columns, dialect, _delimited_records(name, table, columns, place))


def _delimited_records(
    name: str, table: Delimited, columns: tuple[str, ...], place: int
) -> Iterator[Record | BadRow]:
    for one in table.records:
        fault = record_fault(one, len(columns))
        if fault:
            yield BadRow(name, one.line, fault, excerpt(one.text))
        else:
            yield Record(one.fields[place], one.line, columns, one.fields)


def _chosen(name: str, there: Sequence[str], field: str | None, between: str = "") -> str:
    """Return the column of the texts; where it is not clear, an error lists those there are."""
    column = field
    if column is None:
        column = there[0] if len(there) == 1 else LEDE
        if column not in there:
            listed = excerpt(", ".join(map(repr, there))) or "none"
            doubt = "; if that is wrong, set --delimiter" if between else ""
            raise CorpusError(
                f"{name}: no column is called {LEDE!r}; name the column of the ledes with --field "
                f"(the columns are {listed}{between}{doubt})"
            )
    fault = column_fault(there, [column])
    if fault:
        raise CorpusError(f"{name}: {fault}{between}")
    return column


# --- JSON lines -----------------------------------------------------------------------------------


def _open_jsonl(name: str, lines: Iterator[bytes], field: str | None) -> Opened:
    first = next(lines, b"")
    records = _json_records(name, chain([first], lines), field)
    return Opened((), Dialect(line_end=line_end(first)), records)


def _json_records(
    name: str, lines: Iterable[bytes], field: str | None
) -> Iterator[Record | BadRow]:
    column = ""
    for number, raw in enumerate(lines, start=1):
        line = raw.removesuffix(b"\r")
        if not line or line.isspace():
            continue
        try:
            row = json_object(decode(line))
            column = column or _chosen(name, tuple(row), field)
            (text,) = json_texts(row, [column])
            yield Record(text, number, tuple(row), tuple(row.values()))
        except UnicodeDecodeError as error:
            yield BadRow(name, number, encoding_reason(error), excerpt(line))
        except ValueError as error:
            yield BadRow(name, number, str(error), excerpt(line))


# --- Parquet --------------------------------------------------------------------------------------


def _read_parquet(path: Path, field: str | None, *, whole: bool) -> Iterator[Record | BadRow]:
    line = 0
    with _opened(path, field) as (table, name):
        for batch in table.iter_batches(BATCH_ROWS, columns=None if whole else [name]):
            columns = tuple(batch.schema.names)
            place = columns.index(name)
            texts = [number for number, kind in enumerate(batch.schema.types) if is_text(kind)]
            for values in zip(*_batch_values(path, batch), strict=True):
                line += 1
                text = values[place] or ""
                if any(isinstance(values[number], bytes) for number in texts):
                    yield BadRow(str(path), line, "not UTF-8", excerpt(text))
                else:
                    yield Record(text, line, columns, values)


@contextmanager
def _opened(path: Path, field: str | None) -> Iterator[tuple["pq.ParquetFile", str]]:
    """Give a Parquet file and the column of its texts; what is wrong with it is one sentence."""
    import pyarrow as pa  # here, so that text can be read without it
    import pyarrow.parquet as pq

    try:
        with (
            unpacked(path) as plain,
            pq.ParquetFile(plain, pre_buffer=False, buffer_size=1 << 20) as table,
        ):
            name = _chosen(str(path), table.schema_arrow.names, field)
            kind = table.schema_arrow.field(name).type
            if not is_text(kind):
                raise CorpusError(
                    f"{path}: the column {name!r} has values of type {kind}, not strings"
                )
            yield table, name
    except BrokenStream as broken:
        raise CorpusError(str(broken.row(path))) from None
    except (pa.ArrowException, OSError) as error:
        raise CorpusError(f"{path}: {unsound_parquet(error)}") from None


def _batch_values(path: Path, batch: "pa.RecordBatch") -> list[list[Any]]:
    """Return the values of each column."""
    import pyarrow as pa

    columns = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            columns.append(_values(column))
        except (pa.ArrowException, ValueError, OverflowError):
            raise CorpusError(
                f"{path}: the column {name!r} has the type {column.type}, which text cannot hold; "
                "write .parquet instead"
            ) from None
    return columns


def _values(column: "pa.Array") -> list[Any]:
    """Return the values of a column as JSON can hold them: times as text, no number as null."""
    import pyarrow as pa

    if is_text(column.type):
        return column_texts(column)
    if pa.types.is_floating(column.type):
        return [one if one is None or isfinite(one) else None for one in column.to_pylist()]
    if pa.types.is_temporal(column.type) or pa.types.is_decimal(column.type):
        column = column.cast(pa.string())
    return list(column.to_pylist())


def read_schema(path: Path, field: str | None) -> "pa.Schema":
    """Return the schema of a Parquet file that has this column of texts."""
    with _opened(path, field) as (table, _):
        return table.schema_arrow


def read_batches(path: Path, field: str | None) -> Iterator["pa.RecordBatch"]:
    """Yield the rows of a Parquet file that are records, with all their columns as they are."""
    with _opened(path, field) as (table, name):
        for batch in table.iter_batches(BATCH_ROWS):
            sound = [not isinstance(text, bytes) for text in column_texts(batch.column(name))]
            yield batch if all(sound) else batch.filter(sound)
