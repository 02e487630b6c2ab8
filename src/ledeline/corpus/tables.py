"""Pairs from tables: Parquet, CSV, TSV and JSON lines, each also packed as ``.gz`` or ``.zst``."""

import datetime
import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ledeline.core.atomic import atomic_write
from ledeline.core.errors import CorpusError
from ledeline.corpus import BadHeader, BadRow, Pair, Row
from ledeline.corpus.delimited import Delimited, Record, csv_line, open_csv, open_tsv, tsv_line
from ledeline.corpus.kinds import PACKED_TOO, Kind, named_kind, table_kind, unknown_table
from ledeline.corpus.lines import (
    COMPRESSION_SUFFIXES,
    BrokenStream,
    RawLines,
    decode,
    encoding_reason,
    excerpt,
    is_encodable,
    json_line,
    read_blocks,
    read_lines,
    unpacked,
    write_lines,
)

if TYPE_CHECKING:
    import pyarrow as pa

NO_COLUMN: Final = "there is no column"  # so the reason begins where one is missing
NO_HEADER: Final = "there is no header row, only blank lines"
BATCH_ROWS: Final = 16_384

_ISO_DAY: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?![0-9])")
_UNIX_EPOCH: Final = datetime.date(1970, 1, 1).toordinal()


class Columns(NamedTuple):
    """Where in a table the parts of a pair stand; without a date column dates are None."""

    lede: str
    headline: str
    date: str | None

    @property
    def named(self) -> list[str]:
        """The columns to read."""
        return [name for name in self if name is not None]


def read_table(
    path: Path, *, lede: str, headline: str, date: str | None, delimiter: str | None = None
) -> Iterator[Row]:
    """Yield the rows of a table, in the format that the suffix of its name says.

    ``lede``, ``headline`` and ``date`` name columns, which then must be there; with None for
    ``date`` no dates are wanted. ``delimiter`` is that of CSV; with None it is found by the header.
    A file that cannot be opened, or is no table by its name, is a ``CorpusError``.
    """
    columns = Columns(lede, headline, date)
    match table_kind(path):
        case "parquet":
            rows = _read_parquet(path, columns)
        case "jsonl":
            rows = _read_jsonl(path, columns)
        case kind:
            rows = _read_delimited(path, columns, kind, delimiter)
    return _until_break(path, rows)


def _until_break(path: Path, rows: Iterator[Row]) -> Iterator[Row]:
    """Yield rows; where the file breaks off or is empty, a bad row is the last."""
    try:
        yield from rows
    except BrokenStream as broken:
        yield broken.row(path)


def column_fault(there: Sequence[str], names: list[str]) -> str:
    """Say which needed column is missing or there twice, or nothing."""
    for name in names:
        if there.count(name) > 1:
            return f"the column {name!r} occurs {there.count(name)} times"
        if name not in there:
            return _missing(tuple(there), name)
    return ""


@lru_cache(maxsize=64)
def _missing(there: tuple[str, ...], name: str) -> str:
    nearest = difflib.get_close_matches(name, there, n=1, cutoff=0.5)
    hint = f" (the nearest is {excerpt(nearest[0])!r})" if nearest else ""
    listed = excerpt(", ".join(map(repr, there))) or "none"
    return f"{NO_COLUMN} {name!r}{hint}; the columns are {listed}"


@lru_cache(maxsize=4096)
def parse_date(text: str) -> datetime.date | None:
    """Return the day an ISO date or timestamp begins with, None for nothing; else ValueError."""
    if not text or text.isspace():
        return None
    match = _ISO_DAY.match(text.strip())
    try:
        if match:
            return datetime.date.fromisoformat(match[1])
    except ValueError:
        pass
    raise ValueError(f"{excerpt(text)!r} is not a date in the form YYYY-MM-DD")


def _read_delimited(
    path: Path, columns: Columns, kind: Kind, delimiter: str | None
) -> Iterator[Row]:
    file, lines = str(path), RawLines(read_blocks(path))
    table = open_tsv(lines) if kind == "tsv" else open_csv(lines, columns.named, delimiter)
    if table.header is None:
        yield BadHeader(file, 1, NO_HEADER, "")
        return
    fault = header_fault(table, table.header, columns.named)
    if fault:
        yield BadHeader(file, table.header.line, fault, excerpt(table.header.text))
        return
    fields = table.header.fields
    places = [fields.index(name) for name in columns.named]
    for record in table.records:
        yield _delimited_row(file, record, places, len(fields))


def header_fault(table: Delimited, header: Record, names: list[str]) -> str:
    """Say why the header of a table cannot be used, or nothing."""
    if header.fault:
        return header.fault
    fault = column_fault(header.fields, names)
    return fault and fault + table.between


