"""What a run reports while it trains, without knowing who shows it."""

from dataclasses import dataclass
from typing import Protocol

from ledeline.train.loss_accumulator import MeanLosses
from ledeline.train.validation import Validation


@dataclass(frozen=True)
class RunStart:
    """What is about to run."""

    system: str
    num_parameters: int
    vocabulary: int
    num_pairs: int
    num_epochs: int
    device: str
    num_processes: int
    step: int  # already done


@dataclass(frozen=True)
class StepReport:
    """The run in the middle of an epoch."""

    step: int
    epoch: int  # from 1
    num_epochs: int
    batch: int  # done in this epoch
    num_batches: int
    losses: MeanLosses  # since the last line of metrics
    norm: float  # of the last gradient, before clipping
    rate: float  # the learning rate of the last step
    pairs_per_second: float
    seconds_left: float  # at most: validation may end it earlier

    @property
    def metrics(self) -> dict[str, float]:
        """By name, as a line of metrics has it."""
        return {
            "epoch": self.epoch,
            **self.losses.metrics,
            "norm": self.norm,
            "rate": self.rate,
            "pairs_per_second": round(self.pairs_per_second, 1),
        }


class Callback(Protocol):
    """Who wants to know how a run goes."""

    def on_start(self, start: RunStart) -> None:
        """Everything is ready for the first step."""

    def on_step(self, report: StepReport) -> None:
        """Some steps were done."""

    def on_validation(self, validation: Validation) -> None:
        """An epoch was validated."""

    def progress(self, stage: str, done: int, total: int | None) -> None:
        """Something other than steps is under way: a `ledeline.core.progress.Progress`."""

    def on_message(self, sentence: str) -> None:
        """Show a sentence to the user."""


class NullCallback:
    """A callback that shows nothing."""

    def on_start(self, start: RunStart) -> None:
        """Show nothing."""

    def on_step(self, report: StepReport) -> None:
        """Show nothing."""

    def on_validation(self, validation: Validation) -> None:
        """Show nothing."""

    def progress(self, stage: str, done: int, total: int | None) -> None:
        """Show nothing."""

    def on_message(self, sentence: str) -> None:
        """Show nothing."""
