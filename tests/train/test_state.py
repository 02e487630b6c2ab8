import json
import math
from dataclasses import replace

from ledeline.config import LoopConfig
from ledeline.data.batches import BatchPosition
from ledeline.train.state import TrainState


def test_a_state_survives_json_bit_for_bit() -> None:
    for loss in (math.inf, 2.0 / 3, 5e-324):
        train_state = TrainState(7, BatchPosition(1, 2), loss, 5, 1, "", (3.0, 1.0 / 3))
        assert TrainState.from_json(json.loads(json.dumps(train_state.to_json()))) == train_state


class TestValidated:
    CONFIG = LoopConfig(epochs=9, patience=2)

    def after(self, *losses: float) -> TrainState:
        train_state = TrainState()
        for epoch, loss in enumerate(losses, start=1):
            train_state = train_state.after_step(BatchPosition(epoch, 0)).after_validation(
                loss, self.CONFIG
            )
        return train_state

    def test_the_best_is_remembered(self) -> None:
        train_state = self.after(3.0, 2.0, 2.5)
        assert (train_state.best_loss, train_state.best_step) == (2.0, 2)
        assert train_state.epochs_since_best == 1
        assert not train_state.finished

    def test_all_losses_are_kept_for_schedules(self) -> None:
        assert self.after(3.0, 2.0, 2.5).losses == (3.0, 2.0, 2.5)

    def test_a_state_of_0_1_0_has_none(self) -> None:
        old = {name: one for name, one in TrainState().to_json().items() if name != "losses"}
        assert TrainState.from_json(old).losses == ()

    def test_an_equal_loss_is_not_better(self) -> None:
        assert self.after(2.0, 2.0).best_step == 1

    def test_patience_ends_the_run(self) -> None:
        assert not self.after(2.0, 2.1, 1.9, 2.1).finished
        assert self.after(2.0, 2.1, 2.2).finished == "validation has not improved for 2 epochs"

    def test_the_last_epoch_ends_the_run(self) -> None:
        assert self.after(*(9.0 - n for n in range(9))).finished == "all 9 epochs are done"

    def test_a_configuration_that_asks_for_more_goes_on(self) -> None:
        done = self.after(2.0, 2.1, 2.2)
        assert not done.with_limits(replace(self.CONFIG, patience=3)).finished
        assert done.with_limits(self.CONFIG).finished

    def test_in_the_middle_of_an_epoch_patience_does_not_end_it(self) -> None:
        begun = replace(self.after(2.0, 2.1), position=BatchPosition(2, 5), epochs_since_best=2)
        assert not begun.with_limits(self.CONFIG).finished
