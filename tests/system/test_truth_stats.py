"""Statistics of bench/truth.py, by hand and beside slow versions of them."""

import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages import ROOT

sys.path.append(str(ROOT / "bench"))

import truth_stats as stats


def array(*numbers: float) -> stats.Array:
    return np.array(numbers, np.float64)


judgements = st.lists(
    st.tuples(st.sampled_from([0.0, 0.2, 0.5, 0.8, 1.0]), st.sampled_from([0.0, 0.5, 1.0])),
    min_size=1,
    max_size=12,
)


def columns(items: list[tuple[float, float]]) -> tuple[stats.Array, stats.Array]:
    support, bad = zip(*items, strict=True)
    return array(*support), array(*bad)


def readings(items: list[tuple[float, float]]) -> list[tuple[float, bool]]:
    """Each headline as two items, one for each reading."""
    return [(support, bad > place) for support, bad in items for place in (0.0, 0.5)]


class TestLabelStatistics:
    def test_wilson_has_the_known_values(self) -> None:
        assert stats.wilson(1, 10) == pytest.approx((0.01787621, 0.40415002), abs=1e-7)
        assert stats.wilson(0, 10) == pytest.approx((0.0, 0.27753280), abs=1e-7)

    @given(st.integers(1, 60), st.data())
    def test_wilson_solves_its_equation(self, number: int, data: st.DataObject) -> None:
        """A bound is the probability whose own deviation reaches the observed share."""
        count = data.draw(st.integers(0, number))
        for bound in stats.wilson(count, number):
            reach = stats.Z * math.sqrt(bound * (1 - bound) / number)
            assert abs(count / number - bound) == pytest.approx(reach, abs=1e-7)

    def test_kappa_by_hand(self) -> None:
        first, second = list("aaaabbbbcc"), list("aaabbbbacc")
        assert stats.agreement(first, second) == 0.8
        chance = 0.4 * 0.4 + 0.4 * 0.4 + 0.2 * 0.2
        assert stats.kappa(first, second) == pytest.approx((0.8 - chance) / (1 - chance))

    def test_kappa_is_0_by_chance_1_by_harmony_and_else_nothing(self) -> None:
        assert stats.kappa(list("aabb"), list("abab")) == 0
        assert stats.kappa(list("ab"), list("ab")) == 1
        assert math.isnan(stats.kappa(list("aa"), list("aa")))
        assert math.isnan(stats.kappa([], []))

    def test_mcnemar_by_hand(self) -> None:
        assert stats.mcnemar(0, 5) == stats.mcnemar(5, 0) == 2 / 32
        assert stats.mcnemar(2, 8) == pytest.approx(2 * (1 + 10 + 45) / 1024)
        assert stats.mcnemar(3, 3) == stats.mcnemar(0, 0) == 1

    def test_mcnemar_is_the_share_of_coins_as_far_from_even(self) -> None:
        for first in range(6):
            for second in range(6):
                number = first + second
                tosses = [bin(one).count("1") for one in range(2**number)]
                far = [one for one in tosses if abs(2 * one - number) >= abs(first - second)]
                assert stats.mcnemar(first, second) == pytest.approx(len(far) / 2**number)

    def test_a_paired_gap_of_pairs_that_all_differ_alike_is_certain(self) -> None:
        gap = stats.paired_gap(array(1, 1, 0.5), array(0.5, 0.5, 0))
        assert gap == (-0.5, (-0.5, -0.5))

    def test_a_paired_gap_has_the_binomial_interval(self) -> None:
        """Of 4 pairs one differs: the drawn means are a binomial of 4 with probability 1/4."""
        gap = stats.paired_gap(array(0, 0, 0, 0), array(1, 0, 0, 0))
        assert gap.difference == 0.25
        assert gap.bounds == (0.0, 0.75)

    def test_a_paired_gap_hangs_on_its_seed_alone(self) -> None:
        dice = np.random.default_rng(1)
        a, b = dice.random((2, 50))
        assert stats.paired_gap(a, b, seed=3) == stats.paired_gap(a, b, seed=3)
        assert stats.paired_gap(a, b, seed=3).bounds != stats.paired_gap(a, b, seed=4).bounds


