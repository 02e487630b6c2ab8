"""A number that the lede has of something else: four goals, where it has two goals in game four."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from ledeline.inference.checks.amounts import Amount, amounts_of
from ledeline.inference.checks.doubt import Doubt
from ledeline.inference.checks.numbers_rule import has_number, lede_amounts
from ledeline.inference.checks.pair_words import Lede, PairWords, Word
from ledeline.text.function_words import FUNCTION_WORDS

_ANYTHING: Final = frozenset("year month day week peopl time".split())
_MONTHS: Final = frozenset("jan feb mar apr jun jul aug sept sep oct nov dec".split())


def count_doubts(pair: PairWords) -> Iterator[Doubt]:
    """Numbers of things that the lede counts with another number."""
    if not has_number(pair):
        return
    counted = _counted(pair.lede)
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
        same = counted.by_value.get((amount.value, amount.unit))
        if same is None or stem in same:
            continue
        others = counted.by_thing.get(stem, [])
        other = next((one for one in others if one.value != amount.value), None)
        if other is not None:
            last = _behind(other, pair.lede.words, 1)[0]
            why = f"the lede has {pair.lede.text[other.start : last.end]}"
            yield pair.doubt_at(amount.start, amount.end, "number", why)


class _Counted:
    """What a lede counts, made once."""

    def __init__(self, lede: Lede) -> None:
        self.by_value: dict[tuple[float, str], set[str]] = {}  # the stems behind a number
        self.by_thing: dict[str, list[Amount]] = {}  # the numbers right before a stem
        for one in lede_amounts(lede).amounts:
            stems = [word.stem for word in _behind(one, lede.words, 4)]
            self.by_value.setdefault((one.value, one.unit), set()).update(stems)
            for stem in dict.fromkeys(stems[:2]):
                self.by_thing.setdefault(stem, []).append(one)


def _counted(lede: Lede) -> _Counted:
    """What a lede counts; kept with it."""
    found = lede.kept.get("counted")
    if not isinstance(found, _Counted):
        found = lede.kept["counted"] = _Counted(lede)
    return found


def _behind(amount: Amount, words: list[Word], number: int) -> list[Word]:
    """The words behind a number, up to a little word or a comma."""
    found: list[Word] = []
    first = bisect_left(words, amount.end, key=lambda word: word.start)
    for word in words[first : first + number]:
        if word.low in FUNCTION_WORDS or (found and word.gap.strip(" -")):
            break
        found.append(word)
    return found
