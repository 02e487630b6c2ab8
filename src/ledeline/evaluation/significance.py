"""Intervals of means and tests of differences: the bootstrap and approximate randomisation.

Values have one row per pair of texts and one column per measure, of any kind.

Sums are exact. The values of a column are first rounded to multiples of a power of two, of about
N max|value| / 2^50, so that no sum of them loses a bit, in any order. Thus a seed gives the same
numbers with any number of threads and any size of chunk.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

SEED: Final = 12345
NUM_SAMPLES: Final = 1000  # of the bootstrap
NUM_SHUFFLES: Final = 10_000  # of approximate randomisation
_TAILS: Final = (0.025, 0.975)  # 95 % lie between
_SUM_BITS: Final = 50  # of a sum over all rows; doubled or subtracted, it stays below 2^53
_NOISE: Final = 2.0**-48  # of the largest value: the rounding error of a difference
_CHUNK: Final = 2**18  # numbers in memory at once: 2 MiB, which fit into a cache


class Interval(NamedTuple):
    """The 95 % confidence interval of a mean."""

    low: float
    high: float


class Comparison(NamedTuple):
    """System b against system a, in one measure."""

    difference: float  # mean of b - mean of a
    low: float  # the 95 % interval of the difference
    high: float
    bootstrap_p: float  # two-sided: the probability of a difference as large by chance
    randomisation_p: float


def bootstrap_intervals(
    values: Array, *, seed: int = SEED, num_samples: int = NUM_SAMPLES
) -> list[Interval]:
    """The percentile bootstrap of the mean of each column, with the same resamples for all."""
    values = _checked(values)
    base = values[0]  # so that a column of one value stays that value
    wholes, unit = _wholes(values - base)
    means = base + _resampled_sums(wholes, seed, num_samples) * unit / len(values)
    means = means.clip(values.min(axis=0), values.max(axis=0))  # no mean lies outside, but by noise
    return [Interval(*bounds) for bounds in np.quantile(means, _TAILS, axis=0).T.tolist()]


def compare(
    a: Array,
    b: Array,
    *,
    seed: int = SEED,
    num_samples: int = NUM_SAMPLES,
    num_shuffles: int = NUM_SHUFFLES,
) -> list[Comparison]:
    """Compare two systems on the same pairs, column by column.

    The paired bootstrap draws pairs with replacement; its p is the share of drawn differences that
    are as far from the observed one as that is from 0. Approximate randomisation swaps the two
    systems in each pair or not, by a coin; its p is the share of shuffles with a difference as
    large as the observed one, either way. Both are (count + 1) / (number + 1).
    """
    a, b = _checked(a), _checked(b)
    if a.shape != b.shape:
        raise ValueError(f"two systems of different shapes: {a.shape} and {b.shape}")
    wholes, unit = _wholes(b - a)
    observed = wholes.sum(axis=0)
    resampled = _resampled_sums(wholes, seed, num_samples)
    shuffled = observed - 2 * _swapped_sums(wholes, seed, num_shuffles)
    noise = _NOISE * np.maximum(_largest(a), _largest(b)) / unit
    least = np.abs(observed) - len(a) * (noise + 2)  # by which sums that should be equal may differ
    columns = (
        observed * unit / len(a),
        *np.quantile(resampled * unit / len(a), _TAILS, axis=0),
        _share_as_large(resampled - observed, least),
        _share_as_large(shuffled, least),
    )
    return [Comparison(*numbers) for numbers in np.stack(columns, axis=1).tolist()]


def _checked(values: Array) -> Array:
    values = np.asarray(values, np.float64)
    if values.ndim != 2 or not len(values):
        raise ValueError(f"values are rows of pairs and columns of measures, not {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError("a value is infinite or no number")
    return values


def _wholes(values: Array) -> tuple[Array, Array]:
    """Values -> the same array as whole numbers, and the unit of each column, a power of two."""
    exponents = np.frexp(_largest(values))[1] + np.frexp(len(values))[1] - _SUM_BITS
    np.ldexp(values, -exponents, out=values)
    return np.rint(values, out=values), np.ldexp(1.0, exponents)


def _largest(values: Array) -> Array:
    """The largest value of each column, either way."""
    largest: Array = np.maximum(values.max(axis=0), -values.min(axis=0))
    return largest


def _share_as_large(sums: Array, least: Array) -> Array:
    share: Array = ((np.abs(sums) >= least).sum(axis=0) + 1) / (len(sums) + 1)
    return share


# --- samples --------------------------------------------------------------------------------------


def _resampled_sums(wholes: Array, seed: int, num_samples: int) -> Array:
    """The column sums of as many rows, drawn with replacement: (N, M) -> (S, M)."""
    bits = np.random.PCG64(seed)
    sums = [times @ wholes for times in _drawn(bits, len(wholes), num_samples)]
    return np.concatenate(sums)


def _swapped_sums(wholes: Array, seed: int, num_shuffles: int) -> Array:
    """The column sums of rows chosen by a coin each: (N, M) -> (S, M)."""
    bits = np.random.PCG64([seed, 1])  # another stream than the bootstrap's
    sums = [swaps @ wholes for swaps in _tossed(bits, len(wholes), num_shuffles)]
    return np.concatenate(sums)


def _drawn(bits: np.random.PCG64, num_rows: int, num_samples: int) -> Iterator[Array]:
    """How often each row is drawn: chunks of (samples, N)."""
    for size in _chunks(num_samples, num_rows):
        times = np.empty((size, num_rows))
        for sample in times:
            sample[:] = np.bincount(_places(bits, num_rows), minlength=num_rows)
        yield times


def _places(bits: np.random.PCG64, num_rows: int) -> npt.NDArray[np.int64]:
    """As many places below `num_rows`, each from 32 bits: uniform to N / 2^32."""
    words = bits.random_raw((num_rows + 1) // 2).astype("<u8", copy=False)
    places = words.view("<u4")[:num_rows].astype(np.uint64)
    places *= np.uint64(num_rows)
    places >>= np.uint64(32)
    return places.view(np.int64)


def _tossed(bits: np.random.PCG64, num_rows: int, num_shuffles: int) -> Iterator[Array]:
    """A coin, 0 or 1, for each row: chunks of (shuffles, N)."""
    num_words = (num_rows + 63) // 64
    for size in _chunks(num_shuffles, num_rows):
        words = bits.random_raw(size * num_words).astype("<u8", copy=False)
        coins = words.view(np.uint8).reshape(size, num_words * 8)
        yield np.unpackbits(coins, axis=1, count=num_rows).astype(np.float64)


def _chunks(num_samples: int, num_rows: int) -> Iterator[int]:
    """How many samples to make at once, until all are made."""
    size = max(1, _CHUNK // num_rows)
    for begin in range(0, num_samples, size):
        yield min(size, num_samples - begin)
