"""The rules that need no training: which words of a headline its lede does not support.

Each rule takes a `PairWords` and yields doubts; `RULES` has them by name, so that each can be
measured alone. A `RuleChecker` keeps what it made of a lede for all of its headlines.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

from ledeline.inference.checks.claims_rule import claim_doubts, quote_doubts
from ledeline.inference.checks.counts_rule import count_doubts
from ledeline.inference.checks.doubt import Doubt
from ledeline.inference.checks.modality_rule import modality_doubts
from ledeline.inference.checks.names_rule import name_doubts
from ledeline.inference.checks.negation_rule import negation_doubts
from ledeline.inference.checks.numbers_rule import number_doubts
from ledeline.inference.checks.pair_words import Lede, PairWords
from ledeline.inference.checks.role_rule import direction_doubts, qualifier_doubts
from ledeline.inference.checks.time_rule import time_doubts

Rule: TypeAlias = Callable[[PairWords], Iterator[Doubt]]

RULES: Final[dict[str, Rule]] = {
    "numbers": number_doubts,
    "counts": count_doubts,
    "names": name_doubts,
    "modality": modality_doubts,
    "negation": negation_doubts,
    "qualifiers": qualifier_doubts,
    "directions": direction_doubts,
    "times": time_doubts,
    "quotes": quote_doubts,
    "claims": claim_doubts,
}


class RuleChecker:
    """Checks headlines of one lede."""

    def __init__(self, lede: str) -> None:
        self._lede = Lede(lede)

    def doubts(self, headline: str) -> list[Doubt]:
        """What the rules doubt in a headline, from its start to its end."""
        pair = PairWords(self._lede, headline)
        return _tidied(doubt for rule in RULES.values() for doubt in rule(pair))


def rule_doubts(lede: str, headline: str) -> list[Doubt]:
    """What the rules doubt in a headline, from its start to its end."""
    return RuleChecker(lede).doubts(headline)


def _tidied(doubts: Iterable[Doubt]) -> list[Doubt]:
    """In order of their start; of those of the same kind that overlap the longest alone."""
    kept: list[Doubt] = []
    for doubt in sorted(doubts, key=lambda doubt: (doubt.start, -doubt.end)):
        if not any(doubt.kind == other.kind and doubt.start < other.end for other in kept):
            kept.append(doubt)
    return kept
