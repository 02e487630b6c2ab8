"""Texts to score: the lines of a text file, or a column of a table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ledeline.core.errors import CorpusError
from ledeline.corpus import InvalidRow
from ledeline.corpus.formats import TABLE_FORMATS, format_by_name
from ledeline.corpus.lines import FileReadError, read_lines
from ledeline.corpus.records import read_records

_SEPARATOR: Final = ":"  # between the file and the column
_STANDARD_INPUT: Final = "/dev/stdin"


def read_column(name: str, column: str) -> list[str]:
    """Read all texts of a file; an empty file is an error.

    ``FILE:COLUMN`` names a column of a table; without it, the column is `column`. ``-`` is standard
    input. A file without the ending of a table is read line by line; only a line feed ends a line,
    and bytes that are not UTF-8 become surrogates.
    """
    path, chosen = _named(_STANDARD_INPUT if name == "-" else name)
    if format_by_name(path) in TABLE_FORMATS:
        texts = _table_texts(path, chosen or column)
    elif chosen is not None:
        raise CorpusError(f"{name}: {path} is read line by line and has no column {chosen!r}")
    else:
        texts = _lines(path)
    if not texts:
        raise CorpusError(f"{path}: the file is empty")
    return texts


def read_parallel_columns(names: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Read a column from each file; all columns must be equally long."""
    columns = [read_column(name, column) for name, column in names]
    for (name, _), column in zip(names, columns, strict=True):
        if len(column) != len(columns[0]):
            raise CorpusError(
                f"{names[0][0]} has {len(columns[0]):,} lines and {name} has {len(column):,}; "
                "both need the same number of lines"
            )
    return columns


def _named(name: str) -> tuple[Path, str | None]:
    path, mark, column = name.rpartition(_SEPARATOR)
    if mark and path and column and not Path(name).exists():
        return Path(path), column
    return Path(name), None


def _table_texts(path: Path, column: str) -> list[str]:
    texts = []
    for record in read_records(path, column, whole=False):
        if isinstance(record, InvalidRow):
            raise CorpusError(str(record))
        texts.append(record.text)
    return texts


def _lines(path: Path) -> list[str]:
    try:
        return [line.decode("utf-8", "surrogateescape") for line in read_lines(path)]
    except FileReadError as broken:
        raise CorpusError(str(broken.invalid_row(path))) from None
