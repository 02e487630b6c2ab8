"""A number that the lede has of something else: four goals, where it has two goals in game four."""

from collections.abc import Iterator
from typing import Final

from ledeline.inference.checks.amounts import Amount, amounts_of
from ledeline.inference.checks.doubt import Doubt
from ledeline.inference.checks.numbers_rule import has_number, lede_amounts
from ledeline.inference.checks.pair_words import PairWords, Word
from ledeline.text.function_words import FUNCTION_WORDS

_ANYTHING: Final = frozenset("year month day week peopl time".split())
_MONTHS: Final = frozenset("jan feb mar apr jun jul aug sept sep oct nov dec".split())


def count_doubts(pair: PairWords) -> Iterator[Doubt]:
    """Numbers of things that the lede counts with another number."""
    if not has_number(pair):
        return
    own = lede_amounts(pair.lede).amounts
    for amount in amounts_of(pair.headline):
        if amount.unit not in ("", "th"):
            continue
        thing = _behind(amount, pair.words, 1)
        if not thing or thing[0].gap not in (" ", "-") or thing[0].stem in _ANYTHING:
            continue
        before = [word.low for word in pair.words if word.end <= amount.start]
        if before and before[-1] in _MONTHS:
            continue
        stem = thing[0].stem
        same = [one for one in own if one.value == amount.value and one.unit == amount.unit]
        if not same or any(_counts(one, stem, pair, 4) for one in same):
            continue
        for other in own:
            if other.value != amount.value and _counts(other, stem, pair, 2):
                last = _behind(other, pair.lede.words, 1)[0]
                why = f"the lede has {pair.lede.text[other.start : last.end]}"
                yield pair.doubt_at(amount.start, amount.end, "number", why)
                break


def _behind(amount: Amount, words: list[Word], number: int) -> list[Word]:
    """The words behind a number, up to a little word or a comma."""
    found: list[Word] = []
    for word in words:
        if word.start >= amount.end:
            if word.low in FUNCTION_WORDS or (found and word.gap.strip(" -")):
                break
            found.append(word)
            if len(found) == number:
                break
    return found


def _counts(amount: Amount, stem: str, pair: PairWords, reach: int) -> bool:
    return any(word.stem == stem for word in _behind(amount, pair.lede.words, reach))
