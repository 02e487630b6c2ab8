"""What labels and detectors tell, as dictionaries for JSON; truth_tables.py prints them."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

import truth_stats as stats
from ledeline.core.errors import ScoreError
from ledeline.text.function_words import is_content
from truth_detectors import Verdict, words_of
from truth_labels import GOOD, LABELS, PUBLISHER, FoundLabel, Judged
from truth_stats import Array

TARGETS: Final = {"false": ("false",), "unsupported": ("added", "false")}
THRESHOLDS: Final = (0.5, 0.8)
RECALL: Final = 0.8
COVERAGES: Final = tuple(tenth / 10 for tenth in range(1, 11))
_ASIDE: Final = re.compile(r"\([^)]*\)")  # what a reader adds to the words of the headline
Facts = dict[str, Any]


class Draws(NamedTuple):
    """How the bootstrap draws."""

    seed: int = stats.SEED
    num_draws: int = stats.NUM_DRAWS


# --- count ----------------------------------------------------------------------------------------


def writers_of(judged: Sequence[Judged]) -> list[str]:
    """In order of appearance, publishers last."""
    names = list(dict.fromkeys(one.writer for one in judged))
    return sorted(names, key=lambda name: name == PUBLISHER)


def count(judged: Sequence[Judged]) -> Facts:
    """Shares of labels and kinds by writer; agreement also of all together."""
    groups = {name: [one for one in judged if one.writer == name] for name in writers_of(judged)}
    every = {"all writers": list(judged)} if len(groups) > 1 else {}
    both = {**groups, **every}
    return {
        "shares": [{"writer": name, **shares(some)} for name, some in groups.items()],
        "agreement": [{"writer": name, **agreements(some)} for name, some in both.items()],
        "kinds": [{"writer": name, **kinds(some)} for name, some in groups.items()],
    }


def shares(judged: Sequence[Judged]) -> Facts:
    """By each reading, by all of them together, and their mean."""
    number = len(judged)
    num_readings = max(len(one.labels) for one in judged)
    found: Facts = {"n": number, "readings": []}
    for reading in range(num_readings):
        read = [one.labels[reading] for one in judged if reading < len(one.labels)]
        found["readings"].append(each_label(Counter(read), len(read)))
    together = {label: sum(one.is_all(label) for one in judged) for label in LABELS}
    found["all"] = each_label(together, number)
    means = {label: sum(one.share(label) for one in judged) for label in LABELS}
    found["mean"] = each_label(means, number)
    return found


def each_label(counts: Any, number: int) -> Facts:
    return {
        label: {"count": counts[label], "n": number, **_share(counts[label], number)}
        for label in LABELS
    }


def _share(count: float, number: float) -> Facts:
    share = count / number if number else float("nan")
    return {"share": share, "interval": stats.wilson(count, number)}


def agreements(judged: Sequence[Judged]) -> Facts:
    """Of those with two readings: all four labels, and false against the rest."""
    twice = [one.labels for one in judged if len(one.labels) > 1]
    first, second = [one[0] for one in twice], [one[1] for one in twice]
    found: Facts = {"n": len(twice)}
    for name, both in (
        ("labels", (first, second)),
        ("false", tuple([one == "false" for one in some] for some in (first, second))),
    ):
        found[name] = {"agreement": stats.agreement(*both), "kappa": stats.kappa(*both)}
    return found


def kinds(judged: Sequence[Judged]) -> Facts:
    """How many false headlines of each kind there are, in the mean of the readings."""
    counts: Counter[str] = Counter()
    for one in judged:
        for label, kind in zip(one.labels, one.kinds, strict=True):
            if label == "false":
                counts[kind or "no kind"] += 1 / len(one.labels)  # type: ignore[assignment]
    return {"false": dict(counts.most_common())}


# --- compare --------------------------------------------------------------------------------------


def compare(judged: Sequence[Judged], a: str, b: str, draws: Draws) -> Facts:
    """Two writers on the same ledes: false and ok."""
    ours, theirs = _by_lede(judged, a), _by_lede(judged, b)
    ledes = [lede for lede in ours if lede in theirs]
    if not ledes:
        raise ScoreError(f"{a} and {b} have no judged lede in common")
    pairs = [(ours[lede], theirs[lede]) for lede in ledes]
    num_readings = min(len(one.labels) for pair in pairs for one in pair)
    rows = []
    for label in ("false", "ok"):
        for reading in range(num_readings if num_readings > 1 else 0):
            found = [[one.labels[reading] == label for one in pair] for pair in pairs]
            rows.append({"label": label, "by": f"reading {reading + 1}", **_gap(found, draws)})
        found = [[one.is_all(label) for one in pair] for pair in pairs]
        rows.append({"label": label, "by": "all readings", **_gap(found, draws)})
        means = [[one.share(label) for one in pair] for pair in pairs]
        rows.append({"label": label, "by": "mean of readings", **_gap(means, draws)})
    same = sum(one.headline == other.headline for one, other in pairs)
    return {"a": a, "b": b, "n": len(ledes), "same_headline": same, "differences": rows}


def _by_lede(judged: Sequence[Judged], writer: str) -> dict[str, Judged]:
    found: dict[str, Judged] = {}
    for one in judged:
        if one.writer == writer and found.setdefault(one.lede, one) is not one:
            raise ScoreError(f"{writer} has several headlines of the lede {one.lede}")
    if not found:
        known = ", ".join(writers_of(judged))
        raise ScoreError(f"no judged headline is of {writer!r}; the writers are {known}")
    return found


def _gap(found: Sequence[Sequence[float]], draws: Draws) -> Facts:
    """Shares, their difference, and McNemar's p where every headline counts whole."""
    a, b = np.asarray(found, np.float64).T
    gap = stats.paired_gap(a, b, seed=draws.seed, num_draws=draws.num_draws)
    facts: Facts = {"a": float(a.mean()), "b": float(b.mean())}
    facts |= {"difference": gap.difference, "interval": gap.bounds}
    if not np.isin((a, b), (0, 1)).all():
        return facts | {"only_a": None, "only_b": None, "p": None}
    only_a, only_b = int((a > b).sum()), int((b > a).sum())
    return facts | {"only_a": only_a, "only_b": only_b, "p": stats.mcnemar(only_a, only_b)}


