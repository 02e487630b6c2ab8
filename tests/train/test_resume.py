"""Stopped and resumed, a run ends with the same bits, whatever its optimizer and schedule."""

import json
import shutil
import warnings
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from ledeline.core.errors import CheckpointError
from ledeline.train import run_folder
from ledeline.train.callbacks import NullCallback
from ledeline.train.checkpoint import Checkpoints
from ledeline.train.loop import train
from ledeline.train.optimizers import (
    AdadeltaConfig,
    AdagradConfig,
    AdamConfig,
    OptimizerConfig,
    SgdConfig,
)
from ledeline.train.schedules import (
    ConstantSchedule,
    HalvingSchedule,
    Schedule,
    WarmupCosineSchedule,
    WarmupInverseSqrtSchedule,
)
from ledeline.train.train_config import TrainConfig, load_train_config

STORED = Path(__file__).with_name("stored") / "0.1.0"

OPTIMIZERS: list[OptimizerConfig] = [
    AdamConfig(learning_rate=0.01, beta1=0.8),
    AdagradConfig(learning_rate=0.1, initial_sum=0.1),
    AdadeltaConfig(),
    SgdConfig(),
    SgdConfig(momentum=0.9, nesterov=True),
]
SCHEDULES: list[Schedule] = [
    HalvingSchedule(halve_from=2),
    ConstantSchedule(),
    WarmupCosineSchedule(warmup_steps=5, final=0.1),
    WarmupInverseSqrtSchedule(warmup_steps=5),
]


class Messages(NullCallback):
    """A callback that keeps the sentences."""

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def on_message(self, sentence: str) -> None:
        self.sentences.append(sentence)


@pytest.fixture
def small(tiny: TrainConfig) -> TrainConfig:
    """Steps that are reported one by one, and no headlines."""
    return replace(
        tiny,
        validation=replace(tiny.validation, headlines=0),
        run=replace(tiny.run, report_every=1, checkpoint_every=8),
    )


def tensors(run: Path, name: str) -> dict[str, torch.Tensor]:
    folder = run / "checkpoints"
    newest = Checkpoints(folder).steps()[-1]
    return Checkpoints(folder).open(newest).tensors(name)


@pytest.mark.parametrize(
    ("optimizer", "schedule"),
    [*product(OPTIMIZERS, SCHEDULES)],
    ids=lambda one: one.name + "+momentum" * bool(getattr(one, "momentum", 0)),
)
def test_stopped_and_resumed_is_as_one(
    tmp_path: Path, small: TrainConfig, optimizer: OptimizerConfig, schedule: Schedule, runs: Any
) -> None:
    """Resumed three times: at the first step, in the middle of both epochs."""
    config = replace(small, optimizer=optimizer, schedule=schedule)
    train(config, tmp_path / "whole")
    train(config, tmp_path / "parts", max_minutes=0)
    for step in (8, 16):
        stop_behind(config, tmp_path / "parts", step)
    train(config, tmp_path / "parts", resume=True)
    assert runs.metrics(tmp_path / "whole") == runs.metrics(tmp_path / "parts")  # with each rate
    for name in ("model", "optimizer"):
        assert runs.same(tensors(tmp_path / "whole", name), tensors(tmp_path / "parts", name))


def stop_behind(config: TrainConfig, run: Path, step: int) -> None:
    """Train on, and leave of it what a kill behind the checkpoint of a step leaves."""

    class Killed(BaseException):
        pass

    class Killer(NullCallback):
        def on_step(self, report: Any) -> None:
            if report.step == step + 2:
                raise Killed

    with pytest.raises(Killed):
        train(config, run, resume=True, callback=Killer())
    assert Checkpoints(run / "checkpoints").steps()[-1] == step


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=repr)
def test_what_a_checkpoint_holds(
    tmp_path: Path, small: TrainConfig, optimizer: OptimizerConfig
) -> None:
    config = replace(small, optimizer=optimizer)
    train(config, tmp_path / "run", max_minutes=0)
    weights, state = (tensors(tmp_path / "run", name) for name in ("model", "optimizer"))
    assert state.keys() == {f"{name}.{kind}" for name in weights for kind in optimizer.state_kinds}
    for name, one in state.items():
        kind = name.rpartition(".")[2]
        assert one.shape == (() if kind == "step" else weights[name.removesuffix(f".{kind}")].shape)
    steps = {float(one) for name, one in state.items() if name.endswith(".step")}
    assert steps == ({1.0} if optimizer.name == "adam" else set())
    checkpoint = Checkpoints(tmp_path / "run" / "checkpoints").open(1)
    assert checkpoint.state["belongs_to"]["optimizer.name"] == optimizer.name