class TestDetectorStatistics:
    def test_auroc_by_hand(self) -> None:
        assert stats.auroc(array(0.1, 0.9), array(1, 0)) == 1
        assert stats.auroc(array(0.9, 0.1), array(1, 0)) == 0
        assert stats.auroc(array(0.4, 0.4, 0.8), array(1, 0, 0)) == 0.75
        assert math.isnan(stats.auroc(array(0.4, 0.4), array(0, 0)))

    @given(judgements)
    def test_auroc_is_a_fraction_of_pairs(self, items: list[tuple[float, float]]) -> None:
        single = readings(items)
        bad = [support for support, is_bad in single if is_bad]
        good = [support for support, is_bad in single if not is_bad]
        won = [(one < other) + (one == other) / 2 for one in bad for other in good]
        found = stats.auroc(*columns(items))
        assert found == pytest.approx(sum(won) / len(won)) if won else math.isnan(found)

    @given(judgements, st.data())
    def test_times_repeat_headlines(
        self, items: list[tuple[float, float]], data: st.DataObject
    ) -> None:
        number = len(items)
        times = data.draw(st.lists(st.integers(0, 3), min_size=number, max_size=number))
        weights = array(*times)
        repeated = [one for one, often in zip(items, times, strict=True) for _ in range(often)]
        if repeated:
            support, bad = columns(items)
            for statistic in (stats.auroc, stats.average_precision):
                expected = statistic(*columns(repeated))
                assert statistic(support, bad, weights) == pytest.approx(expected, nan_ok=True)
            expected_at = stats.at_recall(*_with_good(repeated), 0.8)
            found_at = stats.at_recall(*_with_good(items), 0.8, weights)
            assert found_at == pytest.approx(expected_at, nan_ok=True)

    def test_average_precision_by_hand(self) -> None:
        support, bad = array(0.1, 0.2, 0.3, 0.4), array(1, 0, 1, 0)
        assert stats.average_precision(support, bad) == pytest.approx((1 + 2 / 3) / 2)
        assert stats.average_precision(array(0.5, 0.5), array(1, 0)) == 0.5

    def test_thresholds_by_hand(self) -> None:
        support, bad = array(0.1, 0.4, 0.5, 0.9), array(1, 0.5, 1, 0)
        assert stats.at_threshold(support, bad, 0.5) == (0.5, 0.5, 0.75, 0.6)
        nothing = stats.at_threshold(support, bad, 0.05)
        assert (nothing.doubted, nothing.recall) == (0, 0)
        assert math.isnan(nothing.precision)

    def test_the_price_of_recall_by_hand(self) -> None:
        support = array(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
        bad, good = array(1, 0, 1, 1, 0, 1, 1), array(0, 1, 0, 0, 1, 0, 0)
        assert stats.at_recall(support, bad, good, 0.8) == (0.6, 0.8, 1.0)
        assert stats.at_recall(support, bad, good, 0.6) == (0.4, 0.6, 0.5)

    @given(judgements)
    def test_the_price_of_recall_is_the_least(self, items: list[tuple[float, float]]) -> None:
        support, bad, good = _with_good(items)
        found = stats.at_recall(support, bad, good, 0.8)
        enough = [one for one in set(support) if bad[support <= one].sum() >= 0.8 * bad.sum()]
        if not bad.sum():
            assert math.isnan(found.threshold)
        else:
            assert found.threshold == min(enough)

    def test_risks_by_hand(self) -> None:
        support, bad = array(0.9, 0.8, 0.8, 0.1), array(0, 1, 0, 1)
        assert stats.risks(support, bad, [0.25, 0.5, 0.75, 1]) == [0, 0.25, 1 / 3, 0.5]
        assert stats.risk_area(support, bad) == pytest.approx((0 + 0.25 + 1 / 3 + 0.5) / 4)

    @given(judgements)
    def test_risks_are_the_mean_over_orders_of_ties(self, items: list[tuple[float, float]]) -> None:
        support, bad = columns(items)
        number = len(items)
        coverages = [place / number for place in range(1, number + 1)]
        for place, risk in enumerate(stats.risks(support, bad, coverages), start=1):
            ordered = sorted(support, reverse=True)
            last = ordered[place - 1]
            above, level = bad[support > last], bad[support == last]
            kept = above.sum() + level.mean() * (place - len(above))
            assert risk == pytest.approx(kept / place)

    def test_calibration_by_hand(self) -> None:
        found = stats.calibration(array(0.05, 0.95, 1.0, 0.5), array(1, 0, 0.5, 0))
        assert [(one.low, one.number) for one in found.bins] == [(0.0, 1), (0.5, 1), (0.9, 2)]
        assert found.bins[2][3:] == pytest.approx((0.975, 0.75))
        assert found.error == pytest.approx((0.05 + 0.5 + 2 * 0.225) / 4)
        assert found.brier == pytest.approx((0.05**2 + 0.05**2 + 0.5 + 0.25) / 4)

    def test_an_edge_is_in_the_bin_above(self) -> None:
        edges = [place / 10 for place in range(11)]
        found = stats.calibration(array(*edges), np.zeros(11))
        assert [one.number for one in found.bins] == [1] * 9 + [2]

    def test_the_bootstrap_draws_groups_together(self) -> None:
        seen = []
        stats.bootstrap(lambda times: seen.append(times) or 0.0, ["a", "b", "a"], num_draws=50)  # type: ignore[func-returns-value]
        assert all(one[0] == one[2] and one[0] + one[1] == 2 for one in seen)
        assert {one[1] for one in seen} == {0, 1, 2}

    def test_the_bootstrap_finds_the_interval_of_a_mean(self) -> None:
        values = np.random.default_rng(1).normal(size=400)
        low, high = stats.bootstrap(
            lambda times: float((times * values).sum() / times.sum()), range(400), num_draws=2000
        )
        half = stats.Z * values.std() / 20
        assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.01)


def _with_good(items: list[tuple[float, float]]) -> tuple[stats.Array, stats.Array, stats.Array]:
    support, bad = columns(items)
    return support, bad, 1 - bad
