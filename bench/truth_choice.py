"""Which of several labelled headlines of a lede a ranking chooses, and how readers called these."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from ledeline.core.steps import run_steps
from ledeline.inference.checks.check import Check
from ledeline.inference.checks.checker import Checker
from truth_labels import LABELS, PUBLISHER, FoundLabel
from truth_report import Facts, each_label
from truth_tables import table, with_bounds

HELD_OUT: Final = 20  # verifier_train.py leaves out one lede of so many
_LEDES_AT_ONCE: Final = 16


class Choice(NamedTuple):
    """A headline that may be chosen."""

    number: int  # its place in the search's order
    label: str
    check: Check


Ranking: TypeAlias = Callable[[Choice], Any]  # the highest is chosen


def _by_rule(one: Choice) -> bool:
    return any(not doubt.by_verifier for doubt in one.check.doubts)


RANKINGS: Final[dict[str, Ranking]] = {
    "search": lambda one: -one.number,
    "rules": lambda one: (not _by_rule(one), -one.number),
    "support": lambda one: one.check.support or 0.0,
    "all": lambda one: one.check.value,
    "a reader": lambda one: (-LABELS.index(one.label), -one.number),
}


def is_held_out(lede_hash: str) -> bool:
    """Whether the verifier was not trained on a lede of part `train`."""
    return int(lede_hash, 16) % HELD_OUT == 0


def choices(found: Sequence[FoundLabel], checker: Checker) -> list[list[Choice]]:
    """The headlines of each lede that has several, in the order of the file."""
    by_lede: dict[str, list[FoundLabel]] = {}
    for one in found:
        if one.judged.writer != PUBLISHER:
            by_lede.setdefault(one.lede, []).append(one)
    several = [(lede, own) for lede, own in by_lede.items() if len(own) > 1]
    groups: list[list[Choice]] = []
    for start in range(0, len(several), _LEDES_AT_ONCE):
        some = several[start : start + _LEDES_AT_ONCE]
        asked = [(lede, [one.headline for one in own]) for lede, own in some]
        for (_, own), checks in zip(some, run_steps(checker.steps(asked)), strict=True):
            pairs = enumerate(zip(own, checks, strict=True))
            groups.append([Choice(n, one.judged.labels[0], check) for n, (one, check) in pairs])
    return groups


def choose(found: Sequence[FoundLabel]) -> Facts:
    """The labels of what each ranking chooses."""
    groups = choices(found, Checker.load())
    rows = []
    for name, ranking in RANKINGS.items():
        chosen = [max(group, key=ranking) for group in groups]
        sure = [one for one in chosen if not one.check.doubts]
        counted = Counter(one.label for one in chosen), Counter(one.label for one in sure)
        rows.append(
            {
                "ranking": name,
                "labels": each_label(counted[0], len(chosen)),
                "without_doubt": each_label(counted[1], len(sure)),
            }
        )
    return {"ledes": len(groups), "rankings": rows}


def choice_tables(found: Facts) -> list[str]:
    """A table of what is chosen."""
    heads = [
        "chosen by",
        *(f"{label}, %" for label in LABELS),
        "without a doubt",
        "of these false, %",
    ]
    rows = [
        [
            one["ranking"],
            *(with_bounds(one["labels"][label]) for label in LABELS),
            f"{one['without_doubt']['ok']['n']:,}",
            with_bounds(one["without_doubt"]["false"]),
        ]
        for one in found["rankings"]
    ]
    return [f"{found['ledes']:,} ledes with several labelled headlines.", "", *table(heads, rows)]
