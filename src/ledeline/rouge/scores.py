"""From statistics to scores: precision, recall and F1 between 0 and 1, rounded as ROUGE-1.5.5."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum

from ledeline.rouge.statistics import Overlap, gather

_NUM_DECIMALS = 5


@dataclass(frozen=True, slots=True)
class Score:
    """One measure of one pair, or its mean over pairs."""

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class Rouge:
    """The three measures of one pair, or their means over pairs."""

    rouge1: Score
    rouge2: Score
    rouge_l: Score


def score(candidate: str, reference: str) -> Rouge:
    """Score a headline against its reference; 0 where either has nothing to compare."""
    return Rouge(*map(_score, gather(candidate, reference)))


def mean(scores: Iterable[Rouge]) -> Rouge:
    """Return the plain mean of each number, in any order the same; there must be a score."""
    scores = list(scores)
    if not scores:
        raise ValueError("there is no mean of no scores")
    return Rouge(
        _mean([pair.rouge1 for pair in scores]),
        _mean([pair.rouge2 for pair in scores]),
        _mean([pair.rouge_l for pair in scores]),
    )


def _mean(scores: list[Score]) -> Score:
    return Score(
        fsum(score.precision for score in scores) / len(scores),
        fsum(score.recall for score in scores) / len(scores),
        fsum(score.f1 for score in scores) / len(scores),
    )


def _score(overlap: Overlap) -> Score:
    """F1 is made from precision and recall as they are printed, that is rounded."""
    precision = _ratio(overlap.num_matches, overlap.num_candidate)
    recall = _ratio(overlap.num_matches, overlap.num_reference)
    return Score(precision, recall, _ratio(precision * recall, 0.5 * precision + 0.5 * recall))


def _ratio(part: float, whole: float) -> float:
    return round(part / whole, _NUM_DECIMALS) if whole else 0.0
