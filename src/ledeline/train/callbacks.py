"""What a run tells while it goes on, without knowing who shows it."""

from dataclasses import dataclass
from typing import Protocol

from ledeline.train.losses import Means
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
    means: Means  # since the last line of metrics
    norm: float  # of the last gradient, before clipping
    rate: float
    pairs_per_second: float
    seconds_left: float  # at most: validation may end it earlier

    @property
    def figures(self) -> dict[str, float]:
        """By name, as reports have it."""
        return {
            "epoch": self.epoch,
            **self.means.figures,
            "norm": self.norm,
            "rate": self.rate,
            "pairs_per_second": round(self.pairs_per_second, 1),
        }


class Callback(Protocol):
    """One who is told."""

    def on_start(self, beginning: RunStart) -> None:
        """Everything is ready for the first step."""

    def on_step(self, look: StepReport) -> None:
        """Some steps were done."""

    def on_validation(self, validation: Validation) -> None:
        """An epoch was looked at."""

    def progress(self, stage: str, done: int, total: int | None) -> None:
        """Something beside the steps goes on: a `ledeline.core.progress.Progress`."""

    def on_message(self, sentence: str) -> None:
        """Something worth a line."""


class NullCallback:
    """A callback that shows nothing."""

    def on_start(self, beginning: RunStart) -> None:
        """Show nothing."""

    def on_step(self, look: StepReport) -> None:
        """Show nothing."""

    def on_validation(self, validation: Validation) -> None:
        """Show nothing."""

    def progress(self, stage: str, done: int, total: int | None) -> None:
        """Show nothing."""

    def on_message(self, sentence: str) -> None:
        """Show nothing."""
