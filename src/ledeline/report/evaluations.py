"""The folders of `ledeline evaluate`, read whole and checked; see docs/evaluation.md."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ledeline.core.errors import ScoreError
from ledeline.evaluation import folder as files
from ledeline.evaluation.audit import KINDS, Audit
from ledeline.evaluation.odd_words import Odd
from ledeline.report.alignments import Alignment, read_alignment
from ledeline.report.fields import Fields, read_bytes

_TOLERANCE: Final = 2e-5  # pairs have five digits
MEASURES: Final = {"rouge1": "R-1", "rouge2": "R-2", "rougeL": "R-L"}


@dataclass(frozen=True)
class Score:
    """A measure over all pairs, from 0 to 1."""

    precision: float
    recall: float
    f1: float
    low: float  # the 95 % interval of f1
    high: float


@dataclass(frozen=True)
class Texts:
    """The texts of a test set, a pair each."""

    sources: tuple[str, ...]  # words with spaces between
    references: tuple[str, ...]
    outputs: tuple[str, ...]
    headlines: tuple[str, ...]  # outputs as people read them
    ledes: tuple[str, ...]  # sources as they were given
    golds: tuple[str, ...]  # references as they were given


@dataclass(frozen=True, eq=False)
class Outcome:
    """How one system did on one test set."""

    name: str
    files: tuple[str, ...]
    num_pairs: int
    signature: str
    scores: dict[str, Score]  # by measure
    odd: Odd
    num_truncated: int
    num_empty: int
    seconds: float | None  # None where the work was stopped and gone on with
    texts: Texts
    pair_scores: npt.NDArray[np.float64]  # (N, M): F1 of each pair by each measure
    audit: Audit  # odd words of each pair
    alignment: Alignment | None


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One system on its test sets."""

    folder: Path
    system: str
    facts: dict[str, tuple[str, ...]]  # what is only shown
    command: str
    outcomes: dict[str, Outcome]  # by name of the test set


def read_summary(folder: Path) -> Fields:
    """Read what an evaluation came to, finished or not."""
    if not folder.is_dir():
        raise ScoreError(f"{folder}: there is no such folder; name one that evaluate has written")
    path = folder / files.SUMMARY
    if not path.exists():
        raise ScoreError(
            f"{folder}: has no {files.SUMMARY}; name a folder that evaluate has written"
        )
    fields = Fields.read(path)
    if fields.values.get("format") != files.FORMAT:
        raise fields.error("format", f"{files.FORMAT}, the only format this version knows,")
    return fields


def read_evaluation(folder: Path) -> Evaluation:
    """Read a folder; what is wrong in it is a ``ScoreError``."""
    fields = read_summary(folder)
    sets = fields.inner("sets")
    if not sets.values:
        raise ScoreError(f"{fields.path}: no test set is done; go on with evaluate --resume")
    return Evaluation(
        folder=folder,
        system=fields.text("system"),
        facts={key: fields.shown(key) for key in _SHOWN},
        command=fields.text("command"),
        outcomes={name: read_outcome(folder, name, sets.inner(name)) for name in sets.values},
    )


# What is only shown, on the page in this order.
_SHOWN: Final = (
    "version", "commit", "date", "models", "weights", "profile", "compared_in", "precision",
    "device", "search", "replace_unknown", "scoring", "samples",
)  # fmt: skip


