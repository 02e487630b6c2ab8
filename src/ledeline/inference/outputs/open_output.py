"""Open an output file in the format that its name says."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ledeline.core.atomic import exclusive_lock, explain_full_disk, make_folder
from ledeline.core.errors import ConfigError, CorpusError
from ledeline.core.progress import Progress, no_progress, track_progress
from ledeline.corpus import InvalidRow
from ledeline.corpus.delimited import Dialect
from ledeline.corpus.inputs import FileInput, Input
from ledeline.corpus.lines import COMPRESSION_SUFFIXES
from ledeline.inference.outputs.added_columns import AddedColumn, headline_columns
from ledeline.inference.outputs.line_formats import (
    Delimited,
    Format,
    JsonLines,
    JsonTable,
    PlainLines,
)
from ledeline.inference.outputs.resumable_file import ResumableFile, journal_path

if TYPE_CHECKING:
    from ledeline.inference.outputs.parquet import ParquetTable

TABLES: Final = (".jsonl", ".csv", ".tsv", ".parquet")


@contextmanager
def open_output(
    path: Path,
    given: Input,
    column: str | None = None,
    *,
    added: Sequence[AddedColumn] = (),
    as_json: bool = False,
    resume: bool = False,
    progress: Progress = no_progress,
) -> "Iterator[ResumableFile | ParquetTable]":
    """Open a file for headlines, in the format that its name says, for one run at a time.

    A table gets the columns ``added``; by default that of the headlines, which ``column`` names.
    An existing file is never overwritten: without ``resume`` it is refused. For a table, the input
    is first read through once if possible, so that a row that the format cannot hold is found
    before the work begins.
    """
    added = added or headline_columns(column)
    _check_name(path, as_json=as_json)
    path = path.resolve()
    if isinstance(given, FileInput) and given.path.resolve() == path:
        raise CorpusError(f"{path} is the input; name another output")
    make_folder(path.parent)
    full = CorpusError(f"{path}: the disk is full; make room and continue with --resume")
    with exclusive_lock(path, CorpusError), explain_full_disk(full):
        _check_exists(path, resume=resume)
        with closing(_opened(path, given, added, as_json, progress)) as output:
            yield output


def is_table(path: Path, *, as_json: bool) -> bool:
    """Whether the output is the table of the input with columns added."""
    return path.suffix.lower() in TABLES and not as_json


def check_output_options(
    path: Path | None,
    column: str | None,
    *,
    as_json: bool,
    resume: bool,
    explain: bool,
    n_best: int,
    support_column: str | None = None,
) -> None:
    """Refuse options that have no effect, or that the output format cannot hold."""
    table = path is not None and is_table(path, as_json=as_json)
    if resume and path is None:
        raise ConfigError("--resume continues an output file; name it with --output")
    for option, name in (("--column", column), ("--support-column", support_column)):
        if name is not None and not table:
            raise ConfigError(f"{option} {name}: only a table has columns; name one with --output")
    if explain and path is not None and not as_json:
        raise ConfigError("--explain is for the terminal; with --output, add --json")
    if n_best > 1 and table:
        raise ConfigError(f"--n-best {n_best}: a table has one headline per row; add --json")


def _check_name(path: Path, *, as_json: bool) -> None:
    suffix = path.suffix.lower()
    if as_json and suffix != ".jsonl":
        raise CorpusError(
            f"{path}: --json writes lines of JSON; name an output that ends in .jsonl"
        )
    if suffix in COMPRESSION_SUFFIXES:
        plain = path.with_suffix("")
        raise CorpusError(f"{path}: the output cannot be compressed; write {plain} and compress it")
    if suffix != ".txt" and suffix not in TABLES:
        raise CorpusError(
            f"{path}: the name must end in .txt for headlines only, or in .csv, .tsv, .jsonl or "
            ".parquet for a table"
        )


def _check_exists(path: Path, *, resume: bool) -> None:
    if path.is_dir():
        raise CorpusError(f"{path} is a folder; name a file to write to")
    if resume:
        return
    if path.exists():
        raise CorpusError(
            f"{path} already exists; continue it with --resume, or name another output"
        )
    if journal_path(path).exists():
        raise CorpusError(
            f"{path} is unfinished; continue it with --resume, name another output, or "
            f"remove {journal_path(path)}"
        )


def _opened(
    path: Path, given: Input, added: Sequence[AddedColumn], as_json: bool, progress: Progress
) -> "ResumableFile | ParquetTable":
    if is_table(path, as_json=as_json) and path.suffix.lower() == ".parquet":
        from ledeline.inference.outputs.parquet import ParquetTable

        return ParquetTable(path, given, added)
    form = _format(path, given, added, as_json)
    if form.is_table and given.is_repeatable:
        records = track_progress(given.records(whole=True), "check", None, progress)
        for record in records:
            if not isinstance(record, InvalidRow):
                form.beginning(record)
    return ResumableFile(path, form)


def _format(path: Path, given: Input, added: Sequence[AddedColumn], as_json: bool) -> Format:
    if as_json:
        return JsonLines()
    suffix = path.suffix.lower()
    if suffix == ".txt":
        return PlainLines()
    dialect = _dialect(suffix, given)
    if suffix == ".jsonl":
        return JsonTable(given.name, given.columns, added, dialect.line_end)
    kind = suffix.removeprefix(".").upper()
    return Delimited(kind, given.name, given.columns, added, dialect)


def _dialect(suffix: str, given: Input) -> Dialect:
    """How to write a text table: like the input, if that is in the same or a similar format."""
    if given.file_format == suffix.removeprefix("."):
        return given.dialect
    if {given.file_format, suffix.removeprefix(".")} == {"csv", "tsv"}:
        return given.dialect._replace(delimiter=",")
    return Dialect()
