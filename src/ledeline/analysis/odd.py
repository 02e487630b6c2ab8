"""Odd generation (Section "Does SPM reduce odd-gen?"): words repeated, lacking or irrelevant.

Counted on whole words, without the marks of a text profile (`Profile.plain`), per headline.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ledeline.words import is_content


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
        repeating=_num_repeating(output, reference),
        lacking=max(0, len(reference) - len(output)),
        irrelevant=None if source is None else _num_irrelevant(output, [*reference, *source]),
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


def _num_repeating(output: Sequence[str], reference: Sequence[str]) -> int:
    wanted = Counter(reference)
    times = Counter(output)
    return sum(max(0, times[word] - wanted[word]) for word in times if times[word] > 1)


def _num_irrelevant(output: Sequence[str], relevant: Iterable[str]) -> int:
    known = set(map(str.casefold, relevant))
    return sum(is_content(word) and word.casefold() not in known for word in output)
