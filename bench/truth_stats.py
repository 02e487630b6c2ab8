"""Statistics of labels and of detectors of false headlines, in plain NumPy.

A detector gives each headline a support in [0, 1]; low means doubted. `bad` is the share of a
headline's readings that call it what is looked for, such as false: with two readings 0, 0.5 or 1.
A headline then counts as bad with weight `bad` and as not bad with weight 1 - `bad`, as if each
reading were an item of its own. `times` says how often a headline counts, for the bootstrap; None:
once. What is undefined, such as a share of nothing, is NaN.
"""

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

SEED: Final = 12345
NUM_DRAWS: Final = 10_000
NUM_BINS: Final = 10  # of calibration
Z: Final = 1.959963984540054  # 95 % of a normal distribution lie within
_TAILS: Final = (0.025, 0.975)
_CHUNK: Final = 2**18  # numbers of the bootstrap in memory at once
_SLACK: Final = 1e-9  # a sum of weights may miss its mark by as much


class Bounds(NamedTuple):
    """A 95 % interval."""

    low: float
    high: float


def wilson(count: float, number: float) -> Bounds:
    """Wilson's interval of a share; counts may be halves."""
    if number <= 0:
        return Bounds(math.nan, math.nan)
    share, square = count / number, Z * Z / number
    middle = (share + square / 2) / (1 + square)
    half = Z * math.sqrt(share * (1 - share) / number + square / number / 4) / (1 + square)
    return Bounds(max(0.0, middle - half), min(1.0, middle + half))


def agreement(first: Sequence[object], second: Sequence[object]) -> float:
    """The share of items that two readings give the same label."""
    same = sum(a == b for a, b in zip(first, second, strict=True))
    return same / len(first) if first else math.nan


def kappa(first: Sequence[object], second: Sequence[object]) -> float:
    """Cohen's kappa: agreement beyond chance; NaN where chance alone would agree on all."""
    if not first:
        return math.nan
    number, observed = len(first), agreement(first, second)
    counts = [first.count(one) * second.count(one) for one in {*first, *second}]
    expected = sum(counts) / number**2
    return math.nan if expected == 1 else (observed - expected) / (1 - expected)


def mcnemar(only_first: int, only_second: int) -> float:
    """The exact two-sided p of McNemar's test, from the items on which two systems differ."""
    number, fewer = only_first + only_second, min(only_first, only_second)
    if not number:
        return 1.0
    tail = sum(math.comb(number, count) for count in range(fewer + 1))
    return min(1.0, math.ldexp(2.0 * tail, -number))


# --- detectors ------------------------------------------------------------------------------------


class Ladder(NamedTuple):
    """Weights at each different support, lowest first."""

    supports: Array
    bad: Array
    good: Array  # what is not bad


def ladder(support: Array, bad: Array, times: Array | None = None) -> Ladder:
    """Weights of the headlines with the same support."""
    weights = np.ones(len(support)) if times is None else times
    supports, place = np.unique(support, return_inverse=True)
    sums = [_sums(place, one * weights) for one in (bad, 1 - bad)]
    return Ladder(supports, *sums)


def _sums(places: npt.NDArray[np.int64], weights: Array) -> Array:
    """The weights at each place."""
    return np.bincount(places, weights).astype(np.float64)


def auroc(support: Array, bad: Array, times: Array | None = None) -> float:
    """The share of pairs of a bad and a good headline whose bad one has less support; ties: half.

    Where readings differ, a headline is both, and is a tie with itself.
    """
    steps = ladder(support, bad, times)
    pairs = steps.bad.sum() * steps.good.sum()
    above = steps.good.sum() - steps.good.cumsum()
    return float((steps.bad * (above + steps.good / 2)).sum() / pairs) if pairs else math.nan


def average_precision(support: Array, bad: Array, times: Array | None = None) -> float:
    """The mean precision over the bad ones as thresholds rise; those with one support at once."""
    steps = ladder(support, bad, times)
    doubted = (steps.bad + steps.good).cumsum()
    precision = steps.bad.cumsum() / np.where(doubted > 0, doubted, 1)
    total = steps.bad.sum()
    return float((steps.bad * precision).sum() / total) if total else math.nan


class AtThreshold(NamedTuple):
    """What is found where headlines below a support are doubted."""

    threshold: float
    doubted: float  # share of all headlines
    precision: float  # share of the doubted that are bad
    recall: float  # share of the bad that are doubted


def at_threshold(support: Array, bad: Array, threshold: float) -> AtThreshold:
    """Doubt headlines with less support than this."""
    is_doubted = support < threshold
    found, number, total = float(bad[is_doubted].sum()), int(is_doubted.sum()), float(bad.sum())
    return AtThreshold(
        threshold,
        number / len(support) if len(support) else math.nan,
        found / number if number else math.nan,
        found / total if total else math.nan,
    )


class AtRecall(NamedTuple):
    """What it costs to find a share of the bad headlines."""

    threshold: float  # the support up to which headlines are doubted
    recall: float
    doubted_good: float  # share of the good ones that are doubted


