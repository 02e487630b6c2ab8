"""The examples to show: where the baseline is worst and systems differ, doubted and random ones."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ledeline.evaluation.evaluation_folder import EvaluatedSet
from ledeline.evaluation.odd_words import KINDS
from ledeline.report.study import ReportedSystem, Study

NUM_WORST: Final = 4
NUM_RANDOM: Final = 4
SEED: Final = 1
DOUBTED: Final = "doubted"


@dataclass(frozen=True)
class Choice:
    """Pairs of a test set, chosen for one reason."""

    kind: str | None  # of odd words, or DOUBTED; None for pairs drawn at random
    pairs: tuple[int, ...]


def choose_examples(study: Study, test_set: str) -> list[Choice]:
    """Choose pairs, each for one reason only; the same ones every time."""
    compared = study.comparable(test_set)
    first = study.first(test_set)
    used: set[int] = set()
    choices = []
    for kind in KINDS:
        pairs = _worst(compared, first, kind, used)
        used.update(pairs)
        choices.append(Choice(kind, pairs))
    doubted = _doubted([one for _, one in compared], used)
    used.update(doubted)
    choices.append(Choice(DOUBTED, doubted))
    choices.append(Choice(None, _drawn(compared[0][1].summary.num_pairs, used)))
    return [choice for choice in choices if choice.pairs]


def _worst(
    compared: Sequence[tuple[ReportedSystem, EvaluatedSet]],
    first: ReportedSystem,
    kind: str,
    used: set[int],
) -> tuple[int, ...]:
    """Where the first system has most odd words; of these, where another has fewest."""
    counts = {system: _counts(one, kind) for system, one in compared}
    ours = counts.pop(first)
    others = [one for one in counts.values() if one]
    pairs = [
        pair
        for pair, number in enumerate(ours)
        if number and pair not in used and (not others or min(one[pair] for one in others) < number)
    ]
    pairs.sort(key=lambda pair: (-ours[pair], sum(one[pair] for one in others), pair))
    return _with_different_ledes(pairs, compared[0][1])


def _doubted(compared: Sequence[EvaluatedSet], used: set[int]) -> tuple[int, ...]:
    """Where a headline with a doubt has the least support, of any system."""
    least: dict[int, float] = {}
    for evaluated in compared:
        for pair, check in enumerate(evaluated.checks):
            if check is not None and check.support is not None and check.doubts:
                least[pair] = min(check.support, least.get(pair, 1.0))
    pairs = sorted(least.keys() - used, key=lambda pair: (least[pair], pair))
    return _with_different_ledes(pairs, compared[0])


def _counts(evaluated: EvaluatedSet, kind: str) -> list[int]:
    """How many odd words each pair has; empty where that is unknown."""
    counts = [getattr(one, kind) for one in evaluated.audit.odds]
    return [] if None in counts else counts


def _with_different_ledes(pairs: Sequence[int], evaluated: EvaluatedSet) -> tuple[int, ...]:
    """The first few pairs, each lede once."""
    by_lede: dict[str, int] = {}
    for pair in pairs:
        by_lede.setdefault(evaluated.texts.sources[pair], pair)
        if len(by_lede) == NUM_WORST:
            break
    return tuple(by_lede.values())


def _drawn(num_pairs: int, used: set[int]) -> tuple[int, ...]:
    left = [pair for pair in range(num_pairs) if pair not in used]
    return tuple(sorted(random.Random(SEED).sample(left, min(NUM_RANDOM, len(left)))))
