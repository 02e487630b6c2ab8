"""Texts from the outside world with the whole rows they stand in.

Where ``tables`` gives pairs to learn from, this gives records to write headlines for: a text, and
the other columns as they are, so that the same table can be written with a column added. A row that
cannot be used is a bad row and reading goes on; a file that cannot be used, or breaks off, is a
``CorpusError``.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ledeline.corpus import BadRow
from ledeline.corpus.lines import (
    BrokenStream,
    csv_records,
    decode,
    encoding_reason,
    excerpt,
    read_lines,
    table_suffix,
    tsv_records,
    unpacked,
)
from ledeline.corpus.lines import Record as Fields
from ledeline.corpus.tables import (
    BATCH_ROWS,
    TABLE_SUFFIXES,
    column_fault,
    column_texts,
    is_text,
    json_object,
    json_texts,
    record_fault,
    unknown_suffix,
    unsound_parquet,
    with_packed,
)
from ledeline.errors import CorpusError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

TEXT_SUFFIX: Final = ".txt"
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


def read_records(path: Path, field: str | None, *, whole: bool = True) -> Iterator[Record | BadRow]:
    """Yield the records of a file, in the format that the suffix of its name says.

    ``field`` names the column of the texts; with None that is ``lede``, or the only column. Without
    ``whole``, records may come without their other columns, where that saves reading them.
    """
    match table_suffix(path):
        case ".txt":
            records = _read_text(path, field)
        case ".csv":
            records = _read_delimited(path, csv_records(path), field)
        case ".tsv":
            records = _read_delimited(path, tsv_records(path), field)
        case ".jsonl":
            records = _read_jsonl(path, field)
        case ".parquet":
            records = _read_parquet(path, field, whole=whole)
        case _:
            raise unknown_suffix(path, with_packed((TEXT_SUFFIX, *TABLE_SUFFIXES)))
    return _until_break(path, records)


def read_columns(path: Path, field: str | None) -> tuple[str, ...]:
    """Return the columns of a file, those of the first object for JSON lines.

    What is wrong with the file as a whole, such as a missing column, is a ``CorpusError``.
    """
    match table_suffix(path):
        case ".csv":
            return _header(path, csv_records(path), field)
        case ".tsv":
            return _header(path, tsv_records(path), field)
        case ".parquet":
            return tuple(read_schema(path, field).names)
    records = read_records(path, field)
    if table_suffix(path) == TEXT_SUFFIX:
        next(records, None)  # whether there is such a file
        return (SOURCE,)
    first = next((one for one in records if isinstance(one, Record)), None)
    return first.columns if first else ()


def _until_break(path: Path, records: Iterator[Record | BadRow]) -> Iterator[Record | BadRow]:
    """Yield records; an empty file of lines has none, and any other break is an error."""
    try:
        yield from records
    except BrokenStream as broken:
        if broken.line or table_suffix(path) not in (TEXT_SUFFIX, ".jsonl"):
            raise CorpusError(str(broken.row(path))) from None


def _chosen(path: Path, there: Sequence[str], field: str | None) -> str:
    """Return the column of the texts; where it is not clear, an error lists those there are."""
    name = field
    if name is None:
        name = there[0] if len(there) == 1 else LEDE
        if name not in there:
            listed = excerpt(", ".join(map(repr, there))) or "none"
            raise CorpusError(
                f"{path}: no column is called {LEDE!r}; name the one with the texts with --field "
                f"(the columns are {listed})"
            )
    fault = column_fault(there, [name])
    if fault:
        raise CorpusError(f"{path}: {fault}")
    return name


def _read_text(path: Path, field: str | None) -> Iterator[Record | BadRow]:
    if field is not None:
        raise CorpusError(f"{path}: a text file has no column {field!r}; leave --field out")
    for number, line in enumerate(read_lines(path), start=1):
        yield line_record(str(path), number, line)


def _header(path: Path, found: Iterator[Fields], field: str | None) -> tuple[str, ...]:
    try:
        header = next(found, None)
    except BrokenStream as broken:
        raise CorpusError(str(broken.row(path))) from None
    if header is None:
        raise CorpusError(f"{path}: there is no header row, only blank lines")
    if header.fault:
        raise CorpusError(f"{path}: line {header.line}: {header.fault}")
    _chosen(path, header.fields, field)
    return tuple(header.fields)


def _read_delimited(
    path: Path, found: Iterator[Fields], field: str | None
) -> Iterator[Record | BadRow]:
    columns = _header(path, found, field)
    place = columns.index(_chosen(path, columns, field))
    for one in found:
        fault = record_fault(one, len(columns))
        if fault:
            yield BadRow(str(path), one.line, fault, excerpt(one.text))
        else:
            yield Record(one.fields[place], one.line, columns, one.fields)


def _read_jsonl(path: Path, field: str | None) -> Iterator[Record | BadRow]:
    name = ""
    for number, line in enumerate(read_lines(path), start=1):
        if not line or line.isspace():
            continue
        try:
            row = json_object(decode(line))
            name = name or _chosen(path, tuple(row), field)
            (text,) = json_texts(row, [name])
            yield Record(text, number, tuple(row), tuple(row.values()))
        except UnicodeDecodeError as error:
            yield BadRow(str(path), number, encoding_reason(error), excerpt(line))
        except ValueError as error:
            yield BadRow(str(path), number, str(error), excerpt(line))


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
            name = _chosen(path, table.schema_arrow.names, field)
            kind = table.schema_arrow.field(name).type
            if not is_text(kind):
                raise CorpusError(f"{path}: the column {name!r} is not of strings but of {kind}")
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
                f"{path}: the column {name!r} is of {column.type}, which text cannot hold; "
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