def at_recall(
    support: Array, bad: Array, good: Array, recall: float, times: Array | None = None
) -> AtRecall:
    """Doubt as few as find this share of the bad; `good` is the weight of each as a good one."""
    weights = np.ones(len(support)) if times is None else times
    supports, place = np.unique(support, return_inverse=True)
    found = _sums(place, bad * weights).cumsum()
    cost = _sums(place, good * weights).cumsum()
    if not len(supports) or not found[-1]:
        return AtRecall(math.nan, math.nan, math.nan)
    step = int(np.argmax(found >= recall * found[-1] - _SLACK))
    lost = float(cost[step] / cost[-1]) if cost[-1] else math.nan
    return AtRecall(float(supports[step]), float(found[step] / found[-1]), lost)


def risks(support: Array, bad: Array, coverages: Sequence[float]) -> list[float]:
    """The share of bad ones among the headlines with most support, for each coverage above 0.

    Of headlines with the same support, a part has the share of bad ones that all of them have.
    """
    steps = ladder(support, bad)
    number = (steps.bad + steps.good)[::-1].cumsum()
    found = np.interp(
        [coverage * len(support) for coverage in coverages],
        np.concatenate([[0.0], number]),
        np.concatenate([[0.0], steps.bad[::-1].cumsum()]),
    )
    kept = np.asarray(coverages) * len(support)
    return [float(one) for one in found / kept]


def risk_area(support: Array, bad: Array) -> float:
    """The mean risk over the coverages 1/N, 2/N .. 1."""
    number = len(support)
    if not number:
        return math.nan
    return float(np.mean(risks(support, bad, [place / number for place in range(1, number + 1)])))


class Bin(NamedTuple):
    """Headlines whose support is about the same."""

    low: float
    high: float
    number: int
    support: float  # the mean
    true: float  # share that is not bad


class Calibration(NamedTuple):
    """How far support is the probability that a headline is not bad."""

    bins: list[Bin]  # without the empty ones
    error: float  # expected calibration error: the mean gap, by headlines
    brier: float


def calibration(support: Array, bad: Array, num_bins: int = NUM_BINS) -> Calibration:
    """Bins of equal width; a support on an edge is in the bin above, 1 in the last."""
    if not len(support):
        return Calibration([], math.nan, math.nan)
    places = np.minimum((support * num_bins + _SLACK).astype(int), num_bins - 1)
    bins = []
    for place in range(num_bins):
        inside = places == place
        if number := int(inside.sum()):
            means = float(support[inside].mean()), float(1 - bad[inside].mean())
            bins.append(Bin(place / num_bins, (place + 1) / num_bins, number, *means))
    error = sum(one.number * abs(one.support - one.true) for one in bins) / len(support)
    brier = float(np.mean(bad * support**2 + (1 - bad) * (1 - support) ** 2))
    return Calibration(bins, error, brier)


# --- the bootstrap --------------------------------------------------------------------------------


def bootstrap(
    statistic: Callable[[Array], float],
    groups: Sequence[object],
    *,
    seed: int = SEED,
    num_draws: int = NUM_DRAWS,
) -> Bounds:
    """The percentile interval of a statistic of how often each item counts.

    Items of one group, such as the headlines of a lede, are drawn together. Draws for which the
    statistic is NaN are left out.
    """
    _, members = np.unique(np.asarray([str(one) for one in groups]), return_inverse=True)
    number = int(members.max()) + 1 if len(members) else 0
    if not number:
        return Bounds(math.nan, math.nan)
    dice, values = np.random.default_rng(seed), []
    for _ in range(num_draws):
        drawn = np.bincount(dice.integers(0, number, number), minlength=number)
        values.append(statistic(drawn[members].astype(np.float64)))
    return _percentiles(np.array(values))


class Gap(NamedTuple):
    """The mean of b less the mean of a, on the same items."""

    difference: float
    bounds: Bounds


def paired_gap(a: Array, b: Array, *, seed: int = SEED, num_draws: int = NUM_DRAWS) -> Gap:
    """A difference with its interval by the paired bootstrap over items."""
    gaps = np.asarray(b, np.float64) - np.asarray(a, np.float64)
    if not len(gaps):
        return Gap(math.nan, Bounds(math.nan, math.nan))
    dice, means = np.random.default_rng(seed), []
    size = max(1, _CHUNK // len(gaps))
    for begin in range(0, num_draws, size):
        shape = min(size, num_draws - begin), len(gaps)
        means.append(gaps[dice.integers(0, len(gaps), shape)].mean(axis=1))
    return Gap(float(gaps.mean()), _percentiles(np.concatenate(means)))


def _percentiles(values: Array) -> Bounds:
    known = values[~np.isnan(values)]
    if not len(known):
        return Bounds(math.nan, math.nan)
    low, high = np.quantile(known, _TAILS).tolist()
    return Bounds(low, high)
