"""Which words the verifier doubts, and what the lede says instead."""

import re
from collections.abc import Sequence
from typing import Final

from ledeline.inference.checks.doubt import Doubt, DoubtKind
from ledeline.model.verifier_labels import KINDS
from ledeline.text.function_words import is_content

_WORD: Final = re.compile(r"[^\W_]+(?:[.,'’\-][^\W_]+)*")
_SHARE: Final = 0.6  # words at least this likely wrong, compared with the likeliest, are doubted
_AROUND: Final = 4  # words of the lede that are quoted on each side
_MOST: Final = 8  # words of the lede that are quoted behind the first, if more are sought
_KINDS: Final[dict[str, DoubtKind]] = {"event": "relation"}
_NOT_FOUND: Final = "the lede does not seem to say this"


def verifier_doubts(
    lede: str,
    headline: str,
    words: Sequence[str],
    wrong: Sequence[tuple[int, float]],
    kind: int,
) -> list[Doubt]:
    """The words that are most likely wrong, as one doubt.

    `words` are those of the profile; `wrong` has, for each sub-word, the number of its word and how
    likely it is part of an error.
    """
    likely = [0.0] * len(words)
    for number, probability in wrong:
        if number < len(likely):
            likely[number] = max(likely[number], probability)
    spans = _spans(headline, words)
    known = [n for n, span in enumerate(spans) if span is not None and words[n][:1].isalnum()]
    if not known:
        return []
    best = max(known, key=likely.__getitem__)
    least, first, last = _SHARE * likely[best], best, best
    while first > 0 and spans[first - 1] is not None and likely[first - 1] >= least:
        first -= 1
    while last + 1 < len(words) and spans[last + 1] is not None and likely[last + 1] >= least:
        last += 1
    inside = [n for n in known if first <= n <= last]  # marks at either end are not words
    first, last = inside[0], inside[-1]
    start, end = spans[first][0], spans[last][1]  # type: ignore[index]
    named: DoubtKind = _KINDS.get(KINDS[kind], KINDS[kind])  # type: ignore[arg-type]
    doubted = headline[start:end]
    return [Doubt(start, end, doubted, named, _why(lede, doubted), by_verifier=True)]


def _spans(headline: str, words: Sequence[str]) -> list[tuple[int, int] | None]:
    """Where each word stands in the headline; None where it cannot be found.

    The headline is made of the words, but some may have been replaced or removed.
    """
    exact = _neighbours(headline, words)
    return list(exact) if exact is not None else _found_spans(headline, words)


def _neighbours(headline: str, words: Sequence[str]) -> list[tuple[int, int]] | None:
    """Where words stand that follow each other, with a space at most; None if they do not."""
    spans, behind = list[tuple[int, int]](), 0
    for word in words:
        start = behind + (headline[behind : behind + 1] == " ")
        if not headline.startswith(word, start):
            return None
        behind = start + len(word)
        spans.append((start, behind))
    return None if headline[behind - 1 : behind + 1].isalnum() and behind < len(headline) else spans


def _found_spans(headline: str, words: Sequence[str]) -> list[tuple[int, int] | None]:
    """Where whole words stand in their order; of marks those that come next."""
    spans: list[tuple[int, int] | None] = []
    behind = 0
    for word in words:
        is_mark = not word[:1].isalnum()
        limit = behind + 1 + len(word) if is_mark else len(headline)
        start = headline.find(word, behind, limit)
        end = start + len(word)
        if start >= 0 and (is_mark or _is_whole(headline, start, end)):
            spans.append((start, end))
            behind = end
        else:
            spans.append(None)
    return spans


def _is_whole(headline: str, start: int, end: int) -> bool:
    """Whether no letter or digit touches a word."""
    around = headline[max(0, start - 1) : start] + headline[end : end + 1]
    return not any(map(str.isalnum, around))


def _why(lede: str, doubted: str) -> str:
    """The part of the lede that has the doubted words, quoted."""
    sought = {_stem(word) for word in _WORD.findall(doubted) if is_content(word)}
    words = list(_WORD.finditer(lede))
    places = [n for n, word in enumerate(words) if _stem(word.group()) in sought]
    if not places:
        return _NOT_FOUND
    first = max(0, places[0] - _AROUND)
    last = min(len(words) - 1, max(places[0] + _AROUND, min(places[-1] + 1, places[0] + _MOST)))
    quoted = lede[words[first].start() : words[last].end()]
    return _NOT_FOUND if quoted.casefold() in doubted.casefold() else f'the lede says "{quoted}"'


def _stem(word: str) -> str:
    """Enough of a word to see it again in another form."""
    return word.casefold()[:5]
