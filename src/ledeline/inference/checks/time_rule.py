"""Days, months and weeks of the headline that the lede does not have."""

import re
from collections.abc import Iterator
from typing import Final

from ledeline.core.patterns import lazy_pattern
from ledeline.inference.checks.doubt import Doubt
from ledeline.inference.checks.pair_words import PairWords

_DAYS: Final = "monday tuesday wednesday thursday friday saturday sunday".split()
_MONTHS: Final = (
    "january february march april may june july august september october november december"
).split()
_SHORT: Final = {
    **{day[:3]: day for day in _DAYS},
    **{month[:3]: month for month in _MONTHS},
    "sept": "september",
    "tues": "tuesday",
    "thurs": "thursday",
}
_CALENDAR: Final = {**{word: word for word in (*_DAYS, *_MONTHS)}, **_SHORT}
_UNSURE: Final = frozenset(("march", "may", "mar", "sat", "sun", "wed", "jun", "august"))
_PHRASE: Final = lazy_pattern(
    r"\b(?:(?:last|next|this|past) (?:week|month|year|night|weekend|summer|winter|spring|autumn"
    r"|fall|season)|yesterday|tomorrow|overnight)\b",
    re.I,
)


def time_doubts(pair: PairWords) -> Iterator[Doubt]:
    """Days, months and phrases such as "last week" that the lede does not have."""
    for word in pair.words:
        full = _CALENDAR.get(word.low)
        if full is None or not word.capital or word.low in _UNSURE:
            continue
        if not _has(pair, full):
            yield pair.doubt([word], "time", f"the lede does not say {full.capitalize()}")
    for found in _PHRASE.finditer(pair.headline):
        if found[0].casefold() not in pair.lede.text.casefold():
            why = f'the lede does not say "{found[0].casefold()}"'
            yield pair.doubt_at(*found.span(), "time", why)


def _has(pair: PairWords, full: str) -> bool:
    lows = pair.lede.lows
    return full in lows or any(low in lows for low, other in _SHORT.items() if other == full)
