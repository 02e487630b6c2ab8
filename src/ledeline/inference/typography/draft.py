"""A headline while it is edited, and the lede that it follows."""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

from ledeline.core.patterns import lazy_pattern

_LONG: Final = 4  # letters of words that have a capital in titles; so many such words, too
WORD: Final = lazy_pattern(r"[^\W_]+")
_QUOTED: Final = lazy_pattern(
    r'"([^"]{1,300})"' r"|(?<!\w)'((?:[^'\"]|(?<=\w)'(?=\w)){1,300})'(?!\w)"
)


def is_title(text: str) -> bool:
    """Whether all long words of a headline have a capital, and there are some."""
    long = [word for word in text.split(" ") if len(word) > _LONG]
    return len(long) >= _LONG and not any(word[:1].islower() for word in long)


class SignedNumber(NamedTuple):
    """What a number of the lede has at its sides."""

    currency: str
    is_share: bool
    follower: str


SignedNumbers: TypeAlias = dict[tuple[str, str], list[SignedNumber]]


class Edit(NamedTuple):
    """Characters from `start` up to `end` that become a text."""

    start: int
    end: int
    text: str = ""


class HeadlineDraft(NamedTuple):
    """A text, and the place of each of its characters in the text as it was written."""

    text: str
    places: Sequence[int]

    def edited(self, edits: Iterable[Edit]) -> "HeadlineDraft":
        """The draft after edits that do not overlap, in order."""
        parts, places, behind = list[str](), list[int](), 0
        for start, end, text in edits:
            parts += self.text[behind:start], text
            places += self.places[behind:start]
            places += self._places_of(start, end, len(text))
            behind = end
        parts.append(self.text[behind:])
        places += self.places[behind:]
        return HeadlineDraft("".join(parts), places)

    def _places_of(self, start: int, end: int, size: int) -> list[int]:
        """The places of a text of some size that replaces characters, or is put between two."""
        if start == end:  # a mark behind a word belongs to that word
            before = start > 0 and not self.text[start : start + 1].isalnum()
            return [self.places[start - before]] * size if self.places else [0] * size
        return [self.places[min(start + n, end - 1)] for n in range(size)]


class LedeText:
    """A lede as headlines follow it; each part is made when it is first needed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.spellings: set[str] | None = None  # what `spelling` makes of it
        self.signed: SignedNumbers | None = None  # what `signs` makes of it

    @cached_property
    def low(self) -> str:
        """The text in lower case."""
        return self.text.lower()

    @cached_property
    def words(self) -> list[re.Match[str]]:
        """Runs of letters and digits."""
        return list(WORD.finditer(self.text))

    @cached_property
    def written(self) -> frozenset[str]:
        """The words as they are written."""
        return frozenset(WORD.findall(self.text))

    @cached_property
    def forms(self) -> dict[str, set[str]]:
        """How each word is written, by the word in lower case."""
        forms: dict[str, set[str]] = {}
        for word in self.written:
            forms.setdefault(word.lower(), set()).add(word)
        return forms

    def between(self, number: int) -> str:
        """What stands between a word and the one before."""
        return self.text[self.words[number - 1].end() : self.words[number].start()]

    def is_in_capitals(self, number: int) -> bool:
        """Whether the word before or behind a word is all in capitals."""
        around = self.words[max(0, number - 1) : number] + self.words[number + 1 : number + 2]
        return any(len(word[0]) > 1 and word[0].isupper() for word in around)

    @cached_property
    def quoted(self) -> list[list[str]]:
        """The words of each quoted passage, in lower case."""
        passages = (one or other for one, other in _QUOTED.findall(self.text))
        return [WORD.findall(passage.lower()) for passage in passages]
