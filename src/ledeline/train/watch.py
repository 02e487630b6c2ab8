"""What a run tells while it goes on, without knowing who shows it."""

from dataclasses import dataclass
from typing import Protocol

from ledeline.train.tally import Means
from ledeline.train.validation import Validation


@dataclass(frozen=True)
class Beginning:
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
class Look:
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


class Watch(Protocol):
    """One who is told."""

    def begins(self, beginning: Beginning) -> None:
        """Everything is ready for the first step."""

    def looks(self, look: Look) -> None:
        """Some steps were done."""

    def validates(self, validation: Validation) -> None:
        """An epoch was looked at."""

    def progress(self, stage: str, done: int, total: int | None) -> None:
        """Something beside the steps goes on: a `ledeline.progress.Progress`."""

    def says(self, sentence: str) -> None:
        """Something worth a line."""


class Nobody:
    """A watch that shows nothing."""

    def begins(self, beginning: Beginning) -> None:
        """Show nothing."""

    def looks(self, look: Look) -> None:
        """Show nothing."""

    def validates(self, validation: Validation) -> None:
        """Show nothing."""

    def progress(self, stage: str, done: int, total: int | None) -> None:
        """Show nothing."""

    def says(self, sentence: str) -> None:
        """Show nothing."""
