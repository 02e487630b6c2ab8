"""Attribution: which source words the words of a headline came from, by attention and SPM.

The weights of sub-words are merged into weights of words. Legend: I source length, J headline
length; a matrix is a sequence of rows.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

NO_ATTENTION: Final = "this system has no attention, so its headlines cannot be explained"
Rows: TypeAlias = Sequence[Sequence[float]]
Pair: TypeAlias = tuple[Sequence[int], Sequence[int]]  # ids of a source and of a headline


class AttributionWeights(NamedTuple):
    """How much each sub-word of a headline came from each position of its source."""

    attention: Rows  # (J, I)
    spm: Rows | None  # (J, I); None for a system without SPM

    @property
    def best(self) -> Rows:
        """The SPM's where there are any, else those of attention."""
        return self.attention if self.spm is None else self.spm


def attribution_weights(
    attention: Rows, q: Rows | None, source: Sequence[int]
) -> AttributionWeights:
    """The weights of a headline; q has the SPM's probability of the type at each position."""
    return AttributionWeights(attention, None if q is None else spm_weights(q, source, attention))


def spm_weights(q: Rows, source: Sequence[int], attention: Rows) -> list[list[float]]:
    """The SPM's probability of each source position, from that of its type. (J, I) -> (J, I).

    Where a type occurs several times in the source, its probability goes to the position with the
    most attention, (J, I), and the others have none.
    """
    places: dict[int, list[int]] = {}
    for place, id_ in enumerate(source):
        places.setdefault(id_, []).append(place)
    repeated = [some for some in places.values() if len(some) > 1]
    weights = [list(row) for row in q]
    for row, looked in zip(weights, attention, strict=True):
        for some in repeated:
            probability, best = row[some[0]], max(some, key=looked.__getitem__)
            for place in some:
                row[place] = probability if place == best else 0.0
    return weights


def word_weights(
    weights: Rows, headline_word_ids: Sequence[int], source_word_ids: Sequence[int]
) -> list[list[float]]:
    """Weights between sub-words (J, I) -> between words.

    Over the sub-words of a source word they are summed; over those of a headline word it is their
    mean. Word ids give the word of each sub-word, from 0 without gaps.
    """
    width = max(source_word_ids) + 1
    sums = [[0.0] * width for _ in range(max(headline_word_ids) + 1)]
    numbers = [0] * len(sums)
    for word, row in zip(headline_word_ids, weights, strict=True):
        numbers[word] += 1
        own = sums[word]
        for place, value in zip(source_word_ids, row, strict=True):
            own[place] += value
    return [[value / number for value in own] for own, number in zip(sums, numbers, strict=True)]
