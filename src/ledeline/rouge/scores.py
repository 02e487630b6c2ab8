"""From statistics to scores: precision, recall and F1 between 0 and 1, rounded as ROUGE-1.5.5."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import fsum

from ledeline.core.errors import ScoreError
from ledeline.core.progress import Progress, no_progress, track_progress
from ledeline.rouge.rouge_settings import DEFAULT, Settings
from ledeline.rouge.statistics import count_overlaps
from ledeline.rouge.tokens import make_tokenizers
from ledeline.rouge.weighted import WEIGHT, WeightedOverlap, weighted_overlap

_NUM_DECIMALS = 5
_LIMIT = 2**16  # scores in memory, by their counts


@dataclass(frozen=True, slots=True)
class Score:
    """One measure of one pair, or its mean over pairs."""

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class Rouge:
    """The measures of one pair, or their means over pairs."""

    rouge1: Score
    rouge2: Score
    rouge_l: Score
    rouge_w: Score | None = None  # where the settings ask for it


def score(candidate: str, references: str | Sequence[str], settings: Settings = DEFAULT) -> Rouge:
    """Score a headline against its reference or references; 0 if nothing can be compared."""
    return score_all([candidate], [references], settings)[0]


def score_all(
    candidates: Sequence[str],
    references: Sequence[str | Sequence[str]],
    settings: Settings = DEFAULT,
    progress: Progress = no_progress,
) -> list[Rouge]:
    """Score many headlines, each against its reference or references."""
    if len(candidates) != len(references):
        raise ScoreError(
            f"there are {len(candidates)} headlines but {len(references)} references; "
            "each headline needs its own"
        )
    compare = _comparison(settings)
    pairs = zip(candidates, references, strict=True)
    return [compare(*pair) for pair in track_progress(pairs, "score", len(candidates), progress)]


def _comparison(settings: Settings) -> Callable[[str, str | Sequence[str]], Rouge]:
    tokens_of_candidate, tokens_of_reference = make_tokenizers(settings)
    weighted = settings.weighted

    def compare(candidate: str, references: str | Sequence[str]) -> Rouge:
        texts = (references,) if isinstance(references, str) else references
        if not texts:
            raise ScoreError(f"there is no reference for the headline {candidate!r}; give one")
        ours, theirs = tokens_of_candidate(candidate), [*map(tokens_of_reference, texts)]
        one, two, longest = count_overlaps(ours, theirs)
        plain = _score(*one), _score(*two), _score(*longest)
        return Rouge(*plain, _weighted_score(weighted_overlap(ours, theirs)) if weighted else None)

    return compare


def mean(scores: Iterable[Rouge]) -> Rouge:
    """Return the mean of each number; it does not depend on the order."""
    scores = list(scores)
    if not scores:
        raise ValueError("a mean needs at least one score")
    weighted = [pair.rouge_w for pair in scores if pair.rouge_w is not None]
    return Rouge(
        _mean([pair.rouge1 for pair in scores]),
        _mean([pair.rouge2 for pair in scores]),
        _mean([pair.rouge_l for pair in scores]),
        _mean(weighted) if len(weighted) == len(scores) else None,
    )


def _mean(scores: list[Score]) -> Score:
    return Score(
        fsum(score.precision for score in scores) / len(scores),
        fsum(score.recall for score in scores) / len(scores),
        fsum(score.f1 for score in scores) / len(scores),
    )


@lru_cache(_LIMIT)
def _score(num_matches: int, num_candidate: int, num_reference: int) -> Score:
    return _with_f1(_ratio(num_matches, num_candidate), _ratio(num_matches, num_reference))


def _weighted_score(overlap: WeightedOverlap) -> Score:
    return _with_f1(
        _ratio(overlap.matches, overlap.candidate, 1 / WEIGHT),
        _ratio(overlap.matches, overlap.reference, 1 / WEIGHT),
    )


def _with_f1(precision: float, recall: float) -> Score:
    """F1 is computed from precision and recall as they are printed, that is rounded."""
    return Score(precision, recall, _ratio(precision * recall, 0.5 * precision + 0.5 * recall))


def _ratio(part: float, whole: float, power: float = 1.0) -> float:
    return round((part / whole) ** power, _NUM_DECIMALS) if whole else 0.0