# --- detect ---------------------------------------------------------------------------------------


def detect(
    items: Sequence[FoundLabel], verdicts: Sequence[Verdict], target: str, draws: Draws
) -> Facts:
    """How well a detector finds the headlines that readers call false (or unsupported)."""
    support = np.array([one.support for one in verdicts], np.float64)
    bad = np.array([one.judged.share(*TARGETS[target]) for one in items], np.float64)
    good = np.array([one.judged.share(*GOOD) for one in items], np.float64)
    groups = [one.judged.lede for one in items]
    how = draws._asdict()
    found: Facts = {"n": len(items), "bad": float(bad.sum()), "good": float(good.sum())}
    found["auroc"] = {
        "value": stats.auroc(support, bad),
        "interval": stats.bootstrap(lambda times: stats.auroc(support, bad, times), groups, **how),
    }
    found["average_precision"] = stats.average_precision(support, bad)
    found["thresholds"] = [stats.at_threshold(support, bad, one)._asdict() for one in THRESHOLDS]
    found["at_recall"] = {
        "wanted": RECALL,
        **stats.at_recall(support, bad, good, RECALL)._asdict(),
        "interval": stats.bootstrap(
            lambda times: stats.at_recall(support, bad, good, RECALL, times).doubted_good,
            groups,
            **how,
        ),
    }
    found["risk"] = risk(support, bad)
    calibration = stats.calibration(support, bad)
    found["calibration"] = {
        "error": calibration.error,
        "brier": calibration.brier,
        "bins": [one._asdict() for one in calibration.bins],
    }
    found["by_kind"] = by_kind(items, support, target)
    if all(one.doubts is not None for one in verdicts):
        found["doubts"] = doubts(items, verdicts)
    return found


