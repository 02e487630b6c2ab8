"""The state of a run: all that a checkpoint keeps beside the weights and the optimizer.

Random numbers need no state: they are seeded again with the number of each step.
"""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from ledeline.config import LoopConfig
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
    losses: tuple[float, ...] = ()  # of the validation after each epoch, per token

    @property
    def steps_per_epoch(self) -> int:
        """Steps of an epoch; more than were done, as long as the first has not ended."""
        if not self.position.epoch:
            return self.step + 1
        return (self.step - self.position.batch) // self.position.epoch

    def after_step(self, position: BatchPosition) -> Self:
        """The state one step later, at this place in the batches."""
        return replace(self, step=self.step + 1, position=position)

    def after_validation(self, loss: float, config: LoopConfig) -> Self:
        """The state at the end of an epoch with this validation loss per token."""
        if loss < self.best_loss:
            now = replace(self, best_loss=loss, best_step=self.step, epochs_since_best=0)
        else:
            now = replace(self, epochs_since_best=self.epochs_since_best + 1)
        return replace(now, losses=(*self.losses, loss)).with_limits(config)

    def with_limits(self, config: LoopConfig) -> Self:
        """The state with `finished` as the limits of a configuration have it.

        They may have been raised since the run began.
        """
        finished = ""
        if self.position.epoch >= config.epochs:
            finished = f"all {config.epochs} epochs are done"
        elif self.position.batch == 0 and self.epochs_since_best >= config.patience:
            finished = f"validation has not improved for {self.epochs_since_best} epochs"
        return replace(self, finished=finished)

    def to_json(self) -> dict[str, Any]:
        """As JSON can hold it, which has no infinity."""
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
                "losses": tuple(state.get("losses", ())),  # 0.1.0 did not keep them
            }
        )
