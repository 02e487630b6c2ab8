"""Texts to compare: a text a line of any file, or a column of a table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ledeline.core.errors import CorpusError
from ledeline.corpus import BadRow
from ledeline.corpus.kinds import TABLE_KINDS, named_kind
from ledeline.corpus.lines import BrokenStream, read_lines
from ledeline.corpus.records import read_records

_MARK: Final = ":"  # between the file and the column
_STANDARD_INPUT: Final = "/dev/stdin"


def read_column(name: str, column: str) -> list[str]:
    """Read all texts of a file; one without any is an error.

    ``FILE:COLUMN`` names the column of a table, which is `column` where no other is named, and
    ``-`` is standard input. A file that is no table by its name is read by lines, which end at a
    line feed only. Bytes in it that are not UTF-8 come as surrogates.
    """
    path, chosen = _named(_STANDARD_INPUT if name == "-" else name)
    if named_kind(path) in TABLE_KINDS:
        texts = _table_texts(path, chosen or column)
    elif chosen is not None:
        raise CorpusError(f"{name}: {path} is read line by line and has no column {chosen!r}")
    else:
        texts = _lines(path)
    if not texts:
        raise CorpusError(f"{path}: the file is empty")
    return texts


def read_columns_alike(names: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Read files that belong together, each with its column; they must be equally long."""
    columns = [read_column(name, column) for name, column in names]
    for (name, _), column in zip(names, columns, strict=True):
        if len(column) != len(columns[0]):
            raise CorpusError(
                f"{names[0][0]} has {len(columns[0]):,} lines and {name} has {len(column):,}; "
                "both need the same number of lines"
            )
    return columns


def _named(name: str) -> tuple[Path, str | None]:
    path, mark, column = name.rpartition(_MARK)
    if mark and path and column and not Path(name).exists():
        return Path(path), column
    return Path(name), None


def _table_texts(path: Path, column: str) -> list[str]:
    texts = []
    for record in read_records(path, column, whole=False):
        if isinstance(record, BadRow):
            raise CorpusError(str(record))
        texts.append(record.text)
    return texts


def _lines(path: Path) -> list[str]:
    try:
        return [line.decode("utf-8", "surrogateescape") for line in read_lines(path)]
    except BrokenStream as broken:
        raise CorpusError(str(broken.row(path))) from None
