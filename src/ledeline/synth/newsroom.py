"""The synthetic newsroom: invented ledes and headlines with gold alignments.

A story is made from templates. A word of the lede may have a key; a word of the headline with the
same key comes from it. The gold alignment follows from the keys: no link is guessed from the
spelling. The templates and their notation are in :mod:`ledeline.synth.desks`.

Story number k of a seed depends on the two only. All random numbers come from ``random()`` of the
standard library, which gives the same numbers in every version of Python.
"""

import itertools
import random
import re
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple, TypeAlias

from ledeline.synth import lexicon
from ledeline.synth.clauses import CLAUSES
from ledeline.synth.desks import SCENES

DESKS = tuple(dict.fromkeys(scene.desk for scene in SCENES))
SHORTEST_LEDE = 12  # white-space words
LONGEST_LEDE = 60
ARTICLES = ("a", "an", "the")

Token: TypeAlias = tuple[str, str]  # a word or a mark of punctuation, and its key ("" for none)
Forms: TypeAlias = dict[str, list[Token]]  # the words of a slot in the "lede", the "headline", ...


class Story(NamedTuple):
    """A lede, its headline, and the gold alignment of their white-space words."""

    lede: str
    headline: str
    alignment: str  # Pharaoh: "i-j" for lede word i and headline word j, both from 0, sorted


def generate(num_pairs: int, seed: int) -> Iterator[Story]:
    """Write stories number 0, 1, ... of the newsroom with this seed."""
    for number in range(num_pairs):
        _, story = write_story(seed, number)
        yield story


def write_story(seed: int, number: int) -> tuple[str, Story]:
    """Write one story; return its desk and the story."""
    uniform = random.Random(f"{seed}/{number}").random
    desk = DESKS[int(uniform() * len(DESKS))]
    while (story := _attempt(desk, uniform)) is None:
        pass
    return desk, story


def _attempt(desk: str, uniform: Callable[[], float]) -> Story | None:
    """Write a story for this desk; None if its lede is too short or too long."""
    scenes = _scenes(desk)
    ledes, headlines = scenes[int(uniform() * len(scenes))]
    draft = Draft(uniform)
    lede = _linearise(draft.expand(ledes[int(uniform() * len(ledes))], "lede"))
    if not SHORTEST_LEDE <= len(lede) <= LONGEST_LEDE:
        return None
    draft.keys = frozenset(key for _, key in lede)
    headline = _linearise(_choose_headline(headlines, draft))
    return Story(_text(lede) + ".", _text(headline), _pharaoh(lede, headline))


def _choose_headline(headlines: tuple["Nodes", ...], draft: "Draft") -> list[Token]:
    """Choose a headline that says only what the lede says."""
    start = int(draft.uniform() * len(headlines))
    for headline in headlines[start:] + headlines[:start]:
        tokens = draft.expand(headline, "headline")
        if draft.has_said(tokens):
            return tokens
    raise AssertionError(f"no headline fits a lede with the keys {sorted(draft.keys)}")


def _pharaoh(lede: list[Token], headline: list[Token]) -> str:
    """Link each headline word with the lede words of the same key."""
    places: dict[str, list[int]] = {}
    for j, (_, key) in enumerate(headline):
        if key:
            places.setdefault(key, []).append(j)
    return " ".join(f"{i}-{j}" for i, (_, key) in enumerate(lede) for j in places.get(key, ()))


# -- from tokens to text --------------------------------------------------------------------------

_VOWEL_SOUND = re.compile(
    r"(?!eu|uni|us[eu]|one\b|once|UN\b)(?:[aeiou]|hour|heir|honest|\$?8|\$?1[18]\b)", re.IGNORECASE
)