def _delimited_row(file: str, record: Record, places: list[int], width: int) -> Row:
    fault = record_fault(record, width)
    if not fault:
        lede, headline, *date = [record.fields[place] for place in places]
        try:
            return Pair(lede, headline, parse_date(date[0]) if date else None, file, record.line)
        except ValueError as error:
            fault = str(error)
    return BadRow(file, record.line, fault, excerpt(record.text))


def record_fault(record: Record, width: int) -> str:
    """Say why a record of a delimited file cannot be used, or nothing."""
    if record.fault or len(record.fields) == width:
        return record.fault
    num_fields = len(record.fields)
    return f"{num_fields} field{'s' * (num_fields > 1)}, where the header has {width}"


def _read_jsonl(path: Path, columns: Columns) -> Iterator[Row]:
    file = str(path)
    for number, line in enumerate(read_lines(path), start=1):
        if not line or line.isspace():
            continue
        try:
            lede, headline, *date = json_texts(json_object(decode(line)), columns.named)
            day = parse_date(date[0]) if date else None
            yield Pair(lede, headline, day, file, number)
        except UnicodeDecodeError as error:
            yield BadRow(file, number, encoding_reason(error), excerpt(line))
        except ValueError as error:
            yield BadRow(file, number, str(error), excerpt(line))


def json_texts(record: Mapping[str, object], names: Sequence[str]) -> list[str]:
    """Return the named texts of a JSON object, empty for null; a ValueError says what is wrong."""
    texts = []
    for name in names:
        if name not in record:
            raise ValueError(_missing(tuple(islice(record, 50)), name))
        value = record[name]
        if value is not None and not isinstance(value, str):
            raise ValueError(f"the value of {name!r} is {_named(value)} but must be a string")
        texts.append(value or "")
    return texts


def json_object(line: str) -> dict[str, Any]:
    """Return the JSON object that a line is; a ValueError says what is wrong."""
    try:
        record = json.loads(line)
    except RecursionError:
        raise ValueError("not usable JSON: it is nested too deeply") from None
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at")
        raise ValueError(f"not JSON: {what} at character {error.pos + 1}") from None
    except ValueError as error:  # a whole number of thousands of digits
        raise ValueError(f"not usable JSON: {str(error).partition(';')[0]}") from None
    if not isinstance(record, dict):
        raise ValueError(f"the line is {_named(record)} but must be an object")
    return record


def _named(value: object) -> str:
    """What JSON calls a value, which is no string where that is asked."""
    names = {bool: "true or false", dict: "an object", list: "a list", str: "a string"}
    return "null" if value is None else names.get(type(value), "a number")


def _read_parquet(path: Path, columns: Columns) -> Iterator[Row]:
    """Yield the rows of a Parquet file, a batch in memory at a time."""
    import pyarrow as pa  # here, so that text can be read without it
    import pyarrow.parquet as pq

    file, line = str(path), 0
    with unpacked(path) as plain:
        try:
            with pq.ParquetFile(plain, pre_buffer=False, buffer_size=1 << 20) as table:
                fault = _schema_fault(table.schema_arrow, columns)
                if fault:
                    yield BadHeader(file, 0, fault, "")
                    return
                for batch in table.iter_batches(BATCH_ROWS, columns=columns.named):
                    yield from _batch_rows(file, batch, columns, line + 1)
                    line += len(batch)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            yield BadRow(file, line + 1 if line else 0, unsound_parquet(error), "")


def unsound_parquet(error: Exception) -> str:
    """Say in one line what pyarrow found wrong with a file."""
    return f"not a valid Parquet file: {' '.join(str(error).split()).rstrip('.')}"


def _schema_fault(schema: "pa.Schema", columns: Columns) -> str:
    """Say which column is missing or of a type that cannot be used, or nothing."""
    fault = column_fault(schema.names, columns.named)
    for name in () if fault else columns.named:
        kind = schema.field(name).type
        is_day = name == columns.date and _is_day(kind)
        if not is_day and not is_text(kind):
            fault = f"the column {name!r} has values of type {kind}, not strings"
    return fault


def is_text(kind: "pa.DataType") -> bool:
    """Whether a column of this type is of strings."""
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    checks = (types.is_string, types.is_large_string, types.is_string_view, types.is_null)
    return any(check(kind) for check in checks)


def _is_day(kind: "pa.DataType") -> bool:
    import pyarrow.types as types

    return bool(types.is_date(kind) or types.is_timestamp(kind))


