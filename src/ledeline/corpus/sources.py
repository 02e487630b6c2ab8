"""Find the files that a configuration names, and read their rows."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ledeline.config import CorpusConfig
from ledeline.core.errors import CorpusError
from ledeline.corpus import Row
from ledeline.corpus.delimited import DELIMITERS
from ledeline.corpus.formats import count_rows, format_by_name
from ledeline.corpus.gigaword import read_gigaword, read_split_list, split_files
from ledeline.corpus.parallel import read_parallel
from ledeline.corpus.tables import read_table


class Source(NamedTuple):
    """Files that are read as one stream: a file, or a lede file with its headline file."""

    paths: tuple[Path, ...]

    def num_rows(self) -> int | None:
        """About how many rows there are, for the progress bar; None if counting would be slow."""
        file_format = format_by_name(self.paths[0])
        return None if file_format is None else count_rows(self.paths[0], file_format)


def find_sources(config: CorpusConfig, names: tuple[str, ...]) -> list[Source]:
    """The sources that the file names of a configuration match."""
    if config.format == "gigaword":
        paths = [path for name in names for path in _gigaword_paths(config.root, name)]
        return [Source((path,)) for path in paths]
    paths = [path for name in names for path in _matching(config.root, name)]
    if config.format == "table":
        return [Source((path,)) for path in paths]
    if len(paths) % 2:
        raise CorpusError(
            "parallel text needs pairs of files, ledes then headlines; the number of files is odd: "
            f"{', '.join(map(str, paths))}"
        )
    return [Source(pair) for pair in zip(paths[::2], paths[1::2], strict=True)]


def read_source(config: CorpusConfig, source: Source, *, dated: bool) -> Iterator[Row]:
    """The rows of a source; `dated` says whether the split needs the date column."""
    if config.format == "parallel":
        return read_parallel(*source.paths)
    if config.format == "gigaword":
        return read_gigaword(*source.paths)
    return read_table(
        source.paths[0],
        lede=config.lede,
        headline=config.headline,
        date=config.date if dated else None,
        delimiter=DELIMITERS.get(config.delimiter),
    )


def _matching(root: Path, name: str) -> list[Path]:
    if not any(character in name for character in "*?["):
        path = root / name
        if not path.is_file():
            raise CorpusError(f"{path}: no such file; corpus.root is {root}")
        return [path]
    found = sorted(root.glob(name))
    if not found:
        raise CorpusError(f"no file in {root} matches {name}")
    return found


def _gigaword_paths(root: Path, name: str) -> list[Path]:
    if Path(name).suffix in {".txt", ".split"}:
        return split_files(root, read_split_list(_matching(root, name)[0]))
    return _matching(root, name)
