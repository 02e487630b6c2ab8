"""Change what a lede says: the first step to headlines that are false in the way of a model's.

A headline is generated from the changed lede, and paired with the true one. Each change leaves a
sentence that reads well enough, and says something else: two names or numbers in each other's
place, another name or number, a word that limits a claim taken out, cause and effect swapped, a
word replaced by its opposite, two content words in each other's place.
"""

import random
import re
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from ledeline.text.function_words import is_content

Words: TypeAlias = list[str]
Change: TypeAlias = Callable[[Words, random.Random, Sequence[Words]], Words | None]

_LIMITING: Final = frozenset(
    """may might could would should will not no never n't alleged allegedly reportedly suspected
    accused former ex deputy acting vice assistant nearly almost about least most potential possible
    possibly likely planned proposed expected plans planning considering if unless without denied
    denies alternative attempted half former-""".split()
)
_JOINTS: Final = frozenset(
    "after before because as while following amid despite when since".split()
)
_OPPOSITES: Final = [
    tuple(pair.split("/"))
    for pair in """
    win/lose wins/loses won/lost rise/fall rises/falls rose/fell up/down more/less
    before/after for/against with/without approve/reject approved/rejected
    approves/rejects support/oppose supports/opposes supported/opposed increase/decrease
    increased/decreased higher/lower high/low first/last first/second second/third
    over/under from/to above/below gain/loss gains/losses arrested/released
    guilty/innocent accept/refuse accepted/refused open/close opened/closed begin/end
    began/ended buy/sell bought/sold his/her he/she man/woman men/women son/father
    daughter/mother brother/sister husband/wife by/to by/with beat/lose beats/loses
    could/did may/will alive/dead join/leave joined/left best/worst early/late
    largest/smallest Democrats/Republicans Democratic/Republican Monday/Thursday
    Tuesday/Friday Wednesday/Sunday January/June February/July March/August
    April/September May/October north/south east/west northern/southern eastern/western
    million/billion thousands/hundreds old/new young/old son/brother mother/wife
    injured/killed killed/wounded confirmed/denied confirms/denies all/some always/never
    ahead/behind day/week week/month month/year years/months hours/minutes
    """.split()
]
_OPPOSITE: Final = {a: b for one in _OPPOSITES for a, b in (one, one[::-1])}
_AUXILIARIES: Final = frozenset("is are was were has have will".split())
_NUMBER: Final = re.compile(r"\d[\d,.]*$")
_SPELLED: Final = frozenset("two three four five six seven eight nine ten dozen dozens".split())


def plain(word: str) -> str:
    """A word without joiner marks."""
    return word.strip("￭")


def names(words: Words) -> list[tuple[int, int]]:
    """Runs of capitalised words; a single one at the beginning is none."""
    found, start = [], None
    for place, word in enumerate([*words, ""]):
        if plain(word)[:1].isupper():
            start = place if start is None else start
        elif start is not None:
            if place - start > 1 or start > 0:
                found.append((start, place))
            start = None
    return found


def numbers(words: Words) -> list[int]:
    """Places of numbers, in digits or spelled."""
    return [
        place
        for place, word in enumerate(words)
        if _NUMBER.match(plain(word)) or plain(word) in _SPELLED
    ]


def _swapped(words: Words, one: tuple[int, int], other: tuple[int, int]) -> Words:
    (a, b), (c, d) = sorted((one, other))
    return words[:a] + words[c:d] + words[b:c] + words[a:b] + words[d:]


def swap_names(words: Words, rng: random.Random, _: Sequence[Words]) -> Words | None:
    """Two names in each other's place."""
    spans = names(words)
    return _swapped(words, *rng.sample(spans, 2)) if len(spans) > 1 else None


def replace_name(words: Words, rng: random.Random, bank: Sequence[Words]) -> Words | None:
    """A name of another lede instead of one."""
    spans = names(words)
    other = rng.choice(bank)
    others = names(other)
    if not spans or not others:
        return None
    (a, b), (c, d) = rng.choice(spans), rng.choice(others)
    return words[:a] + other[c:d] + words[b:]