def _linearise(tokens: list[Token]) -> list[Token]:
    """Join punctuation to the words before it, choose "a" or "an", start with a capital."""
    words: list[Token] = []
    for text, key in tokens:
        last, last_key = words[-1] if words else (",", "")
        if text == ",":
            if not last.endswith(","):
                words[-1] = (last + ",", last_key)
        elif text == "'s":
            words[-1] = (last + ("'" if last.endswith("s") else "'s"), last_key)
        else:
            if last in {"a", "A"} and _VOWEL_SOUND.match(text):
                words[-1] = (last + "n", last_key)
            words.append((text, key))
    words[-1] = (words[-1][0].rstrip(","), words[-1][1])
    words[0] = (words[0][0][0].upper() + words[0][0][1:], words[0][1])
    return words


def _text(words: list[Token]) -> str:
    return " ".join(text for text, _ in words)


# -- templates ------------------------------------------------------------------------------------


class Literal(NamedTuple):
    """``word`` or ``word/key``."""

    token: Token


class Slot(NamedTuple):
    """``{name}``, ``{name.form}``, ``{name~}`` (not linked) or ``{name*}`` (a distractor)."""

    name: str
    form: str
    mark: str


class Alternatives(NamedTuple):
    """``[one|other]``."""

    options: tuple["Nodes", ...]


class OptionalPart(NamedTuple):
    """``(words)``."""

    body: "Nodes"


Nodes: TypeAlias = tuple[Literal | Slot | Alternatives | OptionalPart, ...]

_PIECE = re.compile(r"[()\[\]|]|\{(\w+)(?:\.(\w+))?([~*]?)\}|[^\s()\[\]|{}]+")


def parse(template: str, scope: str = "/") -> Nodes:
    """Parse a template; ``scope`` is a prefix of the keys of its words."""
    open_brackets: list[list[Nodes]] = [[()]]  # the options of each so far
    for match in _PIECE.finditer(template):
        piece = match[0]
        if piece in "([":
            open_brackets.append([()])
        elif piece == "|":
            open_brackets[-1].append(())
        else:
            node: Literal | Slot | Alternatives | OptionalPart
            if piece == ")":
                node = OptionalPart(open_brackets.pop()[0])
            elif piece == "]":
                node = Alternatives(tuple(open_brackets.pop()))
            elif match[1]:
                node = Slot(match[1], match[2] or "", match[3])
            else:
                word, slash, key = piece.partition("/")
                node = Literal((word, scope + (key or word.lower()) if slash else ""))
            open_brackets[-1][-1] += (node,)
    return open_brackets[0][0]


@cache
def _scenes(desk: str) -> tuple[tuple[tuple[Nodes, ...], tuple[Nodes, ...]], ...]:
    """Parse the scenes of a desk: the ledes and the headlines of each."""
    return tuple(
        (tuple(map(parse, ledes.split(";"))), tuple(map(parse, headlines.split(";"))))
        for its_desk, ledes, headlines in SCENES
        if its_desk == desk
    )


@cache
def _entries(name: str) -> tuple[tuple[Nodes, Nodes], ...]:
    """Parse the entries of a slot: the words for the lede, and those for the headline."""
    kind = _kind(name)
    entries = (lexicon.WORDS.get(kind) or CLAUSES[kind]).split(";")
    sides = (entry.partition("=") for entry in entries)
    return tuple(_parse_entry(lede, headline, f"{name}.") for lede, _, headline in sides)


def _parse_entry(lede: str, headline: str, scope: str) -> tuple[Nodes, Nodes]:
    """Parse both sides of an entry; words without keys get them here."""
    if not any(mark in lede for mark in "/{["):
        headline = headline or " ".join(word for word in lede.split() if word not in ARTICLES)
        lengths = [sum(w not in ARTICLES for w in side.split()) for side in (lede, headline)]
        one_to_one = lengths[0] == lengths[1]
        lede, headline = _number(lede, one_to_one), _number(headline, one_to_one)
    return parse(lede, scope), parse(headline, scope)


