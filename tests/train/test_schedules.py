"""Rates against values computed by hand."""

import math

import pytest

from ledeline.config.section import BadValue
from ledeline.train.schedules import (
    SCHEDULES,
    ConstantSchedule,
    HalvingSchedule,
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
        name: name for name in ("halving", "constant", "warmup_cosine", "warmup_inverse_sqrt")
    }