def change_number(words: Words, rng: random.Random, _: Sequence[Words]) -> Words | None:
    """Another number, or two in each other's place."""
    places = numbers(words)
    if not places:
        return None
    changed = list(words)
    if len(places) > 1 and rng.random() < 0.5:
        a, b = rng.sample(places, 2)
        changed[a], changed[b] = changed[b], changed[a]
        return changed
    place = rng.choice(places)
    old = changed[place]
    if plain(old) in _SPELLED:
        changed[place] = rng.choice(sorted(_SPELLED))
    else:
        digits = [n for n, character in enumerate(old) if character.isdigit()]
        at = rng.choice(digits)
        changed[place] = old[:at] + rng.choice("123456789") + old[at + (rng.random() < 0.8) :]
    return changed


def drop_limit(words: Words, rng: random.Random, _: Sequence[Words]) -> Words | None:
    """A word that limits a claim taken out."""
    places = [n for n, word in enumerate(words) if plain(word).lower() in _LIMITING]
    if not places:
        return None
    place = rng.choice(places)
    return words[:place] + words[place + 1 :]


def swap_clauses(words: Words, rng: random.Random, _: Sequence[Words]) -> Words | None:
    """What comes after a joint before it, and the other way round."""
    places = [n for n, word in enumerate(words) if plain(word) in _JOINTS]
    places = [n for n in places if 3 < n < len(words) - 4]
    if not places:
        return None
    place = rng.choice(places)
    end = len(words) - 1
    stops = [n for n in range(place + 4, end) if plain(words[n]) in (",", ";")]
    end = stops[0] if stops else end
    first, second = words[:place], words[place + 1 : end]
    return [*second, words[place], *first, *words[end:]]


def opposite(words: Words, rng: random.Random, _: Sequence[Words]) -> Words | None:
    """A word replaced by its opposite."""
    places = [n for n, word in enumerate(words) if word in _OPPOSITE]
    if not places:
        return None
    changed, place = list(words), rng.choice(places)
    changed[place] = _OPPOSITE[changed[place]]
    return changed


def swap_words(words: Words, rng: random.Random, _: Sequence[Words]) -> Words | None:
    """Two content words of similar length in each other's place."""
    places = [n for n, word in enumerate(words) if word.islower() and is_content(word)]
    if len(places) < 4:
        return None
    a = rng.choice(places)
    ending = words[a][-2:]
    alike = [n for n in places if n != a and words[n][-2:] == ending]
    b = rng.choice(alike or [n for n in places if n != a])
    changed = list(words)
    changed[a], changed[b] = changed[b], changed[a]
    return changed


def negate(words: Words, rng: random.Random, _: Sequence[Words]) -> Words | None:
    """`not` or a modal put before or after an auxiliary."""
    places = [
        n for n, w in enumerate(words) if w in ("is", "are", "was", "were", "has", "have", "will")
    ]
    if not places:
        return None
    place = rng.choice(places)
    added = ["not"] if rng.random() < 0.5 else None
    if added:
        return [*words[: place + 1], *added, *words[place + 1 :]]
    verb = "have" if words[place] in ("has", "have") else "be"
    may = ["may", verb] if words[place] != "will" else ["may"]
    return [*words[:place], *may, *words[place + 1 :]]


CHANGES: Final[dict[str, tuple[float, Change]]] = {
    "swap names": (3.0, swap_names),
    "replace name": (1.0, replace_name),
    "change number": (1.5, change_number),
    "drop limit": (2.5, drop_limit),
    "swap clauses": (1.5, swap_clauses),
    "opposite": (2.0, opposite),
    "swap words": (2.0, swap_words),
    "negate": (1.5, negate),
}


def corrupt(words: Words, rng: random.Random, bank: Sequence[Words]) -> tuple[str, Words] | None:
    """A changed lede, and what was changed."""
    weights = {name: weight for name, (weight, _) in CHANGES.items()}
    while weights:
        (name,) = rng.choices(list(weights), list(weights.values()))
        changed = CHANGES[name][1](words, rng, bank)
        if changed and changed != words:
            return name, changed
        del weights[name]
    return None
