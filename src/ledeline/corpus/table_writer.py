"""Write rows as a table: Parquet, CSV, TSV or JSON lines."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path

from ledeline.core.atomic import atomic_write
from ledeline.core.errors import CorpusError
from ledeline.corpus.delimited import csv_line, tsv_line
from ledeline.corpus.formats import COMPRESSED_TOO, format_by_name, table_name_error
from ledeline.corpus.lines import COMPRESSION_SUFFIXES, is_encodable, json_line, write_lines
from ledeline.corpus.tables import BATCH_ROWS


def write_table(path: Path, rows: Iterable[Mapping[str, str]], columns: Sequence[str]) -> None:
    """Write rows as a table; the suffix of its name tells the format. The write is atomic.

    It is a ``CorpusError`` if the name does not end like that of a table, if a value does not fit
    the format, or if the folder cannot be written to.
    """
    file_format = format_by_name(path)
    compressed = path.suffix.lower() in COMPRESSION_SUFFIXES
    if file_format in (None, "txt") or (file_format == "parquet" and compressed):
        raise table_name_error(path, f".parquet, or in .csv, .tsv or .jsonl {COMPRESSED_TOO}")
    values = _checked_values(path, rows, columns)
    with atomic_write(path) as part:
        match file_format:
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
