"""The folder of an evaluation, written by `evaluate` and read by the report.

docs/evaluation.md describes the files.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ledeline.core.atomic import atomic_write, exclusive_lock, make_folder
from ledeline.core.errors import ScoreError
from ledeline.evaluation import audit as audits
from ledeline.evaluation import scoring
from ledeline.evaluation.alignment_json import AlignmentSummary, read_alignment
from ledeline.evaluation.audit import Audit
from ledeline.evaluation.json_fields import JsonFields, read_bytes
from ledeline.evaluation.odd_words import KINDS, OddWords
from ledeline.evaluation.summary import (
    FORMAT,
    MEASURES,
    EvaluationSummary,
    MeasureScore,
    SetSummary,
)
from ledeline.evaluation.written_headline import WrittenHeadline, parse_headline
from ledeline.inference.checks.check import Check
from ledeline.rouge import Rouge

SUMMARY: Final = "evaluation.json"
# In the folder of a test set:
SOURCE: Final = "source.txt"
REFERENCE: Final = "reference.txt"
OUTPUT: Final = "output.txt"
GOLD: Final = "gold.txt"
HEADLINES: Final = "headlines.jsonl"
PAIRS: Final = "pairs.tsv"
ALIGNMENT: Final = "alignment.json"

_TOLERANCE: Final = 2e-5  # the scores of pairs have five digits
_NUMBER: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,30})?(e-?[0-9]{1,3})?")


@dataclass(frozen=True)
class SetTexts:
    """The texts of a test set, one per pair."""

    sources: tuple[str, ...]  # words with spaces between
    references: tuple[str, ...]
    outputs: tuple[str, ...]
    headlines: tuple[str, ...]  # outputs as people read them
    ledes: tuple[str, ...]  # sources as they were given
    golds: tuple[str, ...]  # references as they were given


@dataclass(frozen=True, eq=False)
class EvaluatedSet:
    """One system on one test set: everything that was written."""

    name: str
    summary: SetSummary
    texts: SetTexts
    pair_scores: npt.NDArray[np.float64]  # (N, M): F1 of each pair by each measure
    audit: Audit  # odd words of each pair
    alignment: AlignmentSummary | None
    checks: tuple[Check | None, ...]  # of each headline; None where it was not checked


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One system on its test sets."""

    folder: Path
    system: str
    settings: dict[str, tuple[str, ...]]  # and versions, as texts to show
    command: str
    sets: dict[str, EvaluatedSet]  # by name


# Shown in this order.
_SHOWN: Final = (
    "version", "commit", "date", "models", "weights", "profile", "compared_in", "precision",
    "device", "search", "replace_unknown", "checking", "scoring", "samples",
)  # fmt: skip


