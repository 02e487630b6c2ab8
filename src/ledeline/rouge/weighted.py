"""ROUGE-W: the longest common subsequence, in which consecutive matches count more.

It is computed as in the Perl script, which has three peculiarities. The search takes every match it
meets, even if another path weighs more. Matches are consecutive if they are so in the reference,
whatever is between them in the candidate. And the length of the reference is weighted twice, so
that even a perfect headline of several words has a recall below 1.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

WEIGHT = 1.2  # n consecutive matches count n to this power

_UP, _LEFT, _DIAGONAL = range(3)


class WeightedOverlap(NamedTuple):
    """The weighted matches, and the weighted lengths of the texts."""

    matches: float
    candidate: float
    reference: float


def weighted_overlap(candidate: list[str], references: Sequence[list[str]]) -> WeightedOverlap:
    """Compare the tokens of a text with those of its references; values are summed over them."""
    matches = ours = theirs = 0.0
    for reference in references:  # added one by one: sum() rounds otherwise from Python 3.12 on
        matches += _weighted_matches(candidate, reference)
        ours += _weight(len(candidate))
        theirs += _weight(_weight(len(reference)))
    return WeightedOverlap(matches, ours, theirs)


def _weighted_matches(candidate: list[str], reference: list[str]) -> float:
    matches = 0.0
    for is_hit, row in groupby(_matched(candidate, reference)):
        matches += _weight(len(list(row))) if is_hit else 0.0
    return matches


def _weight(number: float) -> float:
    return float(number**WEIGHT)


def _matched(candidate: list[str], reference: list[str]) -> list[bool]:
    """Whether each word of the reference is in the common subsequence, traced from the end."""
    moves = _fill_table(candidate, reference)
    hits = [False] * len(reference)
    i, j = len(reference), len(candidate)
    while i and j:
        move = moves[i - 1][j - 1]
        i -= move != _LEFT
        j -= move != _UP
        if move == _DIAGONAL:
            hits[i] = True
    return hits


def _fill_table(candidate: list[str], reference: list[str]) -> list[bytearray]:
    """Fill the table of the search, a row per reference word: from where each cell comes."""
    gains = [_weight(number) for number in range(len(reference) + 1)]
    values, lengths = [0.0] * (len(candidate) + 1), [0] * (len(candidate) + 1)  # the row above
    moves = []
    for word in reference:
        new_values, new_lengths, row = [0.0], [0], bytearray()
        for j, other in enumerate(candidate):
            if word == other:
                length = lengths[j]
                value, move = values[j] + gains[length + 1] - gains[length], _DIAGONAL
                new_lengths.append(length + 1)
            else:
                above, left = values[j + 1], new_values[j]
                value, move = (above, _UP) if above >= left else (left, _LEFT)
                new_lengths.append(0)
            new_values.append(value)
            row.append(move)
        values, lengths = new_values, new_lengths
        moves.append(row)
    return moves