def risk(support: Array, bad: Array) -> Facts:
    """Risk against coverage, its area, and the area that a perfect detector would have."""
    rows = []
    for coverage, value in zip(COVERAGES, stats.risks(support, bad, COVERAGES), strict=True):
        kept = coverage * len(support)
        interval = stats.wilson(value * kept, kept)
        rows.append({"coverage": coverage, "risk": value, "interval": interval})
    number = len(support)
    fine = [place / number for place in range(1, number + 1)]
    return {
        "coverages": rows,
        "area": stats.risk_area(support, bad),
        "perfect_area": stats.risk_area(1 - bad, bad),
        "curve": list(zip(fine, stats.risks(support, bad, fine), strict=True)),
    }


def by_kind(items: Sequence[FoundLabel], support: Array, target: str) -> list[Facts]:
    """Each kind of error against the headlines that are not bad, most frequent first."""
    weights: dict[str, Array] = {}
    good = np.array([1 - one.judged.share(*TARGETS[target]) for one in items])
    for place, one in enumerate(items):
        judged = one.judged
        for label, kind in zip(judged.labels, judged.kinds, strict=True):
            if label in TARGETS[target]:
                own = weights.setdefault(kind or "no kind", np.zeros(len(items)))
                own[place] += 1 / len(judged.labels)
    rows = []
    for kind, own in sorted(weights.items(), key=lambda pair: -pair[1].sum()):
        total = own + good  # of a headline, what counts here
        share = np.divide(own, total, out=np.zeros(len(items)), where=total > 0)
        row: Facts = {"kind": kind, "n": float(own.sum())}
        row["auroc"] = stats.auroc(support, share, total)
        row["found"] = [float(own[support < one].sum() / own.sum()) for one in THRESHOLDS]
        rows.append(row)
    return rows


def doubts(items: Sequence[FoundLabel], verdicts: Sequence[Verdict]) -> Facts:
    """Each kind of doubt: how often it is right, and about the words that readers named."""
    false = np.array([one.judged.share(*TARGETS["false"]) for one in items])
    unsupported = np.array([one.judged.share(*TARGETS["unsupported"]) for one in items])
    every = [(row, doubt) for row, one in enumerate(verdicts) for doubt in one.doubts or ()]
    names = [name for name, _ in Counter(doubt.kind for _, doubt in every).most_common()]
    rows = []
    for name in [*names, *(["any"] if names else [])]:
        some = [(row, doubt) for row, doubt in every if name in (doubt.kind, "any")]
        doubted = sorted({row for row, _ in some})
        told = [(row, doubt) for row, doubt in some if any(items[row].judged.words)]
        hits = sum(_meet(doubt.words, items[row].judged.words) for row, doubt in told)
        right = float(unsupported[doubted].sum())
        rows.append(
            {
                "kind": name,
                "doubts": len(some),
                "headlines": len(doubted),
                "precision": _share(right, len(doubted)),
                "false": _share(float(false[doubted].sum()), len(doubted)),
                "with_words": len(told),
                "same_words": _share(hits, len(told)),
            }
        )
    free = [row for row, one in enumerate(verdicts) if not one.doubts]
    return {
        "kinds": rows,
        "without": {
            "n": len(free),
            "coverage": len(free) / len(items),
            "false": _share(float(false[free].sum()), len(free)),
            "unsupported": _share(float(unsupported[free].sum()), len(free)),
        },
    }


def _meet(doubted: str, told: Sequence[str | None]) -> bool:
    """Whether a doubt and a reader name a word in common; small words count only alone."""
    words = set(words_of(doubted))
    telling = {word for word in words if is_content(word)} or words
    return any(telling & set(words_of(_ASIDE.sub(" ", one))) for one in told if one)


def publishers_share(judged: Sequence[Judged], target: str) -> float | None:
    """Which share of the publishers' headlines is bad, in the mean of the readings."""
    values = [one.share(*TARGETS[target]) for one in judged if one.writer == PUBLISHER]
    return float(np.mean(values)) if values else None
