"""What a lede lets a generator write: which numbers, and which names, sub-word by sub-word.

A number that the lede does not have cannot be written then. Names are forbidden where they are one
sub-word, as those that the generator met often are; a name that it spells in pieces is left to
the rule. Rules are stricter than this: what passes here may still be doubted.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from ledeline.core.patterns import lazy_pattern
from ledeline.inference.checks.amounts import SMALL_NUMBERS, Amount, is_year
from ledeline.inference.checks.known_people import known_people, short_forms
from ledeline.inference.checks.names_rule import reads_as_name
from ledeline.inference.checks.numbers_rule import lede_amounts
from ledeline.inference.checks.pair_words import Lede, form_of
from ledeline.inference.checks.place_names import places_around, places_meant
from ledeline.text.tokenizer import Tokenizer

_DIGIT: Final = lazy_pattern(r"\d")
_FIGURES: Final = lazy_pattern(r"[\w.,]+")
_CONTINUED: Final = "@@"
_SCALES: Final = (
    (1e3, ("k",)),
    (1e6, ("m", "mn", " mln", " million")),
    (1e9, ("bn", "b", " bln", " billion")),
    (1e12, ("tn", "trn", " trillion")),
)
_INDIAN_SCALES: Final = ((1e5, (" lakh",)), (1e7, (" crore", "cr")))
_INDIAN: Final = lazy_pattern(r"lakh|crore|\dcr\b", re.I)
_ORDINALS: Final = ("st", "nd", "rd", "th")
_SHORTEST: Final = 4  # letters of a name; shorter ones are often the end of a longer word
_ALIKE: Final = 5  # letters that two forms of a name share


class LedeVocabulary:
    """The sub-words that headlines of a lede may have."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer, types = tokenizer, tokenizer.types
        self._digits = frozenset(n for n, text in enumerate(types) if _DIGIT.search(text))
        whole = {n: text for n, text in enumerate(types) if not text.endswith(_CONTINUED)}
        self._number_words = {
            n: float(SMALL_NUMBERS[text.casefold()])
            for n, text in whole.items()
            if SMALL_NUMBERS.get(text.casefold(), 0) > 1
        }
        names = {
            n: form_of(text)
            for n, text in whole.items()
            if len(text) >= _SHORTEST and text.istitle() and text.isalpha() and reads_as_name(text)
        }
        self._names = {n: form.low for n, form in names.items()}
        self._stems = {form.low: form.stem for form in names.values()}
        self._by_word, self._by_place = self._indexes()

    def _indexes(self) -> tuple[dict[str, set[int]], dict[str, set[int]]]:
        """The names that a word of the lede allows, and those that a place allows."""
        by_word: dict[str, set[int]] = defaultdict(set)
        by_place: dict[str, set[int]] = defaultdict(set)
        numbers: dict[str, list[int]] = defaultdict(list)
        for n, low in self._names.items():
            numbers[low].append(n)
            for word in (low, self._stems[low], *short_forms().get(low, ())):
                by_word[word].add(n)
            for place in places_meant(low):
                by_place[place].add(n)
        for surname, first_names in known_people().items():
            for first_name in first_names:
                by_word[surname].update(numbers.get(first_name, ()))
        return dict(by_word), dict(by_place)

    def forbidden(self, text: str) -> list[int]:
        """The sub-words that a headline of this lede must not have."""
        lede = Lede(text)
        digits = self._digits - self._allowed_digits(lede)
        own = lede.lows & SMALL_NUMBERS.keys()  # three of three-quarters is no amount
        values = lede_amounts(lede).bare | {float(SMALL_NUMBERS[low]) for low in own}
        words = (n for n, value in self._number_words.items() if value not in values)
        return sorted({*digits, *words, *(self._names.keys() - self._allowed_names(lede))})

    # --- numbers --------------------------------------------------------------------------------

    def _allowed_digits(self, lede: Lede) -> set[int]:
        written = {one for one in _FIGURES.findall(lede.text) if _DIGIT.search(one)}
        written.update(chain.from_iterable(map(_forms, lede_amounts(lede).amounts)))
        if any(low.startswith(("covid", "coronavirus")) for low in lede.lows):
            written.add("Covid-19")
        if "formula" in lede.lows:
            written.add("F1")
        return set(chain.from_iterable(map(self._ids, ["1", *written])))

    def _ids(self, text: str) -> Iterable[int]:
        return self._tokenizer.encode(self._tokenizer.words(text))

    # --- names ----------------------------------------------------------------------------------

    def _allowed_names(self, lede: Lede) -> set[int]:
        allowed: set[int] = set()
        for word in lede.lows | lede.stems:
            allowed |= self._by_word.get(word, set())
        for place in places_around(lede.lows):
            allowed |= self._by_place.get(place, set())
        within = " ".join([*lede.capitals, *lede.joined])
        left = self._names.keys() - allowed
        return allowed | {n for n in left if self._names[n][:_ALIKE] in within}


def _forms(amount: Amount) -> Iterator[str]:
    """How else a headline may write a number: 282m, 1,200, 3rd, 2.5bn."""
    if amount.unit == "vague":
        return
    value = amount.value
    yield from _figures(value)
    if value == int(value) and value < 1e3:
        yield from (f"{int(value)}{ending}" for ending in (*_ORDINALS, "s"))
    for scale, endings in () if is_year(amount) else _scales(amount):
        if scale <= value < 1000 * scale:
            for figures in _figures(value / scale):
                yield from (figures + ending for ending in endings)


def _scales(amount: Amount) -> Iterable[tuple[float, tuple[str, ...]]]:
    """Lakh and crore only of rupees, or where the lede counts in them: 282 million is no 28."""
    is_indian = amount.unit == "₹" or _INDIAN.search(amount.text) is not None
    return (*_SCALES, *_INDIAN_SCALES) if is_indian else _SCALES


def _figures(value: float) -> Iterator[str]:
    """A number in digits, exact and rounded."""
    yield f"{value:.15g}"  # never 5e+07, whose 7 the lede does not have
    if value >= 10:
        for places in (0, 1):  # two figures, and one more
            rounded = float(f"{value:.{places + 1}e}")
            yield from (f"{rounded:.15g}", f"{rounded:,.0f}", f"{rounded:.0f}")
        yield from (f"{value:.0f}", f"{value:,.0f}", f"{value:.1f}")
    else:
        yield from (f"{value:.0f}", f"{value:.1f}", f"{value:.2f}")
