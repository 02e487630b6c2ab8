"""Who did it, or to whom, as far as single words and their order show it."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from ledeline.inference.checks.doubt import Doubt, DoubtKind
from ledeline.inference.checks.known_people import TITLES
from ledeline.inference.checks.pair_words import Lede, PairWords, Word
from ledeline.rouge.stem import irregular_forms
from ledeline.text.function_words import FUNCTION_WORDS

# A qualifier, and the words of a headline that keep it.
_QUALIFIERS: Final[dict[str, str]] = {
    "deputy": "no vice",
    "vice": "vp deputy veep",
    "assistant": "deputy",
    "acting": "interim caretaker temporary",
    "interim": "acting caretaker temporary",
    "caretaker": "acting interim",
    "former": "ex onetime once late retired then old",
    "ex": "former",
    "onetime": "former ex",
    "half": "",
    "shadow": "labour",
    "associate": "",
    "estranged": "ex",
    "presumptive": "",
    "suspected": "suspect alleged accused allegedly possible charged",
    "accused": "alleged charged suspect allegedly",
    "attempted": "attempt tried tries bid",
    "fake": "bogus false hoax",
    "mock": "",
}
_MODAL: Final = frozenset("suspected accused attempted fake mock".split())
_HYPHENATED: Final = frozenset(("ex", "half"))
_BE: Final = frozenset("was were is are been being be get got gets".split())
_BEFORE_NOUNS: Final = frozenset("a an the by of his her their its".split())
_SPEECH: Final = frozenset("say said says saying tell tells told".split())
_NEAR: Final = 8  # words from one of the two to the other


class _Qualified(NamedTuple):
    """A head of the lede with its qualifier."""

    qualifier: Word
    head: Word


def qualifier_doubts(pair: PairWords) -> Iterator[Doubt]:
    """Heads that the lede qualifies and the headline does not."""
    qualified = _qualified(pair.lede)
    if not qualified or qualified.keys().isdisjoint(pair.stems):
        return
    for word in pair.words:
        found = qualified.get(word.stem)
        if found is None:
            continue
        qualifier = found.qualifier
        if qualifier.stem in pair.stems or not pair.lows.isdisjoint(
            _QUALIFIERS[qualifier.low].split()
        ):
            continue
        kind: DoubtKind = "modality" if qualifier.low in _MODAL else "role"
        said = pair.lede.quote(qualifier.at, found.head.at)
        yield pair.doubt([word], kind, f'the lede says "{said}"')


def _qualified(lede: Lede) -> dict[str, _Qualified]:
    found = lede.kept.get("qualified")
    if not isinstance(found, dict):
        found = lede.kept["qualified"] = {item.head.stem: item for item in _find(lede)}
    return found


def _find(lede: Lede) -> Iterator[_Qualified]:
    for word, head in pairwise(lede.words):
        if (
            word.low in _QUALIFIERS
            and head.gap in (" ", "-")
            and (head.gap == "-" or word.low not in _HYPHENATED)
            and (not head.capital or head.low in TITLES)
            and head.low not in FUNCTION_WORDS
            and len(lede.places[head.stem]) == 1
        ):
            yield _Qualified(word, head)


def direction_doubts(pair: PairWords) -> Iterator[Doubt]:
    """A did it to B, where the lede has that B did it to A, or that it was done to A by B."""
    places, words = pair.lede.places, pair.lede.words
    for doer, verb, name in zip(pair.words, pair.words[1:], pair.words[2:], strict=False):
        if verb.gap != " " or name.gap != " " or name.possessive or verb.low in FUNCTION_WORDS:
            continue
        if doer.low in FUNCTION_WORDS or name.low in FUNCTION_WORDS or doer.stem == name.stem:
            continue
        one, at, two = (places.get(word.stem, []) for word in (doer, verb, name))
        if len(at) != 1 or not one or not two or not _are_names(words, one[0], two[0]):
            continue
        told = words[at[0]]
        if told.low in _SPEECH or told.capital or doer.possessive or not _is_past(told):
            continue
        passive = _is_passive(words, at[0])
        if passive is None:
            continue
        first, then = (one, two) if passive else (two, one)
        if max(first) < at[0] < min(then) and min(then) - max(first) <= _NEAR:
            said = pair.lede.quote(max(first), min(then))
            yield pair.doubt([doer, verb, name], "role", f'the lede has "{said}"')


def _is_passive(words: list[Word], at: int) -> bool | None:
    """Whether the verb is passive with a by; None where it is passive and says nothing of who."""
    if at and words[at - 1].low in _BEFORE_NOUNS:
        return None
    before = {word.low for word in words[max(at - 2, 0) : at]}
    if at + 1 < len(words) and words[at + 1].low == "by":
        return True
    return False if before.isdisjoint(_BE) else None


def _is_past(word: Word) -> bool:
    return word.low.endswith("ed") or word.low in irregular_forms()


def _are_names(words: list[Word], *places: int) -> bool:
    return all(words[at].capital for at in places)