def _batch_rows(file: str, batch: "pa.RecordBatch", columns: Columns, first: int) -> Iterator[Row]:
    ledes = _texts(batch.column(columns.lede))
    headlines = _texts(batch.column(columns.headline))
    dates: list[datetime.date | str | None] = [None] * len(batch)
    if columns.date is not None:
        dates = _dates(batch.column(columns.date))
    rows = zip(ledes, headlines, dates, strict=True)
    for line, (lede, headline, date) in enumerate(rows, start=first):
        if isinstance(date, str):
            yield BadRow(file, line, date, excerpt(lede))
        elif isinstance(lede, bytes) or isinstance(headline, bytes):
            yield BadRow(file, line, "not UTF-8", excerpt(lede) + "\t" + excerpt(headline))
        else:
            yield Pair(lede, headline, date, file, line)


def _texts(column: "pa.Array") -> list[str | bytes]:
    """Return the strings of a column, empty for null, and as bytes those that are not UTF-8."""
    return ["" if value is None else value for value in column_texts(column)]


def column_texts(column: "pa.Array") -> list[str | bytes | None]:
    """Return the strings of a column, and as bytes those that are not UTF-8."""
    import pyarrow as pa

    if not pa.types.is_string(column.type):  # a dictionary, null, or longer offsets
        column = column.cast(pa.large_string())
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        return [_text_or_bytes(value) for value in column.cast(pa.large_binary()).to_pylist()]


def _text_or_bytes(value: bytes | None) -> str | bytes | None:
    try:
        return value if value is None else decode(value)
    except UnicodeDecodeError:
        return value


def _dates(column: "pa.Array") -> list[datetime.date | str | None]:
    """Return the days of a column, a string that says why for those that are none.

    Days repeat, so each different one of the batch is worked out once.
    """
    import pyarrow as pa

    has_days = _is_day(column.type)
    if has_days:
        column = column.cast(pa.date32(), safe=False).cast(pa.int32())
    encoded = column.dictionary_encode()
    values = encoded.dictionary.to_pylist() if has_days else _texts(encoded.dictionary)
    days = [_day_or_fault(value) for value in values]
    return [None if place is None else days[place] for place in encoded.indices.to_pylist()]


def _day_or_fault(value: int | str | bytes) -> datetime.date | str | None:
    """Turn the days since 1970, or the text of a date, into a date."""
    try:
        match value:
            case int():
                return datetime.date.fromordinal(_UNIX_EPOCH + value)
            case str():
                return parse_date(value)
            case bytes():
                return "the date is not UTF-8"
    except OverflowError:
        return "the date is outside the years 1 to 9999"
    except ValueError as error:
        return str(error)


def write_table(path: Path, rows: Iterable[Mapping[str, str]], columns: Sequence[str]) -> None:
    """Write rows as a table in the format its name says; it is there whole or not at all.

    A name that is of no table, a value that does not fit the format and a folder that cannot be
    written to are a ``CorpusError``.
    """
    kind, packed = named_kind(path), path.suffix.lower() in COMPRESSION_SUFFIXES
    if kind in (None, "txt") or (kind == "parquet" and packed):
        raise unknown_table(path, f".parquet, or in .csv, .tsv or .jsonl {PACKED_TOO}")
    values = _checked_values(path, rows, columns)
    with atomic_write(path) as part:
        match kind:
            case "parquet":
                _write_parquet(part, values, columns)
            case "csv":
                write_lines(part, _csv_lines(values, columns))
            case "tsv":
                write_lines(part, _tsv_lines(path, values, columns))
            case "jsonl":
                write_lines(part, _jsonl_lines(values, columns))


def _checked_values(
    path: Path, rows: Iterable[Mapping[str, str]], columns: Sequence[str]
) -> Iterator[list[str]]:
    for number, row in enumerate(rows, start=1):
        values = [row[column] for column in columns]
        if not all(map(is_encodable, values)):
            raise CorpusError(f"{path}: row {number} has half a character (a lone surrogate)")
        yield values


def _write_parquet(path: Path, rows: Iterator[list[str]], columns: Sequence[str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(column, pa.string()) for column in columns])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        while batch := list(islice(rows, BATCH_ROWS)):
            arrays = [pa.array(values, pa.string()) for values in zip(*batch, strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=schema))


def _csv_lines(rows: Iterator[list[str]], columns: Sequence[str]) -> Iterator[str]:
    return map(csv_line, chain([columns], rows))


def _tsv_lines(path: Path, rows: Iterator[list[str]], columns: Sequence[str]) -> Iterator[str]:
    for number, values in enumerate(chain([columns], rows)):
        try:
            yield tsv_line(values)
        except ValueError as error:
            place = f"row {number}" if number else "the header"
            raise CorpusError(f"{path}: {place} {error}") from None


def _jsonl_lines(rows: Iterator[list[str]], columns: Sequence[str]) -> Iterator[str]:
    return (json_line(dict(zip(columns, values, strict=True))) for values in rows)
