"""The statistics of ROUGE: how many n-grams, and how long a subsequence, two texts share."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class MatchCounts(NamedTuple):
    """How many n-grams or words match, and how many each text has."""

    num_matches: int
    num_candidate: int
    num_reference: int


class Statistics(NamedTuple):
    """The overlaps of ROUGE-1, ROUGE-2 and ROUGE-L."""

    rouge1: MatchCounts
    rouge2: MatchCounts
    rouge_l: MatchCounts


def count_overlaps(candidate: list[str], references: Sequence[list[str]]) -> Statistics:
    """Compare the tokens of a text with those of its references; counts are summed over them."""
    found = [_compare(candidate, reference) for reference in references]
    return found[0] if len(found) == 1 else Statistics(*map(_sum_counts, zip(*found, strict=True)))


def _compare(candidate: list[str], reference: list[str]) -> Statistics:
    return Statistics(
        overlap(candidate, reference),
        overlap(bigrams(candidate), bigrams(reference)),
        MatchCounts(lcs_length(candidate, reference), len(candidate), len(reference)),
    )


def _sum_counts(overlaps: Sequence[MatchCounts]) -> MatchCounts:
    return MatchCounts(*map(sum, zip(*overlaps, strict=True)))


def overlap(candidate: list[T], reference: list[T]) -> MatchCounts:
    """Count matches; each unit matches at most as often as the reference has it (clipping)."""
    ours, theirs = set(candidate), set(reference)
    shared = ours & theirs
    num_matches = len(shared)
    if len(ours) < len(candidate) and len(theirs) < len(reference):  # both repeat something
        num_matches = _clipped_matches(candidate, reference, shared)
    return MatchCounts(num_matches, len(candidate), len(reference))


def _clipped_matches(candidate: list[T], reference: list[T], shared: set[T]) -> int:
    left = dict.fromkeys(shared, 0)
    for unit in reference:
        if unit in left:
            left[unit] += 1
    num_matches = 0
    for unit in candidate:
        if left.get(unit):
            left[unit] -= 1
            num_matches += 1
    return num_matches


def bigrams(words: list[str]) -> list[tuple[str, str]]:
    """Pair each word with the next."""
    return list(pairwise(words))


def lcs_length(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the longest common subsequence.

    A row of the usual table grows by 0 or 1 from cell to cell. The bits of ``level`` are the cells
    of one row, 0 where it grows; an addition, whose carry runs along the bits, makes the next row
    (Hyyrö, 2004).
    """
    places: dict[str, int] = {}
    place = 1
    for word in one:
        places[word] = places.get(word, 0) | place
        place += place
    level = full = place - 1
    for word in other:
        if word in places:
            matches = level & places[word]
            level = (level + matches | level - matches) & full
    return len(one) - level.bit_count()