class EvaluationFolder:
    """One system on any number of test sets. An error in the folder is a ``ScoreError``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.summary_path = path / SUMMARY

    @contextmanager
    def opened(self, *, resume: bool) -> Iterator[None]:
        """Lock the folder to write to it. It must be new or empty, unless it is resumed."""
        if self.path.exists() and not self.path.is_dir():
            raise ScoreError(f"{self.path} is a file; name a folder to write to")
        make_folder(self.path)
        with exclusive_lock(self.summary_path, ScoreError):
            if any(not path.name.startswith(".") for path in self.path.iterdir()):
                if not resume:
                    raise ScoreError(
                        f"{self.path} already exists; continue it with --resume, or name another"
                    )
                self.read_summary()  # it must be the folder of an evaluation
            yield

    def write_summary(self, summary: EvaluationSummary) -> None:
        """Write evaluation.json, whole or not at all."""
        text = json.dumps(summary.as_dict(), indent=2, ensure_ascii=False) + "\n"
        with atomic_write(self.summary_path) as part:
            # A name of a file may have half a character, which is then written as an escape.
            part.write_text(text, encoding="utf-8", errors="backslashreplace")

    def read_summary(self) -> JsonFields:
        """Read evaluation.json, finished or not.

        Its settings may be those of another version; `SetSummary.read` reads a test set of it.
        """
        if not self.path.is_dir():
            raise ScoreError(
                f"{self.path}: there is no such folder; name one that evaluate has written"
            )
        if not self.summary_path.exists():
            raise ScoreError(
                f"{self.path}: has no {SUMMARY}; name a folder that evaluate has written"
            )
        fields = JsonFields.read(self.summary_path)
        if fields.values.get("format") != FORMAT:
            raise fields.error("format", f"{FORMAT}, the only format this version knows,")
        return fields

    def read(self) -> Evaluation:
        """Read everything."""
        fields = self.read_summary()
        sets = fields.inner("sets")
        if not sets.values:
            raise ScoreError(
                f"{fields.path}: no test set is finished; continue with evaluate --resume"
            )
        return Evaluation(
            folder=self.path,
            system=fields.text("system"),
            settings={key: fields.shown(key) for key in _SHOWN},
            command=fields.text("command"),
            sets={name: self.read_set(name, sets.inner(name)) for name in sets.values},
        )

    def test_set(self, name: str) -> "SetFolder":
        """The folder of a test set."""
        return SetFolder(self.path / name)

    def read_set(self, name: str, fields: JsonFields) -> EvaluatedSet:
        """Read the files of a test set, given its part of evaluation.json."""
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            raise ScoreError(f"{fields.path}: {name!r} cannot be the folder of a test set")
        fields.count("pairs")
        folder = self.test_set(name)
        if not folder.path.is_dir():
            raise ScoreError(
                f"{folder.path}: does not exist, but {fields.path} names it; evaluate again"
            )
        return folder.read(name, SetSummary.read(fields))


class SetFolder:
    """The files of one test set."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.headlines_path = path / HEADLINES

    # --- writing ---

    def write_texts(
        self,
        sources: Iterable[str],
        references: Iterable[str],
        outputs: Iterable[str],
        golds: Iterable[str],
    ) -> None:
        """Write the words that are compared, and the references as they were given."""
        _write_lines(self.path / SOURCE, sources)
        _write_lines(self.path / REFERENCE, references)
        _write_lines(self.path / OUTPUT, outputs)
        _write_lines(self.path / GOLD, golds)

    def write_pairs(self, scores: Sequence[Rouge], audit: Audit) -> None:
        """Write the scores and the odd words of each pair."""
        both = zip(scoring.per_pair_lines(scores), audits.per_pair_lines(audit), strict=True)
        _write_lines(self.path / PAIRS, (f"{ours}\t{theirs}" for ours, theirs in both))

    def write_alignment(self, alignment: AlignmentSummary) -> None:
        """Write how the test set is aligned."""
        line = json.dumps(alignment.as_dict(), ensure_ascii=False)
        _write_lines(self.path / ALIGNMENT, [line])

    # --- reading ---

    def read(self, name: str, summary: SetSummary) -> EvaluatedSet:
        """Read all files; they must fit the summary."""
        pair_scores, audit = _read_pairs(self.path / PAIRS, summary.num_pairs)
        _refuse_contradiction(self.path / PAIRS, pair_scores, summary.scores)
        headlines = self.read_headlines(summary.num_pairs)
        return EvaluatedSet(
            name=name,
            summary=summary,
            texts=self._read_texts(headlines),
            pair_scores=pair_scores,
            audit=audit,
            alignment=self.read_alignment(summary.num_pairs),
            checks=tuple(one.check for one in headlines),
        )

    def read_headlines(self, num_pairs: int) -> list[WrittenHeadline]:
        """Read headlines.jsonl, of which each line is the headline of a pair."""
        path = self.headlines_path
        lines = enumerate(_read_counted(path, num_pairs), start=1)
        return [parse_headline(path, number, line) for number, line in lines]

    def read_alignment(self, num_pairs: int) -> AlignmentSummary | None:
        """Read alignment.json; None where there is none."""
        return read_alignment(self.path / ALIGNMENT, num_pairs)

    def _read_texts(self, headlines: Sequence[WrittenHeadline]) -> SetTexts:
        num_pairs = len(headlines)
        sources, references, outputs = (
            _read_counted(self.path / name, num_pairs) for name in (SOURCE, REFERENCE, OUTPUT)
        )
        return SetTexts(
            sources,
            references,
            outputs,
            headlines=tuple(one.headline for one in headlines),
            ledes=tuple(
                words if one.source is None else one.source
                for one, words in zip(headlines, sources, strict=True)
            ),
            golds=_read_counted(self.path / GOLD, num_pairs),
        )


