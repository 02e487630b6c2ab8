"""Pairs from tables: Parquet, CSV, TSV and JSON lines, also compressed as ``.gz`` or ``.zst``."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ledeline.core.patterns import lazy_pattern
from ledeline.corpus import InvalidHeader, InvalidRow, Pair, Row
from ledeline.corpus.delimited import (
    DelimitedRow,
    DelimitedTable,
    open_csv,
    open_tsv,
)
from ledeline.corpus.formats import (
    FileFormat,
    table_format,
)
from ledeline.corpus.lines import (
    FileReadError,
    RawLines,
    decode,
    decompressed,
    encoding_error,
    excerpt,
    read_blocks,
    read_lines,
)

if TYPE_CHECKING:
    import datetime

    import pyarrow as pa

MISSING_COLUMN: Final = "there is no column"  # the first words of that error
NO_HEADER: Final = "there is no header row, only blank lines"
BATCH_ROWS: Final = 16_384

_ISO_DAY: Final = lazy_pattern(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?![0-9])")
_UNIX_EPOCH: Final = 719_163  # the ordinal of 1970-01-01


class PairColumns(NamedTuple):
    """The columns of a table that make a pair; without a date column, dates are None."""

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
    """Yield the rows of a table; the suffix of its name tells the format.

    ``lede``, ``headline`` and ``date`` name columns, which must exist; with None for ``date``, no
    dates are read. ``delimiter`` is for CSV; with None it is detected from the header. A file that
    cannot be opened, or whose name does not end like that of a table, is a ``CorpusError``.
    """
    columns = PairColumns(lede, headline, date)
    match table_format(path):
        case "parquet":
            rows = _read_parquet(path, columns)
        case "jsonl":
            rows = _read_jsonl(path, columns)
        case file_format:
            rows = _read_delimited(path, columns, file_format, delimiter)
    return _with_read_error(path, rows)


def _with_read_error(path: Path, rows: Iterator[Row]) -> Iterator[Row]:
    """Yield the rows, and an invalid row at the end if the file is truncated or empty."""
    try:
        yield from rows
    except FileReadError as broken:
        yield broken.invalid_row(path)


def column_error(there: Sequence[str], names: list[str]) -> str:
    """Say which of the named columns is missing or occurs twice, or return ""."""
    for name in names:
        if there.count(name) > 1:
            return f"the column {name!r} occurs {there.count(name)} times"
        if name not in there:
            return _missing_column(tuple(there), name)
    return ""


@lru_cache(maxsize=64)
def _missing_column(there: tuple[str, ...], name: str) -> str:
    import difflib

    nearest = difflib.get_close_matches(name, there, n=1, cutoff=0.5)
    hint = f" (the nearest is {excerpt(nearest[0])!r})" if nearest else ""
    listed = excerpt(", ".join(map(repr, there))) or "none"
    return f"{MISSING_COLUMN} {name!r}{hint}; the columns are {listed}"


@lru_cache(maxsize=4096)
def parse_date(text: str) -> "datetime.date | None":
    """Return the day of an ISO date or timestamp, None for an empty text; else ValueError."""
    import datetime

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
    path: Path, columns: PairColumns, file_format: FileFormat, delimiter: str | None
) -> Iterator[Row]:
    file, lines = str(path), RawLines(read_blocks(path))
    table = open_tsv(lines) if file_format == "tsv" else open_csv(lines, columns.named, delimiter)
    if table.header is None:
        yield InvalidHeader(file, 1, NO_HEADER, "")
        return
    error = header_error(table, table.header, columns.named)
    if error:
        yield InvalidHeader(file, table.header.line, error, excerpt(table.header.text))
        return
    fields = table.header.fields
    places = [fields.index(name) for name in columns.named]
    for row in table.rows:
        yield _delimited_pair(file, row, places, len(fields))


def header_error(table: DelimitedTable, header: DelimitedRow, names: list[str]) -> str:
    """Say why the header of a table cannot be used, or return ""."""
    if header.error:
        return header.error
    error = column_error(header.fields, names)
    return error and error + table.column_note


def _delimited_pair(file: str, row: DelimitedRow, places: list[int], width: int) -> Row:
    reason = row_error(row, width)
    if not reason:
        lede, headline, *date = [row.fields[place] for place in places]
        try:
            return Pair(lede, headline, parse_date(date[0]) if date else None, file, row.line)
        except ValueError as error:
            reason = str(error)
    return InvalidRow(file, row.line, reason, excerpt(row.text))


def row_error(row: DelimitedRow, width: int) -> str:
    """Say why a row of a delimited file cannot be used, or return ""."""
    if row.error or len(row.fields) == width:
        return row.error
    num_fields = len(row.fields)
    return f"{num_fields} field{'s' * (num_fields > 1)}, but the header has {width}"


def _read_jsonl(path: Path, columns: PairColumns) -> Iterator[Row]:
    file = str(path)
    for number, line in enumerate(read_lines(path), start=1):
        if not line or line.isspace():
            continue
        try:
            lede, headline, *date = json_strings(json_object(decode(line)), columns.named)
            day = parse_date(date[0]) if date else None
            yield Pair(lede, headline, day, file, number)
        except UnicodeDecodeError as error:
            yield InvalidRow(file, number, encoding_error(error), excerpt(line))
        except ValueError as error:
            yield InvalidRow(file, number, str(error), excerpt(line))


def json_strings(record: Mapping[str, object], names: Sequence[str]) -> list[str]:
    """Return the named strings of a JSON object, "" for null; a ValueError says what is wrong."""
    texts = []
    for name in names:
        if name not in record:
            raise ValueError(_missing_column(tuple(islice(record, 50)), name))
        value = record[name]
        if value is not None and not isinstance(value, str):
            raise ValueError(f"the value of {name!r} is {_named(value)} but must be a string")
        texts.append(value or "")
    return texts


def json_object(line: str) -> dict[str, Any]:
    """Return the JSON object of a line; a ValueError says what is wrong."""
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
    """What a JSON value is called in a message."""
    names = {bool: "true or false", dict: "an object", list: "a list", str: "a string"}
    return "null" if value is None else names.get(type(value), "a number")


def _read_parquet(path: Path, columns: PairColumns) -> Iterator[Row]:
    """Yield the rows of a Parquet file, with one batch in memory at a time."""
    import pyarrow as pa  # imported here, so that text files can be read without it
    import pyarrow.parquet as pq

    file, line = str(path), 0
    with decompressed(path) as plain:
        try:
            with pq.ParquetFile(plain, pre_buffer=False, buffer_size=1 << 20) as table:
                error = _schema_error(table.schema_arrow, columns)
                if error:
                    yield InvalidHeader(file, 0, error, "")
                    return
                for batch in table.iter_batches(BATCH_ROWS, columns=columns.named):
                    yield from _batch_rows(file, batch, columns, line + 1)
                    line += len(batch)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            yield InvalidRow(file, line + 1 if line else 0, parquet_error(error), "")


def parquet_error(error: Exception) -> str:
    """Say in one line what pyarrow found wrong with a file."""
    return f"not a valid Parquet file: {' '.join(str(error).split()).rstrip('.')}"


def _schema_error(schema: "pa.Schema", columns: PairColumns) -> str:
    """Say which column is missing or has a wrong type, or return ""."""
    error = column_error(schema.names, columns.named)
    for name in () if error else columns.named:
        data_type = schema.field(name).type
        is_day = name == columns.date and _is_day(data_type)
        if not is_day and not is_string_type(data_type):
            error = f"the column {name!r} has values of type {data_type}, not strings"
    return error


def is_string_type(data_type: "pa.DataType") -> bool:
    """Whether a column of this type holds strings."""
    import pyarrow.types as types

    if types.is_dictionary(data_type):
        data_type = data_type.value_type
    checks = (types.is_string, types.is_large_string, types.is_string_view, types.is_null)
    return any(check(data_type) for check in checks)


def _is_day(data_type: "pa.DataType") -> bool:
    import pyarrow.types as types

    return bool(types.is_date(data_type) or types.is_timestamp(data_type))


def _batch_rows(
    file: str, batch: "pa.RecordBatch", columns: PairColumns, first: int
) -> Iterator[Row]:
    ledes = _strings(batch.column(columns.lede))
    headlines = _strings(batch.column(columns.headline))
    dates: list[datetime.date | str | None] = [None] * len(batch)
    if columns.date is not None:
        dates = _dates(batch.column(columns.date))
    rows = zip(ledes, headlines, dates, strict=True)
    for line, (lede, headline, date) in enumerate(rows, start=first):
        if isinstance(date, str):
            yield InvalidRow(file, line, date, excerpt(lede))
        elif isinstance(lede, bytes) or isinstance(headline, bytes):
            yield InvalidRow(file, line, "not UTF-8", excerpt(lede) + "\t" + excerpt(headline))
        else:
            yield Pair(lede, headline, date, file, line)


def _strings(column: "pa.Array") -> list[str | bytes]:
    """Return the strings of a column, "" for null; those that are not UTF-8 as bytes."""
    return ["" if value is None else value for value in column_strings(column)]


def column_strings(column: "pa.Array") -> list[str | bytes | None]:
    """Return the strings of a column; those that are not UTF-8 as bytes."""
    import pyarrow as pa

    if not pa.types.is_string(column.type):  # a dictionary, null, or longer offsets
        column = column.cast(pa.large_string())
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        return [_string_or_bytes(value) for value in column.cast(pa.large_binary()).to_pylist()]


def _string_or_bytes(value: bytes | None) -> str | bytes | None:
    try:
        return value if value is None else decode(value)
    except UnicodeDecodeError:
        return value


def _dates(column: "pa.Array") -> "list[datetime.date | str | None]":
    """Return the dates of a column, and an error message for each value that is not a date.

    Dates repeat, so each distinct value of the batch is parsed once.
    """
    import pyarrow as pa

    has_days = _is_day(column.type)
    if has_days:
        column = column.cast(pa.date32(), safe=False).cast(pa.int32())
    encoded = column.dictionary_encode()
    values = encoded.dictionary.to_pylist() if has_days else _strings(encoded.dictionary)
    days = [_date_or_error(value) for value in values]
    return [None if place is None else days[place] for place in encoded.indices.to_pylist()]


def _date_or_error(value: int | str | bytes) -> "datetime.date | str | None":
    """Convert the days since 1970, or the text of a date, to a date."""
    import datetime

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
