"""A not of the lede that the headline lost, or one that it added."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from ledeline.core.patterns import lazy_pattern
from ledeline.inference.checks.doubt import Doubt
from ledeline.inference.checks.pair_words import Lede, PairWords, Word
from ledeline.text.function_words import FUNCTION_WORDS

_NEGATORS: Final = frozenset(
    """
    not no never cannot neither nor refuses refused refusing refuse fails failed failing
    fail denies denied denying deny declines declined declining unable
    """.split()
)
_PLAIN: Final = frozenset("not no never without cannot neither nor nobody nothing none".split())
# Any of these in a text says that something is not so, or may take the place of a not.
_NEGATIVE: Final = lazy_pattern(
    r"n['’]t\b|\b(?:no|not|never|without|cannot|neither|nor|none|nobody|nothing|fail\w*|refus\w*"
    r"|den(?:y|ies|ied|ying|ial)|declin\w*|reject\w*|un(?!i|der|til|to)\w+|ban\w*|block\w*|stop\w*"
    r"|against|lack\w*|less|miss\w*|few\w*|barely|hardly|rule[sd]? out|avoid\w*|free|instead"
    r"|dis\w+|in(?:abil|elig|sufficien)\w*|imposs\w+|halt\w*|cancel\w*|scrap\w*|drop\w*|snub\w*"
    r"|resist\w*|oppos\w*|absen\w*|zero|ignor\w*|prevent\w*|rather|struggl\w*|skip\w*|dodg\w*"
    r"|delay\w*|doubt\w*|myth|false\w*|wrong\w*|quash\w*|withh\w+|los[et]\w*|despite|clear\w*"
    r"|worst|shun\w*)\b",
    re.I,
)
_LIGHT: Final = FUNCTION_WORDS | {"longer", "yet", "even", "just", "only", "one", "more", "any"}


class _Negated(NamedTuple):
    """A word of the lede and where its not stands."""

    word: Word
    first: int


def negation_doubts(pair: PairWords) -> Iterator[Doubt]:
    """Words that the lede negates and the headline does not, or the other way round."""
    negated = _negated(pair.lede)
    if not negated.keys().isdisjoint(pair.stems) and not _NEGATIVE.search(pair.headline):
        for word in pair.words:
            found = negated.get(word.stem)
            if found is not None:
                said = pair.lede.quote(found.first, found.word.at)
                yield pair.doubt([word], "negation", f'the lede says "{said}"')
    added = [word for word in pair.words if word.low in _PLAIN or word.low.endswith("n't")]
    if added and not _is_negative(pair.lede):
        yield pair.doubt(added[:1], "negation", "the lede negates nothing")


def _is_negative(lede: Lede) -> bool:
    if "negative" not in lede.kept:
        lede.kept["negative"] = _NEGATIVE.search(lede.text) is not None
    return bool(lede.kept["negative"])


def _negated(lede: Lede) -> dict[str, _Negated]:
    found = lede.kept.get("negated")
    if not isinstance(found, dict):
        once = (item for item in _find(lede) if len(lede.places[item.word.stem]) == 1)
        found = lede.kept["negated"] = {item.word.stem: item for item in once}
    return found


def _find(lede: Lede) -> Iterator[_Negated]:
    words = lede.words
    for word in words:
        if word.low not in _NEGATORS and not word.low.endswith(("n't", "n’t")):
            continue
        for other in words[word.at + 1 : word.at + 4]:
            if other.gap.strip(" -\"'“‘"):
                break
            if other.low not in _LIGHT:
                if not other.capital:
                    yield _Negated(other, word.at)
                break