def _refuse_contradiction(
    path: Path, pair_scores: npt.NDArray[np.float64], scores: dict[str, MeasureScore]
) -> None:
    """The mean of the pairs must be what the summary says, but for digits."""
    for measure, mean in zip(MEASURES, pair_scores.mean(axis=0), strict=True):
        if abs(mean - scores[measure].f1) > _TOLERANCE:
            raise ScoreError(
                f"{path}: the mean of {measure} is {mean:.5f}, and {SUMMARY} has "
                f"{scores[measure].f1:.5f}; evaluate again"
            )


# --- lines ----------------------------------------------------------------------------------------


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with atomic_write(path) as part:
        part.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def _read_lines(path: Path) -> list[str]:
    """The lines of a file; they end at line feeds only."""
    data = read_bytes(path)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ScoreError(f"{path}: line {line} is not UTF-8; evaluate again") from None
    return text.removesuffix("\n").split("\n") if text else []


def _read_counted(path: Path, num_pairs: int) -> tuple[str, ...]:
    """The lines of a file with a line for each pair."""
    lines = _read_lines(path)
    _check_number(path, lines, num_pairs)
    return tuple(lines)


def _check_number(path: Path, lines: Sequence[str], num_pairs: int) -> None:
    if len(lines) != num_pairs:
        raise ScoreError(
            f"{path}: has {len(lines)} lines for {num_pairs} pairs of {SUMMARY}; evaluate again"
        )


# --- pairs.tsv ------------------------------------------------------------------------------------


class _Row(NamedTuple):
    """A line of the table."""

    number: int
    cells: dict[str, str]

    def share(self, name: str) -> float:
        cell = self.cells[name]
        if not _NUMBER.fullmatch(cell) or not 0 <= float(cell) <= 1:
            raise self._error(name, "a number from 0 to 1")
        return float(cell)

    def count(self, name: str) -> int:
        if not re.fullmatch("[0-9]{1,9}", self.cells[name]):
            raise self._error(name, "a count")
        return int(self.cells[name])

    def odd_words(self) -> OddWords:
        """The counts; irrelevant words may be unknown."""
        irrelevant = self.count("irrelevant") if self.cells["irrelevant"] else None
        return OddWords(self.count("repeating"), self.count("lacking"), irrelevant)

    def _error(self, name: str, wanted: str) -> ValueError:
        return ValueError(f"line {self.number}: {name} is {self.cells[name][:40]!r}, not {wanted}")


def _read_pairs(path: Path, num_pairs: int) -> tuple[npt.NDArray[np.float64], Audit]:
    """The scores and the odd words of each pair, by the names in the first line."""
    header, *lines = _read_lines(path) or [""]
    names = header.split("\t")
    for name in (*MEASURES, *KINDS):
        if names.count(name) != 1:
            raise ScoreError(f"{path}: line 1 does not name a column {name}; evaluate again")
    _check_number(path, lines, num_pairs)
    rows = [_parse_row(path, number, line, names) for number, line in enumerate(lines, 2)]
    try:
        scores = [[row.share(name) for name in MEASURES] for row in rows]
        odds = [row.odd_words() for row in rows]
    except ValueError as error:
        raise ScoreError(f"{path}: {error}; evaluate again") from None
    return np.array(scores, np.float64), Audit(tuple(odds))


def _parse_row(path: Path, number: int, line: str, names: Sequence[str]) -> _Row:
    cells = line.split("\t")
    if len(cells) != len(names):
        raise ScoreError(
            f"{path}: line {number} has {len(cells)} cells, not {len(names)}; evaluate again"
        )
    return _Row(number, dict(zip(names, cells, strict=True)))
