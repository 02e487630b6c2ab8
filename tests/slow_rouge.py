"""ROUGE as one would write it down: slow, obvious references, without stemming."""

from fractions import Fraction
from typing import Any

from ledeline.rouge import Score

WEIGHT = 1.2


def slow_tokens(text: str) -> list[str]:
    """The script's own steps, one after another, on bytes."""
    spaced = b""
    for byte in text.encode("utf-8", "surrogatepass"):
        if ord("A") <= byte <= ord("Z"):
            byte += ord("a") - ord("A")
        if byte == ord("-"):
            spaced += b" - "
        elif ord("a") <= byte <= ord("z") or ord("0") <= byte <= ord("9"):
            spaced += bytes([byte])
        else:
            spaced += b" "
    found = [token.decode() for token in spaced.split(b" ") if token]
    return [token for token in found if token[0] in "abcdefghijklmnopqrstuvwxyz0123456789$"]


def slow_ngrams(words: list[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(words[k : k + n]) for k in range(len(words)) if k + n <= len(words)]


def slow_overlap(ours: list[Any], theirs: list[Any]) -> tuple[int, int, int]:
    left = theirs.copy()
    num_matches = 0
    for unit in ours:
        if unit in left:
            left.remove(unit)
            num_matches += 1
    return num_matches, len(ours), len(theirs)


def slow_lcs(one: list[str], other: list[str]) -> int:
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one, start=1):
        for j, b in enumerate(other, start=1):
            longest = max(table[i - 1][j], table[i][j - 1])
            table[i][j] = table[i - 1][j - 1] + 1 if a == b else longest
    return table[-1][-1]


def slow_weighted(ours: list[str], theirs: list[str]) -> tuple[float, float, float]:
    """Every cell keeps its value, the length of its row of matches, and its hits in the reference."""
    cells = {(i, 0): (0.0, 0, frozenset[int]()) for i in range(len(theirs) + 1)}
    cells |= {(0, j): (0.0, 0, frozenset[int]()) for j in range(len(ours) + 1)}
    for i, their in enumerate(theirs, start=1):
        for j, our in enumerate(ours, start=1):
            if our == their:
                value, row, hits = cells[i - 1, j - 1]
                value = value + (row + 1) ** WEIGHT - row**WEIGHT
                cells[i, j] = value, row + 1, hits | {i - 1}
            else:
                above, left = cells[i - 1, j], cells[i, j - 1]
                better = above if above[0] >= left[0] else left
                cells[i, j] = better[0], 0, better[2]
    hits = cells[len(theirs), len(ours)][2]
    mask = "".join("x" if place in hits else " " for place in range(len(theirs)))
    matches = sum(len(row) ** WEIGHT for row in mask.split())
    return matches, len(ours) ** WEIGHT, (len(theirs) ** WEIGHT) ** WEIGHT


def printed(number: Fraction | float) -> float:
    return float(f"{float(number):.5f}")


def slow_score(num_matches: int, num_candidate: int, num_reference: int) -> Score:
    if num_matches == 0:
        return Score(0.0, 0.0, 0.0)
    p = printed(Fraction(num_matches, num_candidate))
    r = printed(Fraction(num_matches, num_reference))
    return Score(p, r, printed(p * r / (0.5 * p + 0.5 * r)))


def slow_weighted_score(matches: float, candidate: float, reference: float) -> Score:
    if matches == 0:
        return Score(0.0, 0.0, 0.0)
    p, r = (printed((matches / whole) ** (1 / WEIGHT)) for whole in (candidate, reference))
    return Score(p, r, printed(p * r / (0.5 * p + 0.5 * r)))