def test_momentum_cannot_come_out_of_nothing(tmp_path: Path, small: TrainConfig) -> None:
    plain = replace(small, optimizer=SgdConfig())
    train(plain, tmp_path / "run", max_minutes=0)
    sentence = "does not hold what this model and optimizer need: .*momentum_buffer"
    with pytest.raises(CheckpointError, match=sentence):
        train(replace(plain, optimizer=SgdConfig(momentum=0.9)), tmp_path / "run", resume=True)


# --- a run that ledeline 0.1.0 began --------------------------------------------------------------


@pytest.fixture
def old(tmp_path: Path, one_thread: None) -> Path:
    """Its dataset, and its run as it was stopped in the second of three epochs, behind step 34."""
    shutil.copytree(STORED, tmp_path / "old")
    return tmp_path / "old"


def continued(old: Path, callback: NullCallback | None = None) -> TrainConfig:
    config = load_train_config(
        old / "run" / "config.toml", [f"--data.dataset={old / 'dataset'}"], quiet=True
    )
    result = train(config, old / "run", resume=True, callback=callback)
    assert result.train_state.step == 81
    assert result.train_state.best_step == 54
    return config


class TestVersion010:
    """A run of ledeline 0.1.0, on 60 stories of the newsroom, seed 5, cut to a few words.

    SIGTERM stopped it at step 34. `finished.safetensors` has the weights with which it ended when
    0.1.0 resumed it, with one thread and torch 2.13.
    """

    RATE = 0.0025  # of the last epoch; the tolerance of weights is a part of it

    def test_its_configuration_means_the_same(self, old: Path) -> None:
        config = load_train_config(old / "run" / "config.toml", quiet=True)
        assert config.model.name == "EncDec+sGate+SPM"
        assert (config.system.embedding_size, config.system.hidden_size) == (6, 4)
        assert (config.system.layers, config.system.dropout) == (1, 0.2)
        assert config.addons["spm"].c == 5.0
        assert config.init.bound == 0.2
        assert config.optimizer == AdamConfig(learning_rate=0.01)
        assert config.schedule == HalvingSchedule(halve_from=2)
        assert (config.train.clip_norm, config.train.clip_value) == (1.0, None)
        assert (config.train.epochs, config.train.seed) == (3, 3)

    def test_it_ends_with_the_weights_it_ends_with_there(self, old: Path, runs: Any) -> None:
        continued(old)
        expected = load_file(STORED / "finished.safetensors")
        weights = runs.weights(old / "run", 81)
        assert weights.keys() == expected.keys()
        worst = max(float((weights[name] - expected[name]).abs().max()) for name in weights)
        assert worst < self.RATE / 20  # to the last bit where torch and the processor are the same

    def test_the_optimizer_goes_on_where_it_was(
        self, old: Path, runs: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The test above would see an Adam that had forgotten everything."""
        monkeypatch.setattr(run_folder, "load_optimizer_state", lambda *_: None)
        continued(old)
        expected, weights = (
            load_file(STORED / "finished.safetensors"),
            runs.weights(old / "run", 81),
        )
        worst = max(float((weights[name] - expected[name]).abs().max()) for name in weights)
        assert worst > self.RATE

    def test_its_lines_of_metrics_go_on(self, old: Path, runs: Any) -> None:
        before = runs.metrics(STORED / "run")
        continued(old)
        after = runs.metrics(old / "run")
        assert after[: len(before)] == before
        assert [line["step"] for line in after if line["event"] == "valid"] == [27, 54, 81]
        rates = [line["rate"] for line in after if line["event"] == "train"]
        assert rates == [0.01] * 6 + [0.005] * 6 + [0.0025] * 7

    def test_the_next_checkpoint_is_of_today(self, old: Path) -> None:
        callback = Messages()
        config = continued(old, callback)
        assert not [one for one in callback.sentences if "was" in one]  # no key has changed
        assert load_train_config(old / "run" / "config.toml") == config
        newest = old / "run" / "checkpoints" / "00000081" / "checkpoint.json"
        manifest = json.loads(newest.read_text())
        assert manifest["version"] == 2
        assert manifest["state"].keys() == {"train_state", "belongs_to"}
        assert "standing" in json.loads(
            (STORED / "run/checkpoints/00000034/checkpoint.json").read_text()
        ).get("state", {})

    def test_old_keys_are_named_with_the_new_ones(self, old: Path) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            load_train_config(old / "run" / "config.toml")
        (warning,) = caught
        for clause in (
            "model.init is called init.bound now",
            "[model] is called [system] now",
            "[gate] is called [sgate] now",
            "train.learning_rate is called optimizer.learning_rate now",
            "train.halve_from is called schedule.halve_from now",
            "train.clip is called train.clip_norm now",
        ):
            assert clause in str(warning.message)
