"""Odd generation (Section "Does SPM reduce odd-gen?"): words repeated, lacking or irrelevant.

Counted on whole words, without the marks of a text profile (`Profile.plain`), per headline.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

# "us" is not here: in headlines it is mostly the country.
FUNCTION_WORDS: Final = frozenset(
    """
    a an the this that these those each every either neither some any no all both such
    i me my we our you your he him his she her it its they them their who whom whose which what
    about above across after against along among around as at before behind below between by
    despite down during for from in into near of off on onto out over per since through to toward
    towards under until up upon via with within without
    and or but nor so yet if unless because although though while than whether when where why how
    am is are was were be been being do does did have has had having
    will would shall should can could may might must not
    there here also too
    's 're 've 'll 'd 'm n't aren't can't cannot couldn't didn't don't doesn't hasn't haven't isn't
    wasn't weren't won't wouldn't
    -lrb- -rrb- -lsb- -rsb- -lcb- -rcb-
    """.split()
)


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


def is_content(word: str) -> bool:
    """Whether a word has a letter or digit and is no function word; ``##`` and ``--`` are not."""
    plain = word.casefold().replace("’", "'")
    return plain not in FUNCTION_WORDS and any(map(str.isalnum, plain))
