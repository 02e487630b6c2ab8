"""Who did it, or to whom, as far as single words and their order show it."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from ledeline.inference.checks.common_words import is_common
from ledeline.inference.checks.doubt import Doubt, DoubtKind
from ledeline.inference.checks.known_people import TITLES
from ledeline.inference.checks.pair_words import Lede, Pair, Word
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
    "retired": "former ex",
    "co": "",
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
    "possible": "may might could potential potentially possibly",
}
_MODAL: Final = frozenset("suspected accused attempted possible fake mock".split())
_HYPHENATED: Final = frozenset(("co", "ex", "half"))
_BE: Final = frozenset("was were is are been being be get got gets".split())
_BEFORE_NOUNS: Final = frozenset("a an the by of his her their its".split())
_BEFORE_VERBS: Final = frozenset("to will could may would should can".split())
_SPEECH: Final = frozenset("say said says saying tell tells told".split())
_SAYING: Final = frozenset(
    """
    say tell accord warn announc claim reveal add insist report suggest admit argu state confirm
    believ write call show find hint think explain urg conclud declar note describ caution predict
    estim rule order vow promis
    """.split()
)
_FIRST: Final = 6  # words of a lede that its subject stands among


class _Qualified(NamedTuple):
    """A head of the lede with its qualifier."""

    qualifier: Word
    head: Word


def qualifier_doubts(pair: Pair) -> Iterator[Doubt]:
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


def object_doubts(pair: Pair) -> Iterator[Doubt]:
    """A name behind a verb that the lede has before it: who did it became whom it was done to."""
    places, words = pair.lede.places, pair.lede.words
    for verb, name in pairwise(pair.words):
        if not name.capital or name.gap != " " or name.possessive or verb.low in _SPEECH:
            continue
        if verb.low in FUNCTION_WORDS or name.low in FUNCTION_WORDS:
            continue
        at, there = places.get(verb.stem), places.get(name.stem)
        if not at or not there or len(at) > 1 or max(there) > at[0]:
            continue
        if not words[there[0]].capital or words[at[0]].capital or not _reads_as_verb(verb, pair):
            continue
        last = _end_of_name(name, pair)
        after = pair.words[last + 1] if last + 1 < len(pair.words) else None
        if after is not None and after.gap == " " and after.low not in FUNCTION_WORDS:
            continue  # "dismisses Trump case": the name is no object
        before = {word.low for word in words[max(at[0] - 3, 0) : at[0]]}
        if not before.isdisjoint(_BE) or words[at[0] - 1].low in _BEFORE_NOUNS:
            continue
        said = pair.lede.quote(there[-1], min(at[0], there[-1] + 7))
        yield pair.doubt([verb, pair.words[last]], "role", f'the lede has "{said}"')


def _end_of_name(name: Word, pair: Pair) -> int:
    last = name.at
    for word in pair.words[name.at + 1 :]:
        if not word.capital or word.gap != " " or is_common(word.low, word.stem):
            break
        last = word.at
    return last


def _reads_as_verb(word: Word, pair: Pair) -> bool:
    if not word.at:
        return False
    before = pair.words[word.at - 1]
    return before.low in _BEFORE_VERBS or word.low.endswith(("s", "ed", "ing"))


def speaker_doubts(pair: Pair) -> Iterator[Doubt]:
    """Somebody whom the headline lets speak, far from all words of speech of the lede."""
    if pair.lows.isdisjoint(("say", "says", "said")):
        return
    spoken = [word.at for word in pair.lede.words if word.stem in _SAYING]
    if not spoken:
        return
    for name, verb in pairwise(pair.words):
        if verb.low not in ("say", "says", "said") or verb.gap != " ":
            continue
        there = pair.lede.places.get(name.stem)
        if not there or name.low in FUNCTION_WORDS or min(there) <= _FIRST:
            continue
        if not any(-12 <= said - one <= 12 for one in there for said in spoken):
            yield pair.doubt(
                [name, verb], "role", f"the lede does not say that {name.text} said it"
            )
