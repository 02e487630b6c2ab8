"""Odd generation (Section "Does SPM reduce odd-gen?"): repeating, lacking and irrelevant words.

Counted per headline on whole words, without the marks of a text profile (`Profile.plain`).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ledeline.text.function_words import is_content

KINDS: Final = ("repeating", "lacking", "irrelevant")


@dataclass(frozen=True)
class OddWords:
    """How many odd words of each kind one headline has, or many together."""

    repeating: int
    lacking: int
    irrelevant: int | None  # None without a source


def count_odd_words(
    output: Sequence[str], reference: Sequence[str], source: Sequence[str] | None = None
) -> OddWords:
    """Count the odd words of an output.

    Repeating: of each word that the output has more than once, the occurrences beyond those in the
    reference. The first occurrence is no exception, as the paper's text has it: a word that is
    twice in the output counts 2 if the reference does not have it, 1 if it has it once.
    Lacking: how many words shorter than the reference. Irrelevant: occurrences of content words
    that neither source nor reference has, in any case; the other two compare words as they are.
    """
    return OddWords(
        repeating=len(repeating_places(output, reference)),
        lacking=max(0, len(reference) - len(output)),
        irrelevant=None if source is None else len(irrelevant_places(output, reference, source)),
    )


def total_odd_words(headlines: Iterable[OddWords]) -> OddWords:
    """Sum over headlines; irrelevant words are known only if they are for every headline."""
    counts = list(headlines)
    irrelevant = [one.irrelevant for one in counts if one.irrelevant is not None]
    return OddWords(
        repeating=sum(one.repeating for one in counts),
        lacking=sum(one.lacking for one in counts),
        irrelevant=sum(irrelevant) if len(irrelevant) == len(counts) else None,
    )


def repeating_places(output: Sequence[str], reference: Sequence[str]) -> list[int]:
    """Where the repeating words are in the output: the occurrences counted, left to right.

    Of a word that the reference has twice, the first two occurrences are not odd.
    """
    wanted, times = Counter(reference), Counter(output)
    seen: Counter[str] = Counter()
    places = []
    for place, word in enumerate(output):
        seen[word] += 1
        if times[word] > 1 and seen[word] > wanted[word]:
            places.append(place)
    return places


def irrelevant_places(
    output: Sequence[str], reference: Sequence[str], source: Sequence[str]
) -> list[int]:
    """Where the irrelevant words are in the output."""
    known = {word.casefold() for words in (reference, source) for word in words}
    return [
        place
        for place, word in enumerate(output)
        if is_content(word) and word.casefold() not in known
    ]


def odd_places(
    kind: str, output: Sequence[str], reference: Sequence[str], source: Sequence[str] | None
) -> list[int]:
    """Where the odd words of a kind are in an output; lacking words are nowhere."""
    if kind == "repeating":
        return repeating_places(output, reference)
    if kind == "irrelevant" and source is not None:
        return irrelevant_places(output, reference, source)
    return []
