"""What a run learns from, what it starts from, and which of its epochs it keeps."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ledeline.core.errors import DatasetError, ModelError, TrainingError
from ledeline.data.dataset import Dataset
from ledeline.model.format.model_folder import load_model
from ledeline.train.checkpoint import Checkpoints
from ledeline.train.loop import train
from ledeline.train.train_config import TrainConfig
from systems import addons


def changed(config: TrainConfig, **sections: dict[str, Any]) -> TrainConfig:
    parts = {name: replace(getattr(config, name), **keys) for name, keys in sections.items()}
    return replace(config, **parts)


class TestPairs:
    def test_the_first_ones_alone_make_the_batches(self, tmp_path: Path, tiny: TrainConfig) -> None:
        config = changed(tiny, data={"pairs": 9}, train={"batch_size": 1, "epochs": 1})
        assert train(config, tmp_path / "run").train_state.step == 9

    def test_part_of_a_split_is_its_first_pairs(self, newsroom: Path) -> None:
        split = Dataset(newsroom)["train"]
        part = split.first(7)
        assert len(part) == 7
        assert [part[row] for row in range(7)] == [split[row] for row in range(7)]
        for side, whole in ((part.sources, split.sources), (part.headlines, split.headlines)):
            assert side.lengths().tolist() == whole.lengths()[:7].tolist()
            assert side.joined().tolist() == [one for row in range(7) for one in whole[row]]
            assert whole.joined().tolist() == np.asarray(whole.ids[:]).tolist()
        assert len(split.first(0).sources.lengths()) == 0
        with pytest.raises(ValueError, match="25 pairs are asked for, but the split has 24"):
            split.first(25)

    def test_more_than_there_are(self, tmp_path: Path, tiny: TrainConfig) -> None:
        with pytest.raises(DatasetError, match=r"data\.pairs = 25, and .* has 24 pairs"):
            train(changed(tiny, data={"pairs": 25}), tmp_path / "run")

    def test_they_stay_the_same(self, tmp_path: Path, tiny: TrainConfig) -> None:
        config = changed(tiny, train={"epochs": 1})
        train(config, tmp_path / "run")
        with pytest.raises(TrainingError, match=r"data\.pairs = None, which cannot change to 9"):
            train(changed(config, data={"pairs": 9}), tmp_path / "run", resume=True)


class TestStart:
    @pytest.fixture
    def other(self, tmp_path: Path, tiny: TrainConfig) -> Path:
        train(changed(tiny, train={"epochs": 1}), tmp_path / "other")
        return tmp_path / "other" / "best"

    def test_the_weights_are_anothers(
        self, tmp_path: Path, tiny: TrainConfig, other: Path, runs: Any
    ) -> None:
        start = {"start_from": other, "epochs": 1}
        almost_still = changed(tiny, train=start, optimizer={"learning_rate": 1e-12})
        train(almost_still, tmp_path / "run")
        before, after = (
            dict(load_model(one).model.state_dict()) for one in (other, tmp_path / "run" / "best")
        )
        for name, value in before.items():
            assert (after[name] - value).abs().max() < 1e-6, name

    def test_stopped_and_resumed_is_as_one(
        self, tmp_path: Path, tiny: TrainConfig, other: Path, runs: Any
    ) -> None:
        config = changed(tiny, train={"start_from": other})
        train(config, tmp_path / "whole")
        train(config, tmp_path / "parts", max_minutes=0)
        train(config, tmp_path / "parts", resume=True)
        assert runs.same(runs.weights(tmp_path / "whole"), runs.weights(tmp_path / "parts"))

    def test_another_shape_is_refused(self, tmp_path: Path, tiny: TrainConfig, other: Path) -> None:
        config = changed(tiny, train={"start_from": other})
        with pytest.raises(
            ModelError, match=r"has sgate\.enabled = True, but the configuration has False"
        ):
            train(replace(config, addons=addons(spm=True)), tmp_path / "run")
        with pytest.raises(
            ModelError, match=r"has system\.hidden_size = 8, but the configuration has 9"
        ):
            train(changed(config, system={"hidden_size": 9}), tmp_path / "run")
        assert not (tmp_path / "run").exists()  # so that the mended command can be given again

    def test_an_add_on_more_starts_with_weights_of_its_own(
        self, tmp_path: Path, tiny: TrainConfig
    ) -> None:
        """As coverage is added to a trained system for a last phase."""
        without = replace(tiny, addons=addons(sgate=True), train=replace(tiny.train, epochs=1))
        train(without, tmp_path / "without")
        start = {"start_from": tmp_path / "without" / "best", "epochs": 1}
        config = changed(tiny, train=start, optimizer={"learning_rate": 1e-12})
        train(replace(config, addons=addons(sgate=True, spm=True)), tmp_path / "run")
        before, after = (
            dict(load_model(tmp_path / run / "best").model.state_dict())
            for run in ("without", "run")
        )
        assert {name for name in after if name not in before} == {
            "spm.output.weight",
            "spm.output.bias",
        }
        assert after["spm.output.weight"].std() > 0.01
        for name, value in before.items():
            assert (after[name] - value).abs().max() < 1e-6, name

    def test_other_words_are_refused(
        self, tmp_path: Path, tiny: TrainConfig, other: Path, prepare_newsroom: Any
    ) -> None:
        folder = prepare_newsroom(tmp_path, 36, seed=5, merges=100, num_valid=12)
        config = changed(tiny, data={"dataset": folder}, train={"start_from": other})
        with pytest.raises(ModelError, match=r"prepare the dataset with --subword\.reuse="):
            train(config, tmp_path / "run")

    def test_it_may_be_the_shipped_model(
        self, tmp_path: Path, tiny: TrainConfig, other: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("ledeline.core.shipped.SHIPPED", other)
        config = changed(tiny, train={"start_from": Path("shipped"), "epochs": 1})
        assert train(config, tmp_path / "run").train_state.step


class TestKeptEpochs:
    @pytest.mark.parametrize(
        ("number", "epochs"), [(0, [4, 5]), (3, [3, 4, 5]), (9, [1, 2, 3, 4, 5])]
    )
    def test_the_last_ones_stay(
        self, number: int, epochs: list[int], tmp_path: Path, tiny: TrainConfig
    ) -> None:
        config = changed(
            tiny,
            train={"epochs": 5, "patience": 9},
            run={"keep_epochs": number, "checkpoint_every": 0},
            validation={"headlines": 0},
        )
        result = train(config, tmp_path / "run")
        steps = result.train_state.step // 5
        kept = {step // steps for step in Checkpoints(tmp_path / "run" / "checkpoints").steps()}
        assert kept == {*epochs, result.train_state.best_step // steps}

    def test_those_between_epochs_do_not(self, tmp_path: Path, tiny: TrainConfig) -> None:
        config = changed(tiny, train={"epochs": 3}, run={"keep_epochs": 3, "checkpoint_every": 5})
        result = train(config, tmp_path / "run")
        steps, there = (
            result.train_state.step // 3,
            Checkpoints(tmp_path / "run" / "checkpoints").steps(),
        )
        assert [step for step in there[:-2] if step % steps] == []
        assert {steps, 2 * steps, 3 * steps} <= set(there)


class TestMemory:
    @pytest.mark.parametrize(
        "error",
        [
            torch.OutOfMemoryError("CUDA out of memory"),
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
            MemoryError(),
        ],
    )
    def test_its_end_is_a_sentence(
        self, error: Exception, tmp_path: Path, tiny: TrainConfig, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise error

        monkeypatch.setattr("ledeline.train.step.EagerSteps.run", fail)
        with pytest.raises(TrainingError, match=r"batches of 4 pairs; .* --train\.batch_size=2"):
            train(tiny, tmp_path / "run")

    def test_other_errors_stay_what_they_are(
        self, tmp_path: Path, tiny: TrainConfig, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise RuntimeError("something else")

        monkeypatch.setattr("ledeline.train.step.EagerSteps.run", fail)
        with pytest.raises(RuntimeError, match="something else"):
            train(tiny, tmp_path / "run")
