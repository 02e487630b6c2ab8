"""What two texts share: the counts that ROUGE scores are made of."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

_TOKEN = re.compile(r"[a-z0-9]+")


class Overlap(NamedTuple):
    """How many units match, and how many each text has."""

    num_matches: int
    num_candidate: int
    num_reference: int


class Statistics(NamedTuple):
    """The overlap in words, in pairs of words, and in order."""

    rouge1: Overlap
    rouge2: Overlap
    rouge_l: Overlap


def gather(candidate: str, reference: str) -> Statistics:
    """Compare two texts."""
    ours, theirs = tokens(candidate), tokens(reference)
    return Statistics(
        ngram_overlap(ours, theirs, 1),
        ngram_overlap(ours, theirs, 2),
        Overlap(lcs_length(ours, theirs), len(ours), len(theirs)),
    )


def tokens(text: str) -> list[str]:
    """Text -> the tokens that are compared: runs of a-z and 0-9 after A-Z became a-z.

    ROUGE-1.5.5 reads bytes: ``-`` stands alone, any other byte is a space, and a token must start
    with a letter, a digit or ``$``, which by then is a space. So what is left is these runs, and
    all bytes beyond ASCII part words. Here each character beyond ASCII becomes one ``?``, which
    parts them as well as its bytes in UTF-8. A text is one line; a newline in it is a space.
    """
    return _TOKEN.findall(text.encode("ascii", "replace").lower().decode("ascii"))


def ngram_overlap(candidate: Sequence[str], reference: Sequence[str], n: int) -> Overlap:
    """Count n-grams; one of the candidate matches at most as often as the reference has it."""
    ours, theirs = _ngrams(candidate, n), _ngrams(reference, n)
    num_matches = sum(min(count, theirs[gram]) for gram, count in ours.items() if gram in theirs)
    return Overlap(num_matches, max(0, len(candidate) - n + 1), max(0, len(reference) - n + 1))


def _ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[start:] for start in range(n)), strict=False))


def lcs_length(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the longest common subsequence.

    A row of the usual table grows by 0 or 1 from cell to cell. The bits of ``level`` are the cells
    of one row, 0 where it grows; an addition, whose carry runs along the bits, makes the next row
    (Hyyrö, 2004).
    """
    places: dict[str, int] = {}
    for number, word in enumerate(one):
        places[word] = places.get(word, 0) | 1 << number
    level = full = (1 << len(one)) - 1
    for word in other:
        matches = level & places.get(word, 0)
        level = (level + matches | level - matches) & full
    return len(one) - level.bit_count()
