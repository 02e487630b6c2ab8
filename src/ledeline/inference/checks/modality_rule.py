"""A claim, plan or possibility of the lede that the headline tells as a fact."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from ledeline.core.patterns import lazy_pattern
from ledeline.inference.checks.doubt import Doubt
from ledeline.inference.checks.pair_words import Lede, PairWords, Word

_MODALS: Final = frozenset("may might could would should".split())
_REPORTED: Final = frozenset(
    "reportedly allegedly possibly potentially probably supposedly purportedly".split()
)
_BEFORE_TO: Final = frozenset(
    """
    plan plans planned planning expected likely threaten threatens threatened threatening urged
    urging asked asking want wants wanted hope hopes hoped hoping propose proposes proposed trying
    tried tries try attempted attempting attempts attempt seek seeks seeking sought aims aiming
    considering believed alleged thought instructed poised vow vows vowed pledged promised willing
    ready fought rushing struggling scheduled bid effort efforts chance chances calls threat
    proposal proposals set
    """.split()
)
_BEFORE_ING: Final = frozenset(("accused", "charged", "suspected", "denied", "denies", "denying"))
_CLAUSES: Final = frozenset(("whether", "if", "unless"))
_LIGHT: Final = frozenset(
    """
    be been being have has had also still soon now just only already again even not he she they it
    his her their its him them the a an
    """.split()
)
_NO_FACT: Final = lazy_pattern(
    r"\?|\b(?:could|may|might|would|should|can|will|likely|expected|plan\w*|report\w*|alleg\w*"
    r"|accus\w*|charge[sd]?|suspect\w*|claim\w*|rumou?r\w*|if|whether|bid|calls?|urg\w*|wants?"
    r"|threat\w*|seek\w*|look\w*|eye[sd]?|fear\w*|possib\w*|potential\w*|probab\w*|believes?"
    r"|hop(?:e|es|ing)|aim\w*|vow\w*|pledg\w*|consider\w*|weigh\w*|mull\w*|propos\w*"
    r"|try|tries|trying|attempt\w*|effort\w*|suggest\w*|predict\w*|forecast\w*|due|ready|demand\w*"
    r"|ask\w*|scheduled|poised|apparent\w*|dispute\w*|den(?:y|ies|ied)|trial|suspicion|unless)\b|\w['’]ll\b",
    re.I,
)
_AUXILIARIES: Final = frozenset(
    "to will may could would should can might must cannot won't not".split()
)


class _Hedged(NamedTuple):
    """A word of the lede that something makes less than a fact."""

    word: Word
    first: int  # the word that does so
    sort: str


def modality_doubts(pair: PairWords) -> Iterator[Doubt]:
    """Words of the headline that the lede hedges and the headline does not."""
    hedged = _hedged(pair.lede)
    if not hedged or hedged.keys().isdisjoint(pair.stems):
        return
    if _NO_FACT.search(pair.headline):
        return
    for word in pair.words:
        found = hedged.get(word.stem)
        if found is None or _is_hedged_here(word, pair):
            continue
        if found.sort != "ing" and word.low.endswith("ing"):
            continue
        said = pair.lede.quote(found.first, found.word.at)
        yield pair.doubt([word], "modality", f'the lede says "{said}"')


def _is_hedged_here(word: Word, pair: PairWords) -> bool:
    before = pair.words[max(word.at - 2, 0) : word.at]
    return any(other.low in _AUXILIARIES for other in before)


def _hedged(lede: Lede) -> dict[str, _Hedged]:
    found = lede.kept.get("hedged")
    if not isinstance(found, dict):
        once = (item for item in _find(lede) if len(lede.places[item.word.stem]) == 1)
        found = lede.kept["hedged"] = {item.word.stem: item for item in once}
    return found


def _find(lede: Lede) -> Iterator[_Hedged]:
    words = lede.words
    for word in words:
        low, at = word.low, word.at
        after = words[at + 1].low if at + 1 < len(words) else ""
        if low in _MODALS and not (low == "may" and word.capital):
            yield from _next_content(lede, at, at + 1, "modal")
        elif low in _REPORTED:
            yield from _next_content(lede, at, at + 1, "reported")
        elif low in _BEFORE_TO and after == "to":
            yield from _next_content(lede, at, at + 2, "to")
        elif low in _BEFORE_ING and (after in ("of", "with") or low.startswith("den")):
            found = _next_content(lede, at, at + 1 + (after in ("of", "with")), "ing")
            yield from (item for item in found if not item.word.capital)
        elif low in _CLAUSES:
            for other in words[at + 1 : at + 12]:
                if other.low.endswith("ed") and not other.capital and len(other.low) > 3:
                    yield _Hedged(other, at, "clause")
                    break


def _next_content(lede: Lede, first: int, start: int, sort: str) -> Iterator[_Hedged]:
    for word in lede.words[start : start + 4]:
        if word.gap.strip(" -") and word.at > start:
            return
        if word.low not in _LIGHT and not word.low.endswith("ly"):
            after_be = any(lede.words[at].low in ("be", "been") for at in range(start, word.at))
            if len(word.low) > 2 and (not after_be or word.low.endswith(("ed", "n", "t"))):
                yield _Hedged(word, first, sort)
            return
