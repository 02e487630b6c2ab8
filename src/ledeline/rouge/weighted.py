"""ROUGE-W: the longest common subsequence, where matches in a row count more than their number.

As the Perl script computes it, of which three things are peculiar. The search takes every match it
meets, even where another way weighs more. A row of matches is a row in the reference, whatever
stands between them in the candidate. And the length of the reference is weighted twice, so that
even a perfect headline of several words has a recall below 1.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

WEIGHT = 1.2  # so many matches in a row count as their number to this power

_UP, _LEFT, _DIAGONAL = range(3)


class WeightedOverlap(NamedTuple):
    """What matches, and what each text has, all weighted."""

    matches: float
    candidate: float
    reference: float


def gather_weighted(candidate: list[str], references: Sequence[list[str]]) -> WeightedOverlap:
    """Compare the tokens of a text with those of its references, and sum over these."""
    matches = ours = theirs = 0.0
    for reference in references:  # added one by one: sum() rounds otherwise from Python 3.12 on
        matches += _weighted_matches(candidate, reference)
        ours += _weight(len(candidate))
        theirs += _weight(_weight(len(reference)))
    return WeightedOverlap(matches, ours, theirs)


def _weighted_matches(candidate: list[str], reference: list[str]) -> float:
    matches = 0.0
    for is_hit, row in groupby(_hits(candidate, reference)):
        matches += _weight(len(list(row))) if is_hit else 0.0
    return matches


def _weight(number: float) -> float:
    return float(number**WEIGHT)


def _hits(candidate: list[str], reference: list[str]) -> list[bool]:
    """Say which words of the reference are in the common subsequence, found from the end."""
    moves = _moves(candidate, reference)
    hits = [False] * len(reference)
    i, j = len(reference), len(candidate)
    while i and j:
        move = moves[i - 1][j - 1]
        i -= move != _LEFT
        j -= move != _UP
        if move == _DIAGONAL:
            hits[i] = True
    return hits


def _moves(candidate: list[str], reference: list[str]) -> list[bytearray]:
    """Fill the usual table, with a row for each word of the reference: whence each cell comes."""
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
