"""A lede and a headline in words with character offsets, made once for all rules."""

import unicodedata
from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

from ledeline.core.cache import BoundedCache
from ledeline.core.patterns import lazy_pattern
from ledeline.inference.checks.doubt import Doubt, DoubtKind
from ledeline.rouge.stem import irregular_forms, porter
from ledeline.text.function_words import FUNCTION_WORDS

# Initials with full stops (U.S.), words with inner apostrophes, numbers with their separators.
# A hyphen parts words, so that "ex-minister" has its "ex".
_WORD: Final = lazy_pattern(r"(?:[^\W\d_]\.){2,}|[^\W_]+(?:[.,'’][^\W_]+)*")
_OPENS_SENTENCE: Final = lazy_pattern(r"[.:!?;|\"“‘–—]|(?<!\w)'")
_CACHE: Final = 2**14  # word forms in memory: half a kilobyte each


class WordForm(NamedTuple):
    """What a word is without its place."""

    low: str  # in lower case, without accents and the possessive
    stem: str
    capital: bool
    possessive: bool


class Word(NamedTuple):
    """A word and its place."""

    text: str
    start: int
    end: int
    low: str
    stem: str
    capital: bool  # whether its first letter is one
    possessive: bool
    gap: str  # what stands between it and the word before
    at: int  # which word of the text it is, from 0


def _form(text: str) -> WordForm:
    plain = text.replace("’", "'")
    possessive = False
    if plain.endswith(("'s", "'S")):
        plain, possessive = plain[:-2], True
    low = plain.casefold()
    if not low.isascii():
        low = unicodedata.normalize("NFKD", low)
        low = "".join(char for char in low if not unicodedata.combining(char))
    if "." in low and not low[0].isdigit():
        low = low.replace(".", "")
    return WordForm(low, stem_of(low), text[0].isupper(), possessive)


def stem_of(low: str) -> str:
    """The stem of a word in lower case: of its lemma where it is irregular, Porter's else."""
    if not low.isascii() or not low.isalpha():
        return low
    lemma = irregular_forms().get(low, low)
    if lemma in ("die", "dying", "died", "dies"):
        return "die"
    return porter(lemma) if len(lemma) > 3 else lemma


_FORMS: Final = BoundedCache(_form, _CACHE)


def form_of(word: str) -> WordForm:
    """What a word is without its place."""
    return _FORMS[word]


def words_of(text: str) -> list[Word]:
    """The words of a text."""
    words: list[Word] = []
    behind = 0
    for index, found in enumerate(_WORD.finditer(text)):
        start, end = found.span()
        form = _FORMS[found[0]]
        words.append(Word(found[0], start, end, *form, text[behind:start], index))
        behind = end
    return words


def opens_sentence(word: Word) -> bool:
    """Whether a sentence, a quotation or what follows a colon begins with the word."""
    return word.at == 0 or (len(word.gap) > 1 and _OPENS_SENTENCE.search(word.gap) is not None)


class Lede:
    """A lede in words; keep it for all headlines of the same lede."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = words_of(text)
        self.lows = {word.low for word in self.words}
        self.stems = {word.stem for word in self.words}
        self.kept: dict[str, object] = {}  # what rules make of it once

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """Where each stem stands."""
        places: dict[str, list[int]] = {}
        for word in self.words:
            places.setdefault(word.stem, []).append(word.at)
        return places

    @cached_property
    def capitals(self) -> set[str]:
        """The words with a capital."""
        return {word.low for word in self.words if word.capital}

    @cached_property
    def joined(self) -> set[str]:
        """Each two neighbours written together."""
        return {one.low + two.low for one, two in pairwise(self.words)}

    @cached_property
    def initials(self) -> tuple[str, str]:
        """The first letters of all words, and of those but the little ones."""
        little = {"of", "the", "and", "for", "in", "on", "to", "a", "an"}
        every = "".join(word.low[0] for word in self.words if word.low)
        return every, "".join(word.low[0] for word in self.words if word.low not in little)

    @cached_property
    def capital_initials(self) -> str:
        """The first letters of the words with a capital."""
        return "".join(word.low[0] for word in self.words if word.capital)

    def quote(self, first: int, last: int) -> str:
        """The lede's own text from one word to another, both within."""
        return self.text[self.words[first].start : self.words[last].end]


class PairWords:
    """A headline in words, with its lede."""

    def __init__(self, lede: Lede, headline: str) -> None:
        self.lede = lede
        self.headline = headline
        self.words = words_of(headline)
        self.lows = {word.low for word in self.words}
        self.stems = {word.stem for word in self.words}

    @cached_property
    def lower_case(self) -> bool:
        """Whether it has no capital at all, so that a name looks like any word."""
        return self.headline.islower()

    @cached_property
    def title_case(self) -> bool:
        """Whether every word but the little ones has a capital, as in titles, or none has one."""
        return self.lower_case or not any(
            not word.capital
            and word.text[0].isalpha()
            and word.gap != "-"
            and word.low not in FUNCTION_WORDS
            for word in self.words
        )

    def doubt(self, words: Iterable[Word], kind: DoubtKind, why: str) -> Doubt:
        """A doubt of neighbouring words."""
        span = list(words)
        return self.doubt_at(span[0].start, span[-1].end, kind, why)

    def doubt_at(self, start: int, end: int, kind: DoubtKind, why: str) -> Doubt:
        """A doubt of a part of the headline."""
        return Doubt(start, end, self.headline[start:end], kind, why)
