"""File formats, known by the ending of a file's name."""

import os
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from ledeline.core.errors import CorpusError
from ledeline.corpus.lines import COMPRESSION_SUFFIXES, format_suffix

FileFormat: TypeAlias = Literal["txt", "jsonl", "csv", "tsv", "parquet"]

TABLE_FORMATS: Final = ("csv", "tsv", "jsonl", "parquet")
COMPRESSED_TOO: Final = "(.gz or .zst may follow)"

_FORMATS: Final[dict[str, FileFormat]] = {f".{name}": name for name in get_args(FileFormat)}
_UNSUPPORTED: Final = frozenset(  # endings of files that do not hold one text per line
    ".doc .docx .htm .html .json .ndjson .ods .odt .pdf .rtf .xls .xlsx .xml .zip".split()
)


def format_by_name(path: Path) -> FileFormat | None:
    """The format that the name of a file tells, or None."""
    return _FORMATS.get(format_suffix(path))


def input_format(path: Path) -> FileFormat:
    """The format of a file of texts: one text per line, if its name does not tell another."""
    suffix = format_suffix(path)
    if suffix in _UNSUPPORTED:
        raise CorpusError(
            f"{path}: {suffix} is not supported; save it as .txt, .csv, .tsv, .jsonl or .parquet, "
            "or set its format with --format"
        )
    return _FORMATS.get(suffix, "txt")


def table_format(path: Path) -> FileFormat:
    """The format of a table; a file name that does not tell one is an error."""
    file_format = format_by_name(path)
    if file_format is None or file_format == "txt":
        raise table_name_error(path, f".csv, .tsv, .jsonl or .parquet {COMPRESSED_TOO}")
    return file_format


def table_name_error(path: Path, endings: str) -> CorpusError:
    """Return the error that says how the name of a table must end."""
    return CorpusError(f"{path}: the name of a table must end in {endings}")


def count_rows(path: Path, file_format: FileFormat) -> int | None:
    """About how many rows a file has, or None if counting them would be slow."""
    if path.suffix.lower() in COMPRESSION_SUFFIXES:
        return None
    if file_format != "parquet":
        with path.open("rb") as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(2**20), b""))
    import pyarrow.parquet

    try:
        return int(pyarrow.parquet.read_metadata(path).num_rows)
    except (OSError, pyarrow.ArrowInvalid):
        return None  # the reader will report the error


def looks_like_file_name(text: str) -> bool:
    """Whether a text on the command line is probably a file name.

    It ends like one, and either has no white space or is an existing file. A lede is not like that:
    it has several words, or is in a language without white space and does not end in ``.txt``.
    """
    suffix = format_suffix(Path(text))
    if suffix not in _FORMATS and suffix not in _UNSUPPORTED:
        return False
    return os.path.isfile(text) or not any(map(str.isspace, text))  # noqa: PTH113 - never fails
