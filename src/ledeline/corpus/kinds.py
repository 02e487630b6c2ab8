"""What a file holds, as the ending of its name says."""

import os
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from ledeline.core.errors import CorpusError
from ledeline.corpus.lines import COMPRESSION_SUFFIXES, table_suffix

Kind: TypeAlias = Literal["txt", "jsonl", "csv", "tsv", "parquet"]

TABLE_KINDS: Final = ("csv", "tsv", "jsonl", "parquet")
PACKED_TOO: Final = "(.gz or .zst may follow)"

_KINDS: Final[dict[str, Kind]] = {f".{kind}": kind for kind in get_args(Kind)}
_OTHERS: Final = frozenset(  # what is known not to be a text a line
    ".doc .docx .htm .html .json .ndjson .ods .odt .pdf .rtf .xls .xlsx .xml .zip".split()
)


def named_kind(path: Path) -> Kind | None:
    """What a file holds by its name, or nothing."""
    return _KINDS.get(table_suffix(path))


def input_kind(path: Path) -> Kind:
    """What a file of texts holds: a text a line, where its name says nothing else."""
    suffix = table_suffix(path)
    if suffix in _OTHERS:
        raise CorpusError(
            f"{path}: {suffix} is not supported; save it as .txt, .csv, .tsv, .jsonl or .parquet, "
            "or set its format with --format"
        )
    return _KINDS.get(suffix, "txt")


def table_kind(path: Path) -> Kind:
    """What a table holds; the name of a file that is none is refused."""
    kind = named_kind(path)
    if kind is None or kind == "txt":
        raise unknown_table(path, f".csv, .tsv, .jsonl or .parquet {PACKED_TOO}")
    return kind


def unknown_table(path: Path, endings: str) -> CorpusError:
    """Return the error that says how the name of a table ends."""
    return CorpusError(f"{path}: the name of a table must end in {endings}")


def count_rows(path: Path, kind: Kind) -> int | None:
    """About how many rows a file of this kind has, where that is cheap to say."""
    if path.suffix.lower() in COMPRESSION_SUFFIXES:
        return None
    if kind != "parquet":
        with path.open("rb") as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(2**20), b""))
    import pyarrow.parquet

    try:
        return int(pyarrow.parquet.read_metadata(path).num_rows)
    except (OSError, pyarrow.ArrowInvalid):
        return None  # the reader will say what is wrong


def looks_like_a_file(text: str) -> bool:
    """Whether somebody who typed this meant a file.

    It ends as the name of such a file does, and either has no white space or is a file that is
    there. No lede is like that: it has several words, and those of a language that is written
    without white space do not end in ``.txt``.
    """
    suffix = table_suffix(Path(text))
    if suffix not in _KINDS and suffix not in _OTHERS:
        return False
    return os.path.isfile(text) or not any(map(str.isspace, text))  # noqa: PTH113 - never fails
