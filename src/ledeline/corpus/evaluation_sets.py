"""Evaluation sets: all pairs of a table or of parallel text, in order."""

import re
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from ledeline.core.errors import ConfigError, CorpusError
from ledeline.corpus import Pair
from ledeline.corpus.columns import read_column
from ledeline.corpus.parallel import read_parallel
from ledeline.corpus.records import read_column_names
from ledeline.corpus.tables import read_table

ALIGNMENT: Final = "alignment"  # the column of gold links, if a table has one

Files: TypeAlias = tuple[Path, ...]  # a table, or ledes and headlines
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class EvaluationSet(NamedTuple):
    """Pairs to evaluate a system on."""

    name: str
    files: tuple[str, ...]  # as they were given
    ledes: list[str]
    headlines: list[str]
    alignments: list[str] | None = None  # gold links in the Pharaoh format, if there are any
    gold_file: str = ""  # where the gold links come from

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Each lede with its headline."""
        return list(zip(self.ledes, self.headlines, strict=True))


def parse_evaluation_set(given: str) -> tuple[str, Files]:
    """Parse ``NAME=TABLE``, ``NAME=LEDES,HEADLINES``, or either without the name.

    A set without a name gets that of its first file.
    """
    name, mark, files = given.partition("=")
    if not mark or Path(given).exists():
        name, files = "", given
    parts = [files] if files and Path(files).exists() else files.split(",")
    if len(parts) > 2 or not all(map(str.strip, parts)):
        raise ConfigError(
            f"{given}: a test set is a table, or a file of ledes and one of headlines: "
            "NAME=TABLE or NAME=LEDES,HEADLINES"
        )
    paths = tuple(map(Path, parts))
    name = name if mark and name else paths[0].name.partition(".")[0]
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{given}: {name!r} is not a name for a test set; use letters, digits, dots, "
            "dashes and underscores: NAME=FILE"
        )
    return name, paths


def read_evaluation_set(
    given: str, *, lede: str = "lede", headline: str = "headline", gold: str | None = None
) -> EvaluationSet:
    """Read a set; `lede` and `headline` name the columns of a table, `gold` a file of gold links.

    Every row must be a pair; the first that is not raises an error that names it. Without `gold`,
    links are read from the column `alignment` of a table, if it has one.
    """
    name, paths = parse_evaluation_set(given)
    rows = (
        read_table(paths[0], lede=lede, headline=headline, date=None)
        if len(paths) == 1
        else read_parallel(*paths)
    )
    pairs = []
    for row in rows:
        if not isinstance(row, Pair):
            raise CorpusError(str(row))
        pairs.append(row)
    if not pairs:
        raise CorpusError(f"{paths[0]}: the file has no pairs")
    gold_file = str(gold or (paths[0] if _has_gold(paths, lede) else ""))
    return EvaluationSet(
        name,
        tuple(map(str, paths)),
        [pair.lede for pair in pairs],
        [pair.headline for pair in pairs],
        read_column(gold_file, ALIGNMENT) if gold_file else None,
        gold_file,
    )


def _has_gold(paths: Files, lede: str) -> bool:
    """Whether it is a table with a column of gold links."""
    return len(paths) == 1 and ALIGNMENT in read_column_names(paths[0], lede)
