"""Weights of features that make a metric of n-best lists as high as possible, by line searches.

Along one weight the score of each hypothesis is a straight line. Which one of a list is the best
changes only where two lines cross, so the metric is a step function, and all of it can be looked at
(the idea of Och 2003). Legend: S lists, N hypotheses, F features.
"""

from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Places: TypeAlias = npt.NDArray[np.int64]

LARGEST: Final = 20.0  # weights are not larger
_MARGIN: Final = 0.5  # how far a weight stays from a crossing, where there is room
_NARROWEST: Final = 1e-6  # an interval that is narrower may be one of rounding
_GAIN: Final = 1e-12  # what is less is rounding


class NBestLists(NamedTuple):
    """The hypotheses of each source. A list that is shorter than others is filled up."""

    logs: Floats  # (S, N): log p; -inf where there is none
    steps: Floats  # (S, N): what it is divided by, for the score
    counts: Floats  # (S, N, F): how often each feature holds
    metric: Floats  # (S, N): what is to be as high as possible, of each hypothesis

    def scores(self, weights: Floats) -> Floats:
        """`(log p + sum_f w_f counts_f) / steps`. (S, N)."""
        return (self.logs + self.counts @ weights) / self.steps

    def value(self, weights: Floats) -> float:
        """The mean metric of what these weights (F,) choose; of equals, the first."""
        chosen = self.scores(weights).argmax(1)
        return float(np.take_along_axis(self.metric, chosen[:, None], 1).mean())


class Bounds(NamedTuple):
    """Where each weight may be; where both are equal, it stays as it is. Both (F,)."""

    low: Floats
    high: Floats


def tuned_weights(
    lists: NBestLists,
    starts: list[Floats],
    bounds: Bounds,
    *,
    num_restarts: int,
    rng: np.random.Generator,
) -> Floats:
    """The best weights (F,) that were found from these starts and some random ones.

    They are never worse than the first start, nor than any other.
    """
    shape = num_restarts, len(bounds.low)
    random = rng.normal(size=shape).clip(bounds.low, bounds.high)
    best = starts[0]
    for start in (*starts, *random):
        found = _ascend(lists, start, bounds)
        if lists.value(found) > lists.value(best) + _GAIN:
            best = found
    return best


def _ascend(lists: NBestLists, weights: Floats, bounds: Bounds) -> Floats:
    """Search along each weight in turn, until none of them gains anything."""
    value, gained = lists.value(weights), True
    while gained:
        gained = False
        for feature in np.flatnonzero(bounds.low < bounds.high):
            other = weights.copy()
            other[feature] = best_on_line(lists, weights, int(feature), bounds)
            new = lists.value(other)
            if new > value + _GAIN:
                weights, value, gained = other, new, True
    return weights


def best_on_line(lists: NBestLists, weights: Floats, feature: int, bounds: Bounds) -> float:
    """The value of one weight at which the metric is highest; of equals, the nearest to 0."""
    low, high = float(bounds.low[feature]), float(bounds.high[feature])
    others = weights.copy()
    others[feature] = 0
    slopes = lists.counts[..., feature] / lists.steps
    first, crossings, gains = _crossings(lists, lists.scores(others), slopes)
    order = crossings.argsort(kind="stable")
    edges = np.array([low, *crossings[order].clip(low, high), high])
    sums = first + np.array([0, *gains[order].cumsum()])  # of each interval between two edges
    widths = np.diff(edges)
    margins = np.minimum(_MARGIN, widths / 2)
    points = np.clip(0, edges[:-1] + margins, edges[1:] - margins)
    wide = widths > _NARROWEST
    best = sums[wide].max()
    among = points[wide][sums[wide] > best - _GAIN * len(lists.logs)]
    return float(among[np.abs(among).argmin()])


def _crossings(
    lists: NBestLists, intercepts: Floats, slopes: Floats
) -> tuple[float, Floats, Floats]:
    """Where the best of a list changes as a weight rises from minus infinity.

    The sum of the metric there, the crossings, and what the sum gains at each. The best begins as
    the line that is least steep. Then it is each time the next one that crosses it from below.
    """
    exists = lists.logs > -np.inf
    least = np.where(exists, slopes, np.inf)
    best = np.where(least == least.min(1, keepdims=True), intercepts, -np.inf).argmax(1)
    first = float(_at(lists.metric, best).sum())
    found: list[tuple[Floats, Floats]] = []
    while True:
        steeper = exists & (slopes > _at(slopes, best))
        gap = np.where(steeper, slopes - _at(slopes, best), 1.0)
        where = np.where(steeper, (_at(intercepts, best) - intercepts) / gap, np.inf)
        nearest = where.min(1, keepdims=True)
        goes_on = np.isfinite(nearest[:, 0])
        if not goes_on.any():
            break
        after = np.where(steeper & (where == nearest), slopes, -np.inf).argmax(1)
        after = np.where(goes_on, after, best)
        gains = (_at(lists.metric, after) - _at(lists.metric, best))[:, 0]
        found.append((nearest[goes_on, 0], gains[goes_on]))
        best = after
    columns: Any = zip(*found, strict=True) if found else ([np.zeros(0)], [np.zeros(0)])
    crossings, all_gains = (np.concatenate(column) for column in columns)
    return first, crossings, all_gains


def _at(values: Floats, places: Places) -> Floats:
    """The value at one place of each list. (S, N), (S,) -> (S, 1)."""
    return np.take_along_axis(values, places[:, None], 1)
