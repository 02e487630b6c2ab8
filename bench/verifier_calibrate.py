"""Calibrate a verifier: its support as a probability, and what headlines are ranked by."""

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from ledeline.inference.checks.calibration import Calibration, log_odds
from ledeline.inference.checks.doubt import Doubt
from ledeline.inference.checks.rules import RuleChecker, rule_doubts
from ledeline.model.verifier import Verifier, VerifierBatch
from ledeline.model.verifier_labels import LABELS
from truth_labels import GOOD, FoundLabel
from verifier_data import Group, exact

# The share of headlines that are to have no doubt, chosen among six labelled ones a lede. Chosen
# among all that a search finds, it is some 4 points more.
WITHOUT_DOUBT = 0.70
BAD = {"ok": 0.0, "clumsy": 0.5, "added": 1.0, "false": 1.0}  # what a chosen headline costs
RIDGE = 1.0  # keeps weights small that few headlines speak for
RANKS = {  # values that are tried
    "rank_ok": (0.0, 0.5, 1.0, 2.0),
    "rank_score": (0.0, 0.5, 1.0, 2.0, 4.0),
    "rank_length": (-0.05, 0.0, 0.05),
    "rank_rule": (3.0,),
}
START = Calibration(0.0, 1.0, 0.0, 0.5, 1.0, 1.0, 0.0, 3.0, {})


class Candidate(NamedTuple):
    """What calibration looks at."""

    log_labels: list[float]
    score: float
    length: int
    doubts: list[Doubt]
    label: str
    is_best: bool  # the search's first


def calibrate(verifier: Verifier, groups: Sequence[Group], caps: dict[str, float]) -> Calibration:
    """Fit all weights on headlines that the verifier was not trained on."""
    judged = [_candidates(verifier, group) for group in groups]
    found = _fit_support(list(itertools.chain.from_iterable(judged)), caps)
    several = [group for group in judged if len(group) > 1] or judged
    costs = {
        ranks: np.mean([BAD[_chosen(found._replace(**dict(ranks)), one).label] for one in several])
        for values in itertools.product(*RANKS.values())
        for ranks in [tuple(zip(RANKS, values, strict=True))]
    }
    best = min(costs, key=lambda ranks: costs[ranks])
    found = found._replace(**dict(best))
    return found._replace(doubted_below=_threshold(found, several))


@torch.inference_mode()
def _candidates(verifier: Verifier, group: Group) -> list[Candidate]:
    view = exact(group.view)
    logs = verifier(VerifierBatch.of([view])).labels.double().log_softmax(-1).tolist()
    rules, scores = RuleChecker(group.found[0].lede), view.scores.tolist()
    lengths = (view.headlines != 0).sum(1).tolist()
    return [
        Candidate(
            logs[n],
            scores[n],
            lengths[n],
            rules.doubts(one.headline),
            LABELS[int(group.labels[n])],
            one.judged.writer == "beam20",
        )
        for n, one in enumerate(group.found)
    ]


def rule_caps(found: Iterable[FoundLabel]) -> dict[str, float]:
    """How many of the headlines that rules doubt are supported all the same, by kind of doubt."""
    counts: dict[str, list[int]] = {}
    for one in found:
        is_supported = one.judged.labels[0] in GOOD
        for kind in {doubt.kind for doubt in rule_doubts(one.lede, one.headline)}:
            good, number = counts.get(kind, [0, 0])
            counts[kind] = [good + is_supported, number + 1]
    return {kind: round((good + 1) / (number + 2), 3) for kind, (good, number) in counts.items()}


def _fit_support(candidates: Sequence[Candidate], caps: dict[str, float]) -> Calibration:
    """Logistic regression of those that no rule doubts; where one does, its cap holds."""
    plain = [one for one in candidates if not one.doubts] or candidates
    features = np.array([(1.0, log_odds(one.log_labels), one.score) for one in plain])
    truth = np.array([one.label in GOOD for one in plain], np.float64)
    bias, verifier, score = _logistic(features, truth).tolist()
    return START._replace(bias=bias, verifier=verifier, score=score, caps=caps)


def _logistic(
    features: npt.NDArray[np.float64], truth: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    weights = np.zeros(features.shape[1])
    ridge = RIDGE * np.eye(len(weights))
    ridge[0, 0] = 0.0
    for _ in range(30):
        chances = 1 / (1 + np.exp(-features @ weights))
        slope = features.T @ (truth - chances) - ridge @ weights
        bend = (features.T * (chances * (1 - chances))) @ features + ridge
        weights = weights + np.linalg.solve(bend + 1e-9 * np.eye(len(weights)), slope)
    return weights


def _chosen(calibration: Calibration, group: Sequence[Candidate]) -> Candidate:
    return max(
        group, key=lambda one: calibration.value(one.log_labels, one.score, one.length, one.doubts)
    )


def _threshold(calibration: Calibration, groups: Sequence[Sequence[Candidate]]) -> float:
    """Doubt as many of the chosen headlines as leaves the wanted share without one."""
    chosen = [_chosen(calibration, group) for group in groups]
    by_rule = sum(bool(one.doubts) for one in chosen)
    supports = sorted(
        calibration.support(one.log_labels, one.score, one.doubts)
        for one in chosen
        if not one.doubts
    )
    number = max(0, round((1 - WITHOUT_DOUBT) * len(chosen)) - by_rule)
    return supports[min(number, len(supports) - 1)] if supports else 0.5
