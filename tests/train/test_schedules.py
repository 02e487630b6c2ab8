"""Rates against values computed by hand."""

import math
from typing import Any

import pytest

from ledeline.config.section import BadValue
from ledeline.train.schedules import (
    SCHEDULES,
    ConstantSchedule,
    HalvingSchedule,
    PlateauSchedule,
    RunPosition,
    Schedule,
    WarmupCosineSchedule,
    WarmupInverseSqrtSchedule,
)

STEPS_PER_EPOCH, EPOCHS = 10, 3


def factors(schedule: Schedule, epochs: int = EPOCHS) -> list[float]:
    """The factor of every step of a run."""
    return [
        schedule.factor(RunPosition(step, step // STEPS_PER_EPOCH, STEPS_PER_EPOCH, epochs))
        for step in range(epochs * STEPS_PER_EPOCH)
    ]


class TestHalving:
    def test_it_begins_at_the_tenth_epoch(self) -> None:
        found = [HalvingSchedule().factor(RunPosition(epoch, epoch, 1, 15)) for epoch in range(15)]
        assert found == [1.0] * 9 + [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64]

    def test_another_first_epoch(self) -> None:
        assert factors(HalvingSchedule(halve_from=2)) == [1.0] * 10 + [0.5] * 10 + [0.25] * 10

    def test_the_first_epoch_has_nothing_to_halve(self) -> None:
        with pytest.raises(BadValue, match="halve_from = 1: must be at least 2"):
            HalvingSchedule(halve_from=1)


def test_constant() -> None:
    assert factors(ConstantSchedule()) == [1.0] * 30


class TestWarmupCosine:
    def test_by_hand(self) -> None:
        """Four steps up; then 26 down, the 13th of which is halfway."""
        found = factors(WarmupCosineSchedule(warmup_steps=4))
        assert found[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]
        assert found[4 + 13] == pytest.approx(0.5)
        assert found[-1] == pytest.approx((1 - math.cos(math.pi / 26)) / 2)
        assert found[4:] == sorted(found[4:], reverse=True)

    def test_what_is_left_at_the_end(self) -> None:
        schedule = WarmupCosineSchedule(warmup_steps=4, final=0.2)
        assert factors(schedule)[4 + 13] == pytest.approx(0.6)
        for step in (30, 99):  # behind the last one
            at = RunPosition(step, step // STEPS_PER_EPOCH, STEPS_PER_EPOCH, EPOCHS)
            assert schedule.factor(at) == pytest.approx(0.2)

    def test_without_a_warm_up(self) -> None:
        found = factors(WarmupCosineSchedule(warmup_steps=0))
        assert found[0] == 1.0
        assert found[15] == pytest.approx(0.5)

    def test_a_warm_up_as_long_as_the_run(self) -> None:
        assert factors(WarmupCosineSchedule(warmup_steps=30))[-1] == 1.0
        assert factors(WarmupCosineSchedule(warmup_steps=300))[-1] == pytest.approx(0.1)

    def test_more_epochs_fall_more_slowly(self) -> None:
        schedule = WarmupCosineSchedule(warmup_steps=4)
        assert factors(schedule, 6)[4 + 28] == pytest.approx(0.5)


class TestWarmupInverseSqrt:
    def test_by_hand(self) -> None:
        found = factors(WarmupInverseSqrtSchedule(warmup_steps=4))
        assert found[:4] == [0.25, 0.5, 0.75, 1.0]
        assert found[8] == pytest.approx(2 / 3)  # sqrt(4 / 9)
        assert found[15] == pytest.approx(1 / 2)  # sqrt(4 / 16)
        assert found[24] == pytest.approx(2 / 5)  # sqrt(4 / 25)

    @pytest.mark.parametrize("step", [0, 1, 3998, 3999, 4000, 20_000])
    def test_it_is_that_of_the_transformer(self, step: int) -> None:
        size, number = 512, step + 1
        published = size**-0.5 * min(number**-0.5, number * 4000**-1.5)
        rate = (size * 4000) ** -0.5
        ours = rate * WarmupInverseSqrtSchedule().factor(RunPosition(step, 0, 10**6, 1))
        assert ours == pytest.approx(published)


def test_each_is_found_by_its_name() -> None:
    assert {name: kind().name for name, kind in SCHEDULES.items()} == {
        name: name
        for name in ("halving", "constant", "warmup_cosine", "warmup_inverse_sqrt", "plateau")
    }


class TestPlateau:
    """The factors of the epochs after each of these validations."""

    LOSSES = (5.0, 4.0, 4.5, 4.2, 3.9, 3.9, 3.8)

    def factors(self, **keys: Any) -> list[float]:
        schedule = PlateauSchedule(**keys)
        return [
            schedule.factor(RunPosition(10 * done, done, 10, 15, self.LOSSES[:done]))
            for done in range(len(self.LOSSES) + 1)
        ]

    def test_worse_than_the_one_before_halves(self) -> None:
        """As ABS: after the third, and after the sixth, which is no better."""
        found = self.factors(compare_with="previous")
        assert found == [1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25]

    def test_not_better_than_the_best_halves(self) -> None:
        """The fourth is better than the third, but not than the second."""
        assert self.factors() == [1, 1, 1, 0.5, 0.25, 0.25, 0.125, 0.125]

    def test_after_some_epochs_in_a_row(self) -> None:
        assert self.factors(epochs_to_wait=2) == [1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5]

    def test_once_it_falls_it_falls_with_every_epoch(self) -> None:
        """As conv-s2s."""
        found = self.factors(keep_lowering=True, multiply_by=0.1)
        assert found == pytest.approx([1, 1, 1, 0.1, 0.01, 0.001, 1e-4, 1e-5])

    def test_without_a_validation_nothing_falls(self) -> None:
        assert PlateauSchedule().factor(RunPosition(3, 0, 10, 15)) == 1