def _number(phrase: str, one_to_one: bool) -> str:
    """Give the words of a phrase, except articles, the keys 0, 1, ..., or all the key 0."""
    numbers = itertools.count() if one_to_one else itertools.repeat(0)
    return " ".join(w if w in ARTICLES else f"{w}/{next(numbers)}" for w in phrase.split())


@cache
def _kind(name: str) -> str:
    return name.rstrip("0123456789")


# -- a story being written ------------------------------------------------------------------------


class Draft:
    """A story in progress: its random numbers, its slots, and the keys of its lede."""

    def __init__(self, uniform: Callable[[], float]) -> None:
        self.uniform = uniform
        self.keys: frozenset[str] = frozenset()
        self._slots: dict[str, Forms] = {}
        self._taken: set[tuple[str, int]] = set()

    def expand(self, nodes: Nodes, side: str) -> list[Token]:
        """Expand a template for one side, the lede or the headline."""
        tokens: list[Token] = []
        for node in nodes:
            if isinstance(node, Literal):
                tokens.append(node.token)
            elif isinstance(node, Slot):
                forms = self.fill(node.name) if node.mark == "*" else self.slot(node.name)
                words = forms[node.form or side]
                tokens += [(text, "") for text, _ in words] if node.mark else words
            elif isinstance(node, Alternatives):
                tokens += self.expand(node.options[int(self.uniform() * len(node.options))], side)
            elif side == "headline":
                words = self.expand(node.body, side)
                tokens += words if self.has_said(words) else []
            elif self.uniform() < 0.5:
                tokens += self.expand(node.body, side)
        return tokens

    def has_said(self, tokens: list[Token]) -> bool:
        """Whether the lede has all keys of these words."""
        return all(key in self.keys for _, key in tokens if key)

    def slot(self, name: str) -> Forms:
        """The words of a slot, the same throughout the story."""
        if name not in self._slots:
            self._slots[name] = self.fill(name)
        return self._slots[name]

    def fill(self, name: str) -> Forms:
        """Choose new words for a slot."""
        kind = _kind(name)
        if kind in MAKERS:
            return MAKERS[kind](self, name)
        entries = _entries(name)
        lede, headline = entries[self.pick(kind, len(entries))]
        return {"lede": self.expand(lede, "lede"), "headline": self.expand(headline, "headline")}

    def pick(self, kind: str, size: int) -> int:
        """Choose a number below ``size``, low ones more often, none twice while others are left."""
        chance = self.uniform()
        skewed = chance * chance * chance if size > 500 else min(chance, self.uniform())
        rank = int(size * skewed)
        for _ in range(size):
            if (kind, rank) not in self._taken:
                break
            rank = (rank + 1) % size
        self._taken.add((kind, rank))
        return rank

    def between(self, low: int, high: int) -> int:
        """Choose an integer of the range; low ones are likelier."""
        return low + int((high - low + 1) * self.uniform() * self.uniform())


# -- names ----------------------------------------------------------------------------------------


@cache
def _names(kind: str) -> tuple[str, ...]:
    """Make all names of a kind, in pseudo-random order; the first will be the commonest."""
    pieces = (piece.split() for piece in lexicon.NAMES[kind])
    names = map("".join, itertools.product(*pieces))
    return tuple(sorted(names, key=lambda name: zlib.crc32(name.encode())))


def _name(draft: Draft, kind: str) -> str:
    names = _names(kind)
    return names[draft.pick(kind, len(names))]


def _linked(lede: str, headline: str, key: str) -> Forms:
    """Link all words of the lede with all words of the headline."""
    return {
        "lede": [(word, key) for word in lede.split()],
        "headline": [(word, key) for word in headline.split()],
    }


def _single(draft: Draft, slot: str) -> Forms:
    """A city, a storm: one word, the same in lede and headline."""
    name = _name(draft, _kind(slot))
    return _linked(name, name, slot)


