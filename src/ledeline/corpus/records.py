"""Records to write headlines for: a text, and the row of the table that it comes from.

The other columns are kept, so that the same table can be written with a column added. After an
invalid row, reading goes on; a file that cannot be read, or is truncated, is a ``CorpusError``.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ledeline.core.errors import CorpusError
from ledeline.corpus import InvalidRow
from ledeline.corpus.delimited import (
    AMBIGUOUS_DELIMITER,
    DelimitedTable,
    Dialect,
    line_end,
    open_csv,
    open_tsv,
)
from ledeline.corpus.formats import FileFormat, input_format
from ledeline.corpus.lines import (
    BYTE_ORDER_MARK,
    FileReadError,
    RawLines,
    decode,
    decompressed,
    encoding_error,
    excerpt,
    read_blocks,
)
from ledeline.corpus.tables import (
    BATCH_ROWS,
    NO_HEADER,
    column_error,
    column_strings,
    is_string_type,
    json_object,
    json_strings,
    parquet_error,
    row_error,
)

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

LEDE: Final = "lede"  # the column that is read if none is named
SOURCE: Final = "source"  # the column of a text that does not come from a table


class Record(NamedTuple):
    """A text and the row that it comes from."""

    text: str
    line: int  # where it starts, counted from 1; in Parquet the number of the row
    columns: tuple[str, ...]
    values: Sequence[object]  # one for each column: a JSON value, or bytes

    @property
    def row(self) -> dict[str, object]:
        """The values by column."""
        return dict(zip(self.columns, self.values, strict=True))


def text_record(text: str, line: int) -> Record:
    """Return the record of a text that does not come from a table."""
    return Record(text, line, (SOURCE,), (text,))


def line_record(file: str, number: int, line: bytes) -> Record | InvalidRow:
    """Return the record of a line of text, which may be empty."""
    try:
        return text_record(decode(line), number)
    except UnicodeDecodeError as error:
        return InvalidRow(file, number, encoding_error(error), excerpt(line))


class InputLayout(NamedTuple):
    """The format of a file or a stream, and the column of the texts."""

    file_format: FileFormat = "txt"
    field: str | None = None  # the column of the texts; None: ``lede``, or the only column
    delimiter: str | None = None  # of CSV; None: detected from the header

    @property
    def texts(self) -> list[str]:
        """The column that must exist."""
        return [self.field or LEDE]


class OpenedInput(NamedTuple):
    """Lines whose header, if they have one, has been read."""

    columns: tuple[str, ...]  # empty for JSON lines, where each object has its own
    dialect: Dialect
    records: Iterator[Record | InvalidRow]


def read_records(
    path: Path, field: str | None, *, whole: bool = True, layout: InputLayout | None = None
) -> Iterator[Record | InvalidRow]:
    """Yield the records of a file; the suffix of its name tells the format.

    ``field`` names the column of the texts; None stands for ``lede``, or the only column. Without
    ``whole``, records may lack their other columns if that saves reading them. A ``layout``
    replaces the suffix and ``field``.
    """
    layout = layout or InputLayout(input_format(path), field)
    if layout.file_format == "parquet":
        return _read_parquet(path, layout.field, whole=whole)
    return _records_of_lines(path, layout)


def read_column_names(path: Path, field: str | None) -> tuple[str, ...]:
    """Return the columns of a file, for JSON lines those of the first object.

    An error of the whole file, such as a missing column, is a ``CorpusError``.
    """
    return read_header(path, InputLayout(input_format(path), field))[0]


def read_header(path: Path, layout: InputLayout) -> tuple[tuple[str, ...], Dialect]:
    """Return the columns of a file as ``read_column_names`` does, and its dialect."""
    if layout.file_format == "parquet":
        return tuple(read_schema(path, layout.field).names), Dialect()
    lines = RawLines(read_blocks(path))
    try:
        columns, dialect, records = open_lines(str(path), lines, layout)
        if layout.file_format == "txt":
            next(records, None)  # to see whether the file exists
        if layout.file_format == "jsonl":
            first = next((one for one in records if isinstance(one, Record)), None)
            columns = first.columns if first else ()
    except FileReadError as broken:
        _check_truncation(path, layout, broken)
        return ((SOURCE,) if layout.file_format == "txt" else ()), Dialect()
    return columns, with_byte_order_mark(dialect, lines)


def with_byte_order_mark(dialect: Dialect, lines: RawLines) -> Dialect:
    """Return the dialect with the byte order mark that the lines begin with, if any."""
    return dialect._replace(
        byte_order_mark=BYTE_ORDER_MARK.decode() if lines.has_byte_order_mark else ""
    )


def _records_of_lines(path: Path, layout: InputLayout) -> Iterator[Record | InvalidRow]:
    """Yield the records of lines; a truncated file is an error, an empty one may be allowed."""
    try:
        yield from open_lines(str(path), RawLines(read_blocks(path)), layout).records
    except FileReadError as broken:
        _check_truncation(path, layout, broken)


def _check_truncation(path: Path, layout: InputLayout, broken: FileReadError) -> None:
    """Raise an error for a truncated file, and for an empty one that needs a header."""
    if broken.line or layout.file_format not in ("txt", "jsonl"):
        raise CorpusError(str(broken.invalid_row(path))) from None


def open_lines(name: str, lines: Iterable[bytes], layout: InputLayout) -> OpenedInput:
    """Read the header of lines, if their format has one."""
    match layout.file_format:
        case "txt":
            return OpenedInput((SOURCE,), Dialect(), _text_records(name, lines, layout.field))
        case "jsonl":
            return _open_jsonl(name, iter(lines), layout.field)
        case "tsv":
            return _open_delimited(name, open_tsv(lines), layout)
        case "csv":
            return _open_delimited(name, open_csv(lines, layout.texts, layout.delimiter), layout)
    raise AssertionError(f"{layout.file_format} does not consist of lines")


# --- text -----------------------------------------------------------------------------------------


def _text_records(
    name: str, lines: Iterable[bytes], field: str | None
) -> Iterator[Record | InvalidRow]:
    if field is not None:
        raise CorpusError(
            f"{name}: plain text has no column {field!r}; leave --field out, or set the format "
            "of a table with --format"
        )
    for number, line in enumerate(lines, start=1):
        yield line_record(name, number, line.removesuffix(b"\r"))


# --- CSV and TSV ----------------------------------------------------------------------------------


def _open_delimited(name: str, table: DelimitedTable, layout: InputLayout) -> OpenedInput:
    header = table.header
    if header is None:
        raise CorpusError(f"{name}: {NO_HEADER}")
    if header.error:
        ambiguous = header.error.startswith(AMBIGUOUS_DELIMITER)
        advice = "; set it with --delimiter" if ambiguous else ""
        raise CorpusError(f"{name}: line {header.line}: {header.error}{advice}")
    columns = tuple(header.fields)
    place = columns.index(_text_column(name, columns, layout.field, table.column_note))
    dialect = Dialect(table.delimiter, table.line_end)
    return OpenedInput(columns, dialect, _delimited_records(name, table, columns, place))


def _delimited_records(
    name: str, table: DelimitedTable, columns: tuple[str, ...], place: int
) -> Iterator[Record | InvalidRow]:
    for row in table.rows:
        error = row_error(row, len(columns))
        if error:
            yield InvalidRow(name, row.line, error, excerpt(row.text))
        else:
            yield Record(row.fields[place], row.line, columns, row.fields)


def _text_column(name: str, there: Sequence[str], field: str | None, note: str = "") -> str:
    """Return the column of the texts; if there is none, an error lists the columns."""
    column = field
    if column is None:
        column = there[0] if len(there) == 1 else LEDE
        if column not in there:
            listed = excerpt(", ".join(map(repr, there))) or "none"
            doubt = "; if that is wrong, set --delimiter" if note else ""
            raise CorpusError(
                f"{name}: no column is called {LEDE!r}; name the column of the ledes with --field "
                f"(the columns are {listed}{note}{doubt})"
            )
    error = column_error(there, [column])
    if error:
        raise CorpusError(f"{name}: {error}{note}")
    return column


# --- JSON lines -----------------------------------------------------------------------------------


def _open_jsonl(name: str, lines: Iterator[bytes], field: str | None) -> OpenedInput:
    first = next(lines, b"")
    records = _json_records(name, chain([first], lines), field)
    return OpenedInput((), Dialect(line_end=line_end(first)), records)


def _json_records(
    name: str, lines: Iterable[bytes], field: str | None
) -> Iterator[Record | InvalidRow]:
    column = ""
    for number, raw in enumerate(lines, start=1):
        line = raw.removesuffix(b"\r")
        if not line or line.isspace():
            continue
        try:
            row = json_object(decode(line))
            column = column or _text_column(name, tuple(row), field)
            (text,) = json_strings(row, [column])
            yield Record(text, number, tuple(row), tuple(row.values()))
        except UnicodeDecodeError as error:
            yield InvalidRow(name, number, encoding_error(error), excerpt(line))
        except ValueError as error:
            yield InvalidRow(name, number, str(error), excerpt(line))


# --- Parquet --------------------------------------------------------------------------------------


def _read_parquet(path: Path, field: str | None, *, whole: bool) -> Iterator[Record | InvalidRow]:
    line = 0
    with _opened(path, field) as (table, name):
        for batch in table.iter_batches(BATCH_ROWS, columns=None if whole else [name]):
            columns = tuple(batch.schema.names)
            place = columns.index(name)
            texts = [
                number
                for number, data_type in enumerate(batch.schema.types)
                if is_string_type(data_type)
            ]
            for values in zip(*_batch_values(path, batch), strict=True):
                line += 1
                text = values[place] or ""
                if any(isinstance(values[number], bytes) for number in texts):
                    yield InvalidRow(str(path), line, "not UTF-8", excerpt(text))
                else:
                    yield Record(text, line, columns, values)


@contextmanager
def _opened(path: Path, field: str | None) -> Iterator[tuple["pq.ParquetFile", str]]:
    """Open a Parquet file and find the column of its texts."""
    import pyarrow as pa  # imported here, so that text files can be read without it
    import pyarrow.parquet as pq

    try:
        with (
            decompressed(path) as plain,
            pq.ParquetFile(plain, pre_buffer=False, buffer_size=1 << 20) as table,
        ):
            name = _text_column(str(path), table.schema_arrow.names, field)
            data_type = table.schema_arrow.field(name).type
            if not is_string_type(data_type):
                raise CorpusError(
                    f"{path}: the column {name!r} has values of type {data_type}, not strings"
                )
            yield table, name
    except FileReadError as broken:
        raise CorpusError(str(broken.invalid_row(path))) from None
    except (pa.ArrowException, OSError) as error:
        raise CorpusError(f"{path}: {parquet_error(error)}") from None


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
    """Return the values of a column as JSON values: times as text, NaN and infinity as null."""
    import pyarrow as pa

    if is_string_type(column.type):
        return column_strings(column)
    if pa.types.is_floating(column.type):
        return [one if one is None or isfinite(one) else None for one in column.to_pylist()]
    if pa.types.is_temporal(column.type) or pa.types.is_decimal(column.type):
        column = column.cast(pa.string())
    return list(column.to_pylist())


def read_schema(path: Path, field: str | None) -> "pa.Schema":
    """Return the schema of a Parquet file, which must have the column of texts."""
    with _opened(path, field) as (table, _):
        return table.schema_arrow


def read_batches(path: Path, field: str | None) -> Iterator["pa.RecordBatch"]:
    """Yield the valid rows of a Parquet file, with all columns unchanged."""
    with _opened(path, field) as (table, name):
        for batch in table.iter_batches(BATCH_ROWS):
            valid = [not isinstance(text, bytes) for text in column_strings(batch.column(name))]
            yield batch if all(valid) else batch.filter(valid)
