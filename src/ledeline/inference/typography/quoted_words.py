"""Where a quotation of a headline ends or begins, by those of its lede."""

import re
from typing import Final

from ledeline.core.patterns import lazy_pattern
from ledeline.inference.typography.draft import WORD, LedeText

# What stands before the words that someone said.
_TELLS: Final = lazy_pattern(
    r"(?::|\b(?:says?|said|tells? \w+|told \w+|warns?|adds?|asks?)),?\s*$", re.I
)
_REST: Final = lazy_pattern(r"[!?]+| ?\.{3}")


def closing_place(text: str, start: int, limit: int, lede: LedeText) -> int | None:
    """Where a quotation ends that begins at a place; None if that is not known.

    It ends before `limit`, where the next one begins or the text ends.
    """
    if start == 1 and (colon := text.find(": ", start, limit)) > start:
        return colon  # 'We will not go: minister
    words = list(WORD.finditer(text, start, limit))
    best = _most_alike([word.group().lower() for word in words], lede, from_end=False)
    if not best and limit == len(text) and _TELLS.search(text, max(0, start - 40), start - 1):
        best = len(words)
    if not best:
        return None
    end = words[best - 1].end()
    rest = _REST.match(text, end)
    return rest.end() if rest else end


def opening_place(text: str, end: int, limit: int, lede: LedeText) -> int | None:
    """Where a quotation begins that ends at a place, and not before `limit`."""
    if not limit and text[end + 1 : end + 2] == ":":
        return 0  # We will not go': minister
    words = list(WORD.finditer(text, limit, end))
    low = [word.group().lower() for word in reversed(words)]
    best = _most_alike(low, lede, from_end=True)
    if best:
        return words[-best].start()
    colon = text.rfind(": ", limit, end)
    return colon + 2 if colon >= 0 and end + 1 == len(text) else None


def _most_alike(words: list[str], lede: LedeText, *, from_end: bool) -> int:
    """With how many of the words a quoted passage of the lede begins, if they are all of either."""
    best = 0
    for passage in lede.quoted:
        own = passage[::-1] if from_end else passage
        number = 0
        while number < min(len(own), len(words)) and own[number] == words[number]:
            number += 1
        if number in (len(own), len(words)):
            best = max(best, number)
    return best
