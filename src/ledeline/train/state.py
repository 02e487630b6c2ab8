"""Where a run stands: all that a checkpoint keeps beside the weights and Adam's moments.

The dice need no place here: they are set anew from the seed and the number of each step.
"""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from ledeline.config import OptimizerConfig
from ledeline.data.batches import START, BatchPosition


@dataclass(frozen=True)
class TrainState:
    """The run between two steps."""

    step: int = 0  # done
    position: BatchPosition = START  # in the batches
    best_loss: float = math.inf  # of validation, per token
    best_step: int = 0  # whose checkpoint it is; 0: none yet
    epochs_since_best: int = 0
    finished: str = ""  # why there is nothing left to do

    @property
    def steps_an_epoch(self) -> int:
        """Steps of an epoch; more than were done, as long as the first has not ended."""
        if not self.position.epoch:
            return self.step + 1
        return (self.step - self.position.batch) // self.position.epoch

    def stepped(self, behind: BatchPosition) -> Self:
        """One step on, to this place in the batches."""
        return replace(self, step=self.step + 1, position=behind)

    def validated(self, loss: float, config: OptimizerConfig) -> Self:
        """An epoch further, with this loss per token."""
        if loss < self.best_loss:
            now = replace(self, best_loss=loss, best_step=self.step, epochs_since_best=0)
        else:
            now = replace(self, epochs_since_best=self.epochs_since_best + 1)
        return now.judged(config)

    def judged(self, config: OptimizerConfig) -> Self:
        """Whether the run is at its end, by a configuration that may ask for more than before."""
        finished = ""
        if self.position.epoch >= config.epochs:
            finished = f"all {config.epochs} epochs are done"
        elif self.position.batch == 0 and self.epochs_since_best >= config.patience:
            finished = f"validation has not improved for {self.epochs_since_best} epochs"
        return replace(self, finished=finished)

    def to_json(self) -> dict[str, Any]:
        """As JSON can hold it: it knows no infinity."""
        return asdict(self) | {
            "position": list(self.position),
            "best_loss": None if math.isinf(self.best_loss) else self.best_loss,
        }

    @classmethod
    def from_json(cls, state: dict[str, Any]) -> Self:
        """Undo `to_json`."""
        loss = state["best_loss"]
        return cls(
            **state
            | {
                "position": BatchPosition(*state["position"]),
                "best_loss": math.inf if loss is None else loss,
            }
        )


def learning_rate(config: OptimizerConfig, epoch: int) -> float:
    """Adam's rate in an epoch counted from 0: halved each epoch from `halve_from` on."""
    halvings = max(0, epoch + 1 - config.halve_from + 1)
    return config.learning_rate * 0.5**halvings