def _person(draft: Draft, slot: str) -> Forms:
    """Given name and surname in the lede, the surname alone in the headline."""
    given, surname = (_name(draft, "given"), ""), (_name(draft, "surname"), slot)
    return {"lede": [given, surname], "headline": [surname]}


def _country(draft: Draft, slot: str) -> Forms:
    """A country, and its adjective, of which a headline makes the country."""
    name = _name(draft, "country")
    adjective = name + ("n" if name.endswith("a") else "i")
    return {**_linked(name, name, slot), "adj": [(adjective, slot)]}


def _company(draft: Draft, slot: str) -> Forms:
    """A company, often with a suffix in the lede, always without it in the headline."""
    name, suffix = (_name(draft, "company"), slot), (_name(draft, "suffix"), "")
    return {"lede": [name, suffix] if draft.uniform() < 0.6 else [name], "headline": [name]}


def _team(draft: Draft, slot: str) -> Forms:
    """A team: its city and its nickname in the lede, its city alone in the headline."""
    city, nickname = (_name(draft, "city"), slot), (_name(draft, "nickname"), "")
    return {"lede": [city, nickname], "headline": [city]}


# -- numbers --------------------------------------------------------------------------------------

_FIGURES: dict[str, Callable[[int], str]] = {
    "tenths": lambda value: f"{value // 10}.{value % 10}",
    "grouped": lambda value: f"{value:,}",
    "hundreds": lambda value: f"{value * 100 if value < 100 else value // 10 * 1000:,}",
    "dollars": lambda value: f"${value}",
    "thousands of dollars": lambda value: f"${value},000",
}


def _count(draft: Draft, slot: str) -> Forms:
    """A number in figures; a small one may be spelled out in the lede."""
    low, high, style = lexicon.NUMBERS[_kind(slot)]
    value = draft.between(low, high)
    figures = _FIGURES.get(style, str)(value)
    spelled = style == "spelled" and (value < 10 or draft.uniform() < 0.5)
    return _linked(lexicon.NUMBER_WORDS.get(value, figures) if spelled else figures, figures, slot)


def _money(draft: Draft, slot: str) -> Forms:
    """A sum: "$3.4 billion" or "3.4 billion dollars" in the lede, "$3.4bn" in the headline."""
    value, scale, short = f"{draft.between(11, 499) / 10:g}", "billion", "bn"
    if _kind(slot) == "fee" or draft.uniform() < 0.4:
        value, scale, short = f"{draft.between(2, 95)}", "million", "m"
    lede = f"${value} {scale}" if draft.uniform() < 0.7 else f"{value} {scale} dollars"
    return _linked(lede, f"${value}{short}", slot)


def _rate(draft: Draft, slot: str) -> Forms:
    """An interest rate after a change: its value, the value before, and the step."""
    quarters = draft.between(5, 40)
    step = 1 if draft.uniform() < 0.7 else 2
    before = quarters - step if _kind(slot) == "hike" else quarters + step
    return {
        **_linked(f"{quarters / 4:g}", f"{quarters / 4:g}", slot),
        "before": [(f"{before / 4:g}", f"{slot}.before")],
        "step": [(word, "") for word in ("a quarter point", "half a point")[step - 1].split()],
    }


def _score(draft: Draft, slot: str) -> Forms:
    """A result of football, the winner's goals first; or a draw."""
    fewer = draft.between(0, 2)
    more = fewer if _kind(slot) == "draw" else fewer + draft.between(1, 4)
    return _linked(f"{more}-{fewer}", f"{more}-{fewer}", slot)


MAKERS: dict[str, Callable[[Draft, str], Forms]] = {
    **dict.fromkeys(lexicon.NUMBERS, _count),
    **dict.fromkeys(("city", "storm"), _single),
    **dict.fromkeys(("money", "fee"), _money),
    **dict.fromkeys(("hike", "cut"), _rate),
    **dict.fromkeys(("score", "draw"), _score),
    "person": _person,
    "country": _country,
    "company": _company,
    "team": _team,
}