def read_outcome(folder: Path, name: str, fields: Fields) -> Outcome:
    """Read what is written of a test set, of which these are the fields in the summary."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ScoreError(f"{fields.path}: {name!r} cannot be the folder of a test set")
    place, num_pairs = folder / name, fields.count("pairs")
    if not place.is_dir():
        raise ScoreError(f"{place}: is not there, but {fields.path} names it; evaluate again")
    if not num_pairs:
        raise fields.error("pairs", "a pair or more")
    pair_scores, audit = _read_pairs(place / files.PAIRS, num_pairs)
    scores = {measure: _score(fields.inner(measure)) for measure in MEASURES}
    _refuse_contradiction(place / files.PAIRS, pair_scores, scores)
    return Outcome(
        name=name,
        files=fields.shown("files"),
        num_pairs=num_pairs,
        signature=fields.text("signature"),
        scores=scores,
        odd=_odd(fields.inner("odd")),
        num_truncated=fields.count("truncated"),
        num_empty=fields.count("empty"),
        seconds=None if fields.is_null("seconds") else fields.number("seconds"),
        texts=_read_texts(place, num_pairs),
        pair_scores=pair_scores,
        audit=audit,
        alignment=read_alignment(place / files.ALIGNMENT, num_pairs),
    )


def _refuse_contradiction(
    path: Path, pair_scores: npt.NDArray[np.float64], scores: dict[str, Score]
) -> None:
    """The mean of the pairs must be what the summary says, but for digits."""
    for (measure, score), mean in zip(scores.items(), pair_scores.mean(axis=0), strict=True):
        if abs(mean - score.f1) > _TOLERANCE:
            raise ScoreError(
                f"{path}: the mean of {measure} is {mean:.5f}, and {files.SUMMARY} has "
                f"{score.f1:.5f}; evaluate again"
            )


def _score(fields: Fields) -> Score:
    return Score(*(fields.share(key) for key in ("precision", "recall", "f1", "low", "high")))


def _odd(fields: Fields) -> Odd:
    irrelevant = None if fields.is_null("irrelevant") else fields.count("irrelevant")
    return Odd(fields.count("repeating"), fields.count("lacking"), irrelevant)


# --- lines ----------------------------------------------------------------------------------------


def _read_lines(path: Path) -> list[str]:
    """The lines of a file; they end at line feeds only."""
    data = read_bytes(path)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ScoreError(f"{path}: line {line} is not UTF-8; evaluate again") from None
    return text.removesuffix("\n").split("\n") if text else []


def _counted(path: Path, lines: Sequence[str], num_pairs: int) -> tuple[str, ...]:
    if len(lines) != num_pairs:
        raise ScoreError(
            f"{path}: has {len(lines)} lines for {num_pairs} pairs of {files.SUMMARY}; "
            "evaluate again"
        )
    return tuple(lines)


def _read_texts(place: Path, num_pairs: int) -> Texts:
    sources, references, outputs = (
        _counted(place / name, _read_lines(place / name), num_pairs)
        for name in (files.SOURCE, files.REFERENCE, files.OUTPUT)
    )
    path = place / files.HEADLINES
    lines = _counted(path, _read_lines(path), num_pairs)
    answers = [_answer(path, number, line) for number, line in enumerate(lines, 1)]
    return Texts(
        sources,
        references,
        outputs,
        headlines=tuple(headline for headline, _ in answers),
        ledes=tuple(map(_first_text, [source for _, source in answers], sources)),
        golds=_counted(place / files.GOLD, _read_lines(place / files.GOLD), num_pairs),
    )


def _answer(path: Path, number: int, line: str) -> tuple[str, Any]:
    """The headline of a line, and the source where it was a text."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        raise ScoreError(f"{path}: line {number} is not JSON; evaluate again") from None
    if not isinstance(values, dict) or not isinstance(values.get("headline"), str):
        raise ScoreError(f"{path}: line {number} has no text under headline; evaluate again")
    return values["headline"], values.get("source")


def _first_text(given: Any, words: str) -> str:
    return given if isinstance(given, str) else words


def _read_pairs(path: Path, num_pairs: int) -> tuple[npt.NDArray[np.float64], Audit]:
    """The scores of each pair, and what is odd in it, by the names in the first line."""
    header, *lines = _read_lines(path) or [""]
    names = header.split("\t")
    for name in (*MEASURES, *KINDS):
        if names.count(name) != 1:
            raise ScoreError(f"{path}: line 1 does not name a column {name}; evaluate again")
    _counted(path, lines, num_pairs)
    rows = [_cells(path, number, line, names) for number, line in enumerate(lines, 2)]
    try:
        scores = [[_share(row, name) for name in MEASURES] for row in rows]
        odds = [_odd_cells(row) for row in rows]
    except ValueError as error:
        raise ScoreError(f"{path}: {error}; evaluate again") from None
    return np.array(scores, np.float64), Audit(tuple(odds))


class _Row(NamedTuple):
    """A line of a table."""

    number: int
    cells: dict[str, str]

    def error(self, name: str, wanted: str) -> ValueError:
        return ValueError(f"line {self.number}: {name} is {self.cells[name][:40]!r}, not {wanted}")


def _cells(path: Path, number: int, line: str, names: Sequence[str]) -> _Row:
    cells = line.split("\t")
    if len(cells) != len(names):
        raise ScoreError(
            f"{path}: line {number} has {len(cells)} cells, not {len(names)}; evaluate again"
        )
    return _Row(number, dict(zip(names, cells, strict=True)))


def _share(row: _Row, name: str) -> float:
    cell = row.cells[name]
    if not _NUMBER.fullmatch(cell) or not 0 <= float(cell) <= 1:
        raise row.error(name, "a number from 0 to 1")
    return float(cell)


_NUMBER: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,30})?(e-?[0-9]{1,3})?")


def _odd_cells(row: _Row) -> Odd:
    """The counts; irrelevant words may be unknown."""
    irrelevant = _count(row, "irrelevant") if row.cells["irrelevant"] else None
    return Odd(_count(row, "repeating"), _count(row, "lacking"), irrelevant)


def _count(row: _Row, name: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", row.cells[name]):
        raise row.error(name, "a count")
    return int(row.cells[name])
