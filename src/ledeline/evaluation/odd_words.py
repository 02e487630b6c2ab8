"""Odd generation (Section "Does SPM reduce odd-gen?"): words repeated, lacking or irrelevant.

Counted on whole words, without the marks of a text profile (`Profile.plain`), per headline.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ledeline.text.function_words import is_content


@dataclass(frozen=True)
class Odd:
    """The odd words of one headline, or of many."""

    repeating: int
    lacking: int
    irrelevant: int | None  # None where a source was not given


def count(
    output: Sequence[str], reference: Sequence[str], source: Sequence[str] | None = None
) -> Odd:
    """Count what is odd in an output.

    Repeating: of each word that the output has more than once, the occurrences beyond those in the
    reference. The first occurrence is no exception, as the paper's text has it: a word that is
    twice in the output makes 2 if the reference does not have it, 1 if it has it once.
    Lacking: how many words shorter than the reference. Irrelevant: occurrences of content words
    that neither source nor reference has, in whatever case; the others compare words as they are.
    """
    return Odd(
        repeating=len(repeated_places(output, reference)),
        lacking=max(0, len(reference) - len(output)),
        irrelevant=None if source is None else len(irrelevant_places(output, reference, source)),
    )


def total(odds: Iterable[Odd]) -> Odd:
    """Sum over headlines; irrelevant words are known only if they are for every headline."""
    odds = list(odds)
    irrelevant = [odd.irrelevant for odd in odds if odd.irrelevant is not None]
    return Odd(
        repeating=sum(odd.repeating for odd in odds),
        lacking=sum(odd.lacking for odd in odds),
        irrelevant=sum(irrelevant) if len(irrelevant) == len(odds) else None,
    )


def repeated_places(output: Sequence[str], reference: Sequence[str]) -> list[int]:
    """Where the repeating words stand in the output: the occurrences counted, left to right.

    Of a word that the reference has twice, the first two occurrences are no oddity.
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
    """Where the irrelevant words stand in the output."""
    known = {word.casefold() for words in (reference, source) for word in words}
    return [
        place
        for place, word in enumerate(output)
        if is_content(word) and word.casefold() not in known
    ]


def odd_places(
    kind: str, output: Sequence[str], reference: Sequence[str], source: Sequence[str] | None
) -> list[int]:
    """Where in an output the odd words of a kind stand; those it lacks stand nowhere."""
    if kind == "repeating":
        return repeated_places(output, reference)
    if kind == "irrelevant" and source is not None:
        return irrelevant_places(output, reference, source)
    return []
