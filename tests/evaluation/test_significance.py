"""Significance: against loops that say the definitions, and against all swaps there are."""

import math
import os
import subprocess
import sys
from itertools import product
from statistics import mean

import numpy as np
import numpy.typing as npt
import pytest

from ledeline.evaluation import significance
from ledeline.evaluation.significance import (
    SEED,
    Comparison,
    Interval,
    bootstrap_intervals,
    compare,
)

Array = npt.NDArray[np.float64]


def scores(seed: int, num_rows: int = 40, num_columns: int = 3) -> Array:
    return np.random.default_rng(seed).random((num_rows, num_columns)).round(5)


# --- the slow way -----------------------------------------------------------------------------------


def halves(bits: np.random.PCG64, num_rows: int) -> list[int]:
    """As many numbers of 32 bits, the low half of a word first; half a word may be left over."""
    words = [int(bits.random_raw()) for _ in range((num_rows + 1) // 2)]
    return [half for word in words for half in (word & 0xFFFFFFFF, word >> 32)][:num_rows]


def resamples(num_rows: int, num_samples: int, seed: int = SEED) -> list[list[int]]:
    bits = np.random.PCG64(seed)
    return [
        [half * num_rows // 2**32 for half in halves(bits, num_rows)] for _ in range(num_samples)
    ]


def coins(num_rows: int, num_shuffles: int, seed: int = SEED) -> list[list[int]]:
    """For each row a bit, from the highest of the lowest byte on."""
    bits, tosses = np.random.PCG64([seed, 1]), []
    for _ in range(num_shuffles):
        words = [int(bits.random_raw()) for _ in range(math.ceil(num_rows / 64))]
        data = b"".join(word.to_bytes(8, "little") for word in words)
        tosses.append([data[row // 8] >> (7 - row % 8) & 1 for row in range(num_rows)])
    return tosses


def percentile(values: list[float], share: float) -> float:
    ordered, place = sorted(values), share * (len(values) - 1)
    below = math.floor(place)
    above = min(below + 1, len(values) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def slow_compare(a: list[float], b: list[float], num_samples: int, num_shuffles: int) -> Comparison:
    observed = mean(b) - mean(a)
    drawn = [
        mean(b[row] for row in rows) - mean(a[row] for row in rows)
        for rows in resamples(len(a), num_samples)
    ]
    shuffled = []
    for swaps in coins(len(a), num_shuffles):
        one = [y if swap else x for x, y, swap in zip(a, b, swaps, strict=True)]
        other = [x if swap else y for x, y, swap in zip(a, b, swaps, strict=True)]
        shuffled.append(mean(other) - mean(one))
    large = abs(observed) - 1e-9
    return Comparison(
        observed,
        percentile(drawn, 0.025),
        percentile(drawn, 0.975),
        (sum(abs(value - observed) >= large for value in drawn) + 1) / (num_samples + 1),
        (sum(abs(value) >= large for value in shuffled) + 1) / (num_shuffles + 1),
    )


# --- intervals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_rows", [1, 2, 7, 64, 65])
@pytest.mark.parametrize("num_samples", [1, 2, 100, 301])
def test_intervals_are_percentiles_of_resampled_means(num_rows: int, num_samples: int) -> None:
    values = scores(1, num_rows)
    found = bootstrap_intervals(values, num_samples=num_samples)
    rows = resamples(num_rows, num_samples)
    for column, interval in zip(values.T.tolist(), found, strict=True):
        means = [mean(column[row] for row in sample) for sample in rows]
        expected = Interval(percentile(means, 0.025), percentile(means, 0.975))
        assert interval == pytest.approx(expected, abs=1e-12)


def test_intervals_are_about_the_mean_as_wide_as_theory_has_it() -> None:
    values = scores(2, 10_000, 9)
    for column, (low, high) in zip(values.T, bootstrap_intervals(values), strict=True):
        error = column.std() / 100
        assert low == pytest.approx(column.mean() - 1.96 * error, abs=0.3 * error)
        assert high == pytest.approx(column.mean() + 1.96 * error, abs=0.3 * error)


def test_95_of_100_intervals_hold_the_truth() -> None:
    random = np.random.default_rng(3)
    values = random.exponential(1, (200, 400))
    # One call would resample all columns alike; so each has a seed of its own.
    found = [bootstrap_intervals(values[:, [n]], seed=n, num_samples=400)[0] for n in range(400)]
    held = sum(low <= 1 <= high for low, high in found)
    assert 0.90 <= held / 400 <= 0.975


def test_intervals_of_a_constant_are_that_constant() -> None:
    values = np.array([[0.1, 1 / 3, 0.0, 1e300]] * 7)
    assert bootstrap_intervals(values) == [Interval(value, value) for value in values[0].tolist()]


# --- comparisons ------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_rows", [1, 2, 9, 64, 65])
def test_compare_is_what_its_definition_says(num_rows: int) -> None:
    a, b = scores(4, num_rows), scores(5, num_rows)
    found = compare(a, b, num_samples=200, num_shuffles=301)
    for x, y, comparison in zip(a.T.tolist(), b.T.tolist(), found, strict=True):
        expected = slow_compare(x, y, 200, 301)
        assert comparison == pytest.approx(expected, abs=1e-12)


def test_randomisation_is_near_all_swaps_there_are() -> None:
    a, b = scores(6, 10, 8), scores(7, 10, 8)
    b[:, 4:] += [0.1, 0.2, 0.3, 0.4]
    signs = np.array(list(product([-1, 1], repeat=10)))
    shuffled = np.abs(signs @ (b - a))
    exact = (shuffled >= np.abs((b - a).sum(axis=0)) - 1e-9).mean(axis=0)
    assert exact.min() < 0.05 < 0.3 < exact.max()
    for share, comparison in zip(exact.tolist(), compare(a, b), strict=True):
        error = math.sqrt(share * (1 - share) / 10_000)
        assert comparison.randomisation_p == pytest.approx(share, abs=4 * error + 1e-4)


def test_p_of_no_difference_is_as_good_as_uniform() -> None:
    random = np.random.default_rng(8)
    a, b = random.random((2, 100, 400))
    found = [
        compare(a[:, [n]], b[:, [n]], seed=n, num_samples=400, num_shuffles=400)[0]
        for n in range(400)
    ]
    for p in (lambda one: one.bootstrap_p, lambda one: one.randomisation_p):
        assert 0.02 <= np.mean([p(one) <= 0.05 for one in found]) <= 0.09
        assert 0.4 <= np.mean([p(one) <= 0.5 for one in found]) <= 0.6


def test_the_interval_leaves_out_0_where_the_bootstrap_is_sure() -> None:
    a = scores(9, 500)
    b = a + np.random.default_rng(9).normal([0, 0.01, 0.05], 0.1, a.shape)
    for one in compare(a, b):
        assert one.low < one.difference < one.high
        assert (one.low > 0) == (one.bootstrap_p < 0.05)
        assert one.bootstrap_p == pytest.approx(one.randomisation_p, abs=0.05)


def test_identical_systems_are_not_different() -> None:
    a = scores(10)
    assert compare(a, a) == [Comparison(0, 0, 0, 1, 1)] * 3


def test_a_constant_difference() -> None:
    a = scores(11, 30)
    for one in compare(a, a + 0.25, num_samples=99, num_shuffles=999):
        assert one == pytest.approx(Comparison(0.25, 0.25, 0.25, 0.01, 0.001), abs=1e-9)


def test_one_pair() -> None:
    one = compare(np.array([[0.3]]), np.array([[0.1]]), num_samples=99, num_shuffles=99)[0]
    assert one == pytest.approx(Comparison(-0.2, -0.2, -0.2, 0.01, 1))
    assert bootstrap_intervals(np.array([[0.3]])) == [Interval(0.3, 0.3)]


def test_ties_are_as_large_whatever_floats_make_of_them() -> None:
    wholes = np.random.default_rng(0).integers(-3, 5, (12, 9))
    expected = compare(0.0 * wholes, 1.0 * wholes)
    for divisor in (3, 7, 10, 1e5):
        for shift in (0, 0.1, 1 / 3, 100):
            found = compare(np.full((12, 9), shift), wholes / divisor + shift)
            assert [one[3:] for one in found] == [one[3:] for one in expected]
    noise = np.array([[0.1 + 0.2, 0.3], [0.3, 0.1 + 0.2]])
    assert [one.randomisation_p for one in compare(noise, noise[:, ::-1])] == [1, 1]


def test_noise_is_no_difference() -> None:
    a = scores(12, 1000)
    b = (a + 0.1 - 0.1)[::-1][::-1]
    b[0] += 0.5
    b[1] -= 0.5 + 1e-15
    for one in compare(a, b, num_samples=99, num_shuffles=99):
        assert one[3:] == (1, 1)


# --- invariance -------------------------------------------------------------------------------------


def test_turned_round() -> None:
    a, b = scores(13), scores(14)
    for one, other in zip(compare(a, b), compare(b, a), strict=True):
        assert other.difference == -one.difference
        assert (other.low, other.high) == pytest.approx((-one.high, -one.low), abs=1e-15)
        assert other[3:] == one[3:]


def test_a_column_does_not_depend_on_the_others() -> None:
    a, b = scores(15), scores(16)
    a[:, 1] *= 1e9
    assert bootstrap_intervals(a) == [bootstrap_intervals(a[:, [n]])[0] for n in range(3)]
    assert compare(a, b) == [compare(a[:, [n]], b[:, [n]])[0] for n in range(3)]


def test_scale_does_not_matter() -> None:
    a, b = scores(17), scores(18)
    for one, large in zip(compare(a, b), compare(a * 1024, b * 1024), strict=True):
        assert large == (*(1024 * value for value in one[:3]), *one[3:])


@pytest.mark.parametrize("chunk", [1, 100, 1000])
def test_chunks_do_not_matter(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = scores(19, 130), scores(20, 130)
    expected = bootstrap_intervals(a), compare(a, b, num_shuffles=1000)
    monkeypatch.setattr(significance, "_CHUNK", chunk)
    assert (bootstrap_intervals(a), compare(a, b, num_shuffles=1000)) == expected


def test_layout_and_type_do_not_matter() -> None:
    a, b = scores(21), scores(22)
    assert compare(np.asfortranarray(a), np.repeat(b, 2, axis=0)[::2]) == compare(a, b)
    whole = (10 * a).astype(int)
    assert bootstrap_intervals(whole) == bootstrap_intervals(whole.astype(np.float64))  # type: ignore[arg-type]


def test_values_are_left_alone() -> None:
    a, b = scores(23), scores(24)
    before = a.copy(), b.copy()
    bootstrap_intervals(a), compare(a, b)
    np.testing.assert_array_equal([a, b], before)


def test_the_seed_decides() -> None:
    a, b = scores(25), scores(26)
    assert (
        bootstrap_intervals(a)
        == bootstrap_intervals(a, seed=SEED)
        != bootstrap_intervals(a, seed=1)
    )
    assert compare(a, b) == compare(a, b, seed=SEED)
    one, other = compare(a, b)[0], compare(a, b, seed=1)[0]
    assert one.low != other.low
    assert one.randomisation_p != other.randomisation_p


def test_the_two_tests_do_not_share_their_numbers() -> None:
    a, b = scores(27), scores(28)
    few, many = compare(a, b, num_samples=10)[0], compare(a, b, num_samples=20)[0]
    assert few.randomisation_p == many.randomisation_p


PROGRAM = """
import numpy as np
from ledeline.evaluation.significance import compare, bootstrap_intervals
a, b = np.random.default_rng(0).random((2, 3000, 9))
print(bootstrap_intervals(a), compare(a, b, num_shuffles=500))
"""


def test_threads_do_not_matter() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            check=True,
            capture_output=True,
            env=os.environ | {"OMP_NUM_THREADS": num, "OPENBLAS_NUM_THREADS": num},
        ).stdout
        for num in ("1", "2", "4")
    }
    assert len(printed) == 1


# --- what is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [np.zeros(3), np.zeros((0, 3)), np.zeros((2, 2, 2))])
def test_values_of_another_shape(values: Array) -> None:
    with pytest.raises(ValueError, match="rows of pairs"):
        bootstrap_intervals(values)


@pytest.mark.parametrize("shape", [(2, 3), (1, 2), (2, 1)])
def test_systems_of_different_shapes(shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="different shapes"):
        compare(np.zeros((2, 2)), np.zeros(shape))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_no_numbers(value: float) -> None:
    with pytest.raises(ValueError, match="no number"):
        compare(np.zeros((1, 1)), np.array([[value]]))


@pytest.mark.parametrize("values", [[0.47225, 0.0], [0.49544, 1.0], [0.1, 0.1, 0.3]])
def test_intervals_stay_among_the_values(values: list[float]) -> None:
    (one,) = bootstrap_intervals(np.array(values)[:, None])
    assert min(values) <= one.low <= one.high <= max(values)
