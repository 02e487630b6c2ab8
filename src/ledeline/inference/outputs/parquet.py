"""A Parquet table. Nothing can be appended to one, so results first go to a journal.

The journal is a hidden file of JSON lines beside the table. A resumed run continues it.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ledeline.core.atomic import atomic_write
from ledeline.core.errors import CorpusError
from ledeline.corpus import InvalidRow
from ledeline.corpus.inputs import FileInput, Input
from ledeline.corpus.records import SOURCE, Record, read_batches, read_records, read_schema
from ledeline.corpus.tables import BATCH_ROWS, parquet_error
from ledeline.inference.outputs import RecordResult, ResumePoint
from ledeline.inference.outputs.added_columns import AddedColumn, refuse_taken
from ledeline.inference.outputs.line_formats import JournalLines
from ledeline.inference.outputs.resumable_file import ResumableFile, journal_path

if TYPE_CHECKING:
    import pyarrow as pa


class ParquetTable:
    """The table of the input with columns added; the other columns keep their types."""

    needs_whole_records: Final = False  # the input is read again at the end

    def __init__(self, path: Path, given: Input, added: Sequence[AddedColumn]) -> None:
        if given.file_format != "txt" and not given.is_repeatable:
            raise CorpusError(
                f"{path}: a table from {given.name} cannot become Parquet, because it would be "
                "read twice; name a file with --input, or write .jsonl"
            )
        refuse_taken(given.name, given.columns, added)
        self._path, self._given, self._added = path, given, added
        self._journal = ResumableFile(journal_path(path), JournalLines(added))
        self._input_schema = _schema(given)
        self._schema = _with_columns(given, self._input_schema, added)
        self._is_complete = False

    def resume(self, records: Iterator[Record | InvalidRow]) -> ResumePoint:
        """Continue the journal; if the table exists, it must be complete."""
        if not self._path.exists():
            return self._journal.resume(records)
        num_done = num_valid = 0
        for record in records:
            num_done += 1
            num_valid += isinstance(record, Record)
        if num_valid != _num_rows(self._path):
            raise CorpusError(
                f"{self._path} has {_num_rows(self._path):,} rows but the input has {num_valid:,}, "
                "so --resume cannot continue it; name another output"
            )
        self._is_complete = True
        return ResumePoint(num_done, iter(()))

    def write(self, results: Sequence[RecordResult]) -> None:
        """Append to the journal."""
        self._journal.write(results)

    def finish(self) -> None:
        """Write the table from the input and the journal."""
        if not self._is_complete:
            self._journal.finish()
            self._write_table()
        journal_path(self._path).unlink(missing_ok=True)

    def close(self) -> None:
        """Close the journal."""
        self._journal.close()

    def _write_table(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        results = self._journal_rows()
        with (
            atomic_write(self._path) as part,
            pq.ParquetWriter(part, self._schema, compression="zstd") as writer,
        ):
            for batch in self._batches():
                rows = list(islice(results, len(batch)))
                if len(rows) != len(batch):
                    raise self._input_changed()
                new = [
                    pa.array([row[one.key] for row in rows], one.arrow_type())
                    for one in self._added
                ]
                writer.write_batch(pa.record_batch([*batch.columns, *new], schema=self._schema))
            if next(results, None) is not None:
                raise self._input_changed()

    def _input_changed(self) -> CorpusError:
        return CorpusError(
            f"{self._given.name} changed while it was read: it has another number of records; the "
            f"results are in {journal_path(self._path)}"
        )

    def _journal_rows(self) -> Iterator[dict[str, Any]]:
        return (record.row for record in _valid(read_records(journal_path(self._path), SOURCE)))

    def _batches(self) -> Iterator["pa.RecordBatch"]:
        """The table without the new columns."""
        given = self._given
        if not isinstance(given, FileInput) or given.file_format == "txt":
            rows: Iterator[Sequence[Any]] = ((row[SOURCE],) for row in self._journal_rows())
        elif given.file_format == "parquet":
            yield from read_batches(given.path, given.field)
            return
        else:
            records = _valid(given.records(whole=True))
            rows = (_in_order(record, self._input_schema.names) for record in records)
        while chunk := list(islice(rows, BATCH_ROWS)):
            yield _batch(chunk, self._input_schema)


def _batch(rows: list[Sequence[Any]], schema: "pa.Schema") -> "pa.RecordBatch":
    import pyarrow as pa

    columns = zip(*rows, strict=True)
    arrays = [pa.array(values, kind) for values, kind in zip(columns, schema.types, strict=True)]
    return pa.record_batch(arrays, names=schema.names)


def _valid(records: Iterator[Record | InvalidRow]) -> Iterator[Record]:
    return (record for record in records if isinstance(record, Record))


def _in_order(record: Record, names: Sequence[str]) -> Sequence[Any]:
    """The values of the named columns; null where a JSON object has none."""
    if record.columns == tuple(names):
        return record.values
    row = record.row
    return [row.get(name) for name in names]


def _num_rows(path: Path) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return int(pq.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError) as error:
        raise CorpusError(f"{path}: {parquet_error(error)}; name another output") from None


# --- the types of the columns -------------------------------------------------------------------


def _schema(given: Input) -> "pa.Schema":
    """The columns of the input with their types; JSON lines are read through to find these."""
    import pyarrow as pa

    if isinstance(given, FileInput):
        match given.file_format:
            case "parquet":
                return read_schema(given.path, given.field)
            case "jsonl":
                return _inferred_schema(given)
    return pa.schema([(name, pa.string()) for name in given.columns])


def _inferred_schema(given: FileInput) -> "pa.Schema":
    import pyarrow as pa

    schema, records = pa.schema([]), _valid(given.records(whole=True))
    while chunk := list(islice(records, BATCH_ROWS)):
        names = list(dict.fromkeys(name for record in chunk for name in record.columns))
        columns = zip(*(_in_order(record, names) for record in chunk), strict=True)
        for name, values in zip(names, columns, strict=True):
            try:
                found = pa.schema([(name, pa.array(values).type)])
                schema = pa.unify_schemas([schema, found], promote_options="permissive")
            except (pa.ArrowException, TypeError, ValueError, OverflowError):
                raise CorpusError(
                    f"{given.name}: lines {chunk[0].line} to {chunk[-1].line}: the values of "
                    f"{name!r} have different types, and Parquet needs one; write .jsonl instead"
                ) from None
    return schema


def _with_columns(given: Input, schema: "pa.Schema", added: Sequence[AddedColumn]) -> "pa.Schema":
    """Add the new columns, and check that Parquet can hold the others."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    refuse_taken(given.name, schema.names, added)
    for one in added:
        schema = schema.append(pa.field(one.name, one.arrow_type()))
    try:
        pq.ParquetWriter(pa.BufferOutputStream(), schema).close()
    except pa.ArrowException as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise CorpusError(f"{given.name}: Parquet cannot hold this table: {reason}") from None
    return schema
