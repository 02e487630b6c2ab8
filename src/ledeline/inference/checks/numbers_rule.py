"""A number of the headline that the lede does not have, by value."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cache
from typing import Final

from ledeline.core.patterns import lazy_pattern
from ledeline.inference.checks.amounts import NUMBER_WORDS, Amount, amounts_of, is_year, with_ranges
from ledeline.inference.checks.doubt import Doubt, DoubtKind
from ledeline.inference.checks.pair_words import Lede, PairWords, stem_of

_ABOUT: Final = lazy_pattern(
    r"(?:\b(?:nearly|almost|about|around|some|roughly|approximately|more than|over|at least|up to"
    r"|under|less than|fewer than|close to|above|below|just|past|top[s]?|exceed[s]?)|~|>|<)\s*\W?$",
    re.I,
)
_FIRSTS: Final = "opening debut inaugural earliest maiden new"
_SCORE: Final = lazy_pattern(r"\d[-–]\d")
_DIGIT: Final = lazy_pattern(r"\d")
_FAR: Final = 1.3  # times another number: not about the same


@cache
def _first_stems() -> frozenset[str]:
    return frozenset(map(stem_of, _FIRSTS.split()))


class LedeAmounts:
    """The numbers of a lede, made once."""

    def __init__(self, lede: Lede) -> None:
        self.amounts = with_ranges(amounts_of(lede.text), lede.text)
        self.values = {(amount.value, amount.unit) for amount in self.amounts}
        self.bare = {amount.value for amount in self.amounts}
        first: dict[tuple[float, str, str], Amount] = {}
        for one in self.amounts:
            first.setdefault((one.value, one.unit, one.text), one)
        self.distinct = list(first.values())
        self._by_unit: dict[str, list[Amount]] = {}  # by value
        for one in sorted(self.distinct, key=_value):
            self._by_unit.setdefault(one.unit, []).append(one)

    def like(self, amount: Amount) -> list[Amount]:
        """Those of the same unit that are not much larger or smaller."""
        some, value = self._by_unit.get(amount.unit, []), amount.value
        start = bisect_left(some, value / _FAR, key=_value)
        return some[start : bisect_right(some, value * _FAR, key=_value)]


def number_doubts(pair: PairWords) -> Iterator[Doubt]:
    """Numbers that the lede does not have."""
    if not has_number(pair):
        return
    found = amounts_of(pair.headline)
    own = lede_amounts(pair.lede)
    for amount in found:
        if not _supported(amount, pair, own):
            kind: DoubtKind = "time" if is_year(amount) else "number"
            yield pair.doubt_at(amount.start, amount.end, kind, _why(amount, own))


def has_number(pair: PairWords) -> bool:
    """Whether the headline has any number."""
    return not pair.lows.isdisjoint(NUMBER_WORDS) or _DIGIT.search(pair.headline) is not None


def lede_amounts(lede: Lede) -> LedeAmounts:
    """The numbers of a lede; kept with it."""
    own = lede.kept.get("amounts")
    if not isinstance(own, LedeAmounts):
        own = lede.kept["amounts"] = LedeAmounts(lede)
    return own


def _supported(amount: Amount, pair: PairWords, own: LedeAmounts) -> bool:
    value, unit = amount.value, amount.unit
    if unit == "vague":
        return _vague_supported(amount, own)
    if (value, unit) in own.values or unit in ("x", "quarter"):
        return True  # "double" and "quarter" are words more than numbers
    if value == 1 and not unit and not _in_a_score(amount, pair.headline):
        return True
    if any(_near(amount, other, pair.headline) for other in own.like(amount)):
        return True
    return (
        _in_a_name(amount, pair)
        or (not unit and (value, "th") in own.values and _follows_word_of(pair, amount))
        or (unit == "th" and value == 1 and not pair.lede.stems.isdisjoint(_first_stems()))
    )


def _follows_word_of(pair: PairWords, amount: Amount) -> bool:
    """Season 3, where the lede has the third season."""
    before = [word for word in pair.words if word.end <= amount.start]
    return bool(before) and before[-1].stem in pair.lede.stems


def _in_a_score(amount: Amount, headline: str) -> bool:
    return _SCORE.search(headline, max(amount.start - 3, 0), amount.end + 3) is not None


def _near(amount: Amount, other: Amount, headline: str) -> bool:
    if amount.value == other.value:
        return True
    if not other.value or not amount.value:
        return False
    ratio = amount.value / other.value
    if not 0.8 < ratio < 1.25:
        return False
    if other.figures > amount.figures and amount.value >= 10:
        digits = f"{other.value:.{max(amount.figures - 1, 0)}e}"
        if float(digits) == amount.value:
            return True
    return 0.9 < ratio < 1.1 and _ABOUT.search(headline, 0, amount.start) is not None


def _vague_supported(amount: Amount, own: LedeAmounts) -> bool:
    text = amount.text.lower()
    if any(other.unit == "vague" and other.text.lower().endswith(text) for other in own.amounts):
        return True
    least = {"tens": 20, "dozens": 24, "hundreds": 200, "thousands": 1e3}
    least |= {"millions": 1e6, "billions": 1e9}
    if " of " in text:
        return any(other.value >= 1e4 for other in own.amounts)
    low = least[text]
    return any(low <= other.value < low * 1000 for other in own.amounts)


def _in_a_name(amount: Amount, pair: PairWords) -> bool:
    """Covid-19, G20, Formula 1: the lede has what it hangs on, or the very token."""
    before = pair.headline[: amount.start]
    token = re.search(r"[^\W\d_]+[- ]?$", before)
    if not token:
        return False
    name = token[0][:-1].casefold() if before[-1] in "- " else token[0].casefold()
    return name == "covid" or (before.endswith("-") and name in pair.lede.lows)


def _why(amount: Amount, own: LedeAmounts) -> str:
    others = [other for other in own.distinct if other.unit == amount.unit] or own.distinct
    if not others:
        return "the lede has no number"
    if is_year(amount) and not any(map(is_year, others)):
        return "the lede has no such year"
    nearest = min(others, key=lambda other: _distance(amount.value, other.value))
    return f"the lede has {nearest.text.strip()}"


def _value(amount: Amount) -> float:
    return amount.value


def _distance(one: float, other: float) -> float:
    return abs(one - other) / max(abs(one), abs(other), 1e-9)
