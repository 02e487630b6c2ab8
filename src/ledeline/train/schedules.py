"""Schedules: how the learning rate changes from step to step.

`[schedule] name = "..."` picks one. Each gives a factor for `optimizer.learning_rate`, from numbers
that follow from the step and from the validations before it, so that a resumed run has the rates of
an undisturbed one.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Final, Literal, NamedTuple, Protocol

from ledeline.config.section import above, at_least, below, section


class RunPosition(NamedTuple):
    """A step of a run."""

    step: int  # counted from 0, over all epochs
    epoch: int  # counted from 0
    steps_per_epoch: int
    epochs: int  # of the whole run, at most
    losses: tuple[float, ...] = ()  # of the validation after each epoch that is done


class Schedule(Protocol):
    """What a schedule has."""

    @property
    def name(self) -> str:
        """What it is called in configurations."""

    def factor(self, at: RunPosition) -> float:
        """What the learning rate is multiplied with at a step."""


@section
class HalvingSchedule:
    """The full rate at first, then halved with every epoch, as in the paper."""

    name: Annotated[Literal["halving"], "Halved with every epoch, from one on."] = "halving"
    halve_from: Annotated[
        int, "First epoch, counted from 1, with half the rate of the epoch before.", at_least(2)
    ] = 10

    def factor(self, at: RunPosition) -> float:
        """1, then 1/2, 1/4 and so on: the same throughout an epoch."""
        num_halvings = max(0, at.epoch + 1 - self.halve_from + 1)
        return float(0.5**num_halvings)


@section
class ConstantSchedule:
    """The same rate at every step."""

    name: Annotated[Literal["constant"], "A constant rate."] = "constant"

    def factor(self, at: RunPosition) -> float:  # noqa: ARG002
        """Always 1."""
        return 1.0


@section
class WarmupCosineSchedule:
    """Linear warm-up, then cosine decay until the end of the last epoch."""

    name: Annotated[Literal["warmup_cosine"], "Linear warm-up, then cosine decay."] = (
        "warmup_cosine"
    )
    warmup_steps: Annotated[int, "Steps of warm-up; 0: none.", at_least(0)] = 4000
    final: Annotated[
        float,
        "Factor at the end of the last epoch, train.epochs.",
        at_least(0),
        below(1),
    ] = 0.0

    def factor(self, at: RunPosition) -> float:
        """1/warmup_steps at the first step, 1 at the last of the warm-up, towards `final` after."""
        if at.step < self.warmup_steps:
            return (at.step + 1) / self.warmup_steps
        num_steps = max(1, at.epochs * at.steps_per_epoch - self.warmup_steps)
        done = min(1.0, (at.step - self.warmup_steps) / num_steps)
        return self.final + (1 - self.final) * (1 + math.cos(math.pi * done)) / 2


@section
class WarmupInverseSqrtSchedule:
    """Linear warm-up, then decay with the inverse square root of the step (Vaswani et al. 2017).

    Their rate is this one with a learning rate of `1 / sqrt(d_model * warmup_steps)`.
    """

    name: Annotated[
        Literal["warmup_inverse_sqrt"],
        "Linear warm-up, then inverse square root decay.",
    ] = "warmup_inverse_sqrt"
    warmup_steps: Annotated[int, "Steps of warm-up.", at_least(1)] = 4000

    def factor(self, at: RunPosition) -> float:
        """1/warmup_steps at the first step, 1 at the last of the warm-up, then ever less."""
        number = at.step + 1
        return min(number / self.warmup_steps, math.sqrt(self.warmup_steps / number))


@section
class PlateauSchedule:
    """Lower where validation gets worse, as ABS, SEASS and conv-s2s were trained."""

    name: Annotated[Literal["plateau"], "Lower when the validation loss does not improve."] = (
        "plateau"
    )
    multiply_by: Annotated[
        float, "What the rate is multiplied with each time.", above(0), below(1)
    ] = 0.5
    compare_with: Annotated[
        Literal["previous", "best"],
        "The validation that a new one must be better than: the one before, or the best so far.",
    ] = "best"
    epochs_to_wait: Annotated[
        int, "Lower the rate after so many epochs in a row that were not better.", at_least(1)
    ] = 1
    keep_lowering: Annotated[
        bool, "Lower the rate with every epoch after the first time, whatever validation says."
    ] = False

    def factor(self, at: RunPosition) -> float:
        """1, and `multiply_by` once for each time; the same throughout an epoch."""
        return float(self.multiply_by ** self._num_times(at.losses))

    def _num_times(self, losses: tuple[float, ...]) -> int:
        times, waited, bar = 0, 0, math.inf
        for loss in losses:
            waited = 0 if loss < bar else waited + 1
            if waited == self.epochs_to_wait or (times and self.keep_lowering):
                times, waited = times + 1, 0
            bar = loss if self.compare_with == "previous" else min(bar, loss)
        return times


SCHEDULES: Final[Mapping[str, type]] = {
    "halving": HalvingSchedule,
    "constant": ConstantSchedule,
    "warmup_cosine": WarmupCosineSchedule,
    "warmup_inverse_sqrt": WarmupInverseSqrtSchedule,
    "plateau": PlateauSchedule,
}
