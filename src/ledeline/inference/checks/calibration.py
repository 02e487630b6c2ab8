"""From what verifier, generator and rules say of a headline to its support, and to its rank."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ledeline.inference.checks.doubt import Doubt


class Calibration(NamedTuple):
    """Weights, fitted on labels that the verifier was not trained on."""

    bias: float
    verifier: float  # of its log-odds that the lede supports the headline
    score: float  # of the mean log-probability that the generator gives the sub-words
    doubted_below: float  # support below which the verifier's words are doubted
    rank_ok: float  # what log p(ok) is worth in a ranking, beside the log-odds of support
    rank_score: float  # what the mean log-probability is worth there
    rank_length: float  # what a sub-word is worth there
    rank_rule: float  # what a doubt of a rule costs there
    caps: Mapping[str, float]  # the most support that a rule's doubt leaves, by its kind

    def support(self, log_labels: Sequence[float], score: float, doubts: Sequence[Doubt]) -> float:
        """The probability that the lede supports the headline, from log p of the four labels."""
        total = self.bias + self.verifier * log_odds(log_labels) + self.score * score
        support = 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))
        caps = (self.caps.get(one.kind, 1.0) for one in doubts if not one.by_verifier)
        return min([support, *caps])

    def value(
        self, log_labels: Sequence[float], score: float, length: int, doubts: Sequence[Doubt]
    ) -> float:
        """By what headlines of one lede are ranked."""
        by_rules = any(not one.by_verifier for one in doubts)
        return (
            log_odds(log_labels)
            + self.rank_ok * log_labels[0]
            + self.rank_score * score
            + self.rank_length * length
            - self.rank_rule * by_rules
        )


def log_odds(log_labels: Sequence[float]) -> float:
    """The log-odds that a headline is ok or clumsy, not added or false."""
    ok, clumsy, added, false = map(math.exp, log_labels)
    return math.log(max(ok + clumsy, 1e-12)) - math.log(max(added + false, 1e-12))
