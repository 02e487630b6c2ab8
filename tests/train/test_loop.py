import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ledeline.config import LoopConfig, RunConfig
from ledeline.config.toml import to_toml
from ledeline.core.errors import CheckpointError, DatasetError, TrainingError
from ledeline.data.dataset import Dataset
from ledeline.model.build import build
from ledeline.model.format.model_folder import load_model
from ledeline.model.pairs import Pairs
from ledeline.model.system import Trace
from ledeline.model.systems.encdec import EncDec, EncDecConfig
from ledeline.model.systems.gru import GruConfig
from ledeline.runtime.cpu import has_bfloat16
from ledeline.train.callbacks import NullCallback, RunStart, StepReport
from ledeline.train.checkpoint import Checkpoints
from ledeline.train.loop import _steps_between_reports, train
from ledeline.train.metrics_log import NO_TENSORBOARD
from ledeline.train.optimizers import SgdConfig
from ledeline.train.processes import World
from ledeline.train.schedules import ConstantSchedule
from ledeline.train.throughput import Throughput
from ledeline.train.train_config import TrainConfig, load_train_config
from ledeline.train.validation import Validation
from systems import addons


class Memory(NullCallback):
    """A callback that remembers."""

    def __init__(self) -> None:
        self.starts: list[RunStart] = []
        self.seen: list[StepReport] = []
        self.validations: list[Validation] = []
        self.sentences: list[str] = []

    def on_start(self, start: RunStart) -> None:
        self.starts.append(start)

    def on_step(self, report: StepReport) -> None:
        self.seen.append(report)

    def on_validation(self, validation: Validation) -> None:
        self.validations.append(validation)

    def on_message(self, sentence: str) -> None:
        self.sentences.append(sentence)


def changed(config: TrainConfig, **sections: dict[str, Any]) -> TrainConfig:
    parts = {name: replace(getattr(config, name), **keys) for name, keys in sections.items()}
    return replace(config, **parts)


def test_a_run_tells_and_keeps_what_it_should(tmp_path: Path, tiny: TrainConfig, runs: Any) -> None:
    callback, folder = Memory(), tmp_path / "run"
    result = train(tiny, folder, callback=callback)
    steps = len(callback.seen)
    assert result.train_state.finished == "all 2 epochs are done"
    assert result.train_state.step == steps == 2 * callback.seen[0].num_batches
    assert not result.stopped

    # what is seen
    assert [report.step for report in callback.seen] == list(range(1, steps + 1))
    assert {report.epoch for report in callback.seen} == {1, 2}
    assert callback.seen[steps // 2 - 1].batch == callback.seen[0].num_batches
    for report in callback.seen:
        assert report.losses.named.keys() == {"target", "source"}
        assert report.norm > 0
        assert report.pairs_per_second > 0
    assert callback.seen[-1].seconds_left == 0
    assert [validation.epoch for validation in callback.validations] == [1, 2]
    for validation in callback.validations:
        assert validation.rouge is not None
        assert validation.num_headlines == 6
        assert len(validation.samples) == 2
        assert all(sample.headline and sample.links for sample in validation.samples)
    assert (
        callback.validations[1].losses.named["target"]
        < callback.validations[0].losses.named["target"]
    )

    # what is kept
    assert load_train_config(folder / "config.toml") == tiny
    about = json.loads((folder / "run.json").read_text())
    assert about["dataset"] == Dataset(tiny.data.dataset).checksum
    assert about["torch"] == torch.__version__
    assert about["commit"] is None or re.fullmatch(r"[0-9a-f]{40}\+?", about["commit"])
    reported = [line["step"] for line in runs.lines(folder, "train")]
    assert reported == sorted({*range(3, steps + 1, 3), steps // 2, steps})
    valid = runs.lines(folder, "valid")
    assert [line["step"] for line in valid] == [steps // 2, steps]
    assert {"target", "source", "per_token", "rouge1", "rougeL"} <= valid[0].keys()
    assert list((folder / "tensorboard").glob("events.*"))
    assert NO_TENSORBOARD not in callback.sentences
    assert not [path for path in folder.rglob("*") if path.suffix in (".pt", ".pkl", ".bin")]

    # the last two and the best
    last_two = [steps - steps % 7, steps] if steps % 7 else [steps - 7, steps]
    expected = sorted({*last_two, result.train_state.best_step})
    assert Checkpoints(folder / "checkpoints").steps() == expected
    assert (folder / "best").resolve().name == f"{result.train_state.best_step:08}"
    loaded = load_model(folder / "best")
    assert loaded.tokenizer.profile.name == "natural"
    assert runs.same(
        dict(loaded.model.state_dict()), runs.weights(folder, result.train_state.best_step)
    )


def test_a_run_without_tensorboard_says_so_once(
    tmp_path: Path, tiny: TrainConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    callback, folder = Memory(), tmp_path / "run"
    train(changed(tiny, train={"epochs": 1}), folder, callback=callback)
    assert callback.sentences == [NO_TENSORBOARD]
    assert "pip install 'ledeline[tensorboard]'" in NO_TENSORBOARD
    assert not (folder / "tensorboard").exists()


def test_the_losses_reported_are_those_of_the_model(tmp_path: Path, tiny: TrainConfig) -> None:
    """The first step's loss, computed apart: with dropout off it is that of the fresh model."""
    from ledeline.data.batches import Batches

    config = changed(tiny, system={"dropout": 0.0}, run={"report_every": 1})
    callback = Memory()
    train(config, tmp_path / "run", callback=callback)
    dataset = Dataset(config.data.dataset)
    model = build(config.model, dataset.tokenizer.vocabulary_size, config.train.seed, config.init)
    batch = next(Batches(dataset["train"], size=4, seed=config.train.seed).epoch(0))
    losses = model(model.pairs(batch))
    first = callback.seen[0].losses
    assert first.named["target"] == pytest.approx(losses.named["target"].mean().item(), rel=1e-6)
    assert first.named["source"] == pytest.approx(losses.named["source"].mean().item(), rel=1e-6)
    tokens = float((batch.headline_lengths + 1).sum())
    assert first.per_token == pytest.approx(losses.headline.sum().item() / tokens, rel=1e-6)
    (losses.total().mean()).backward()
    norm = torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm()
    assert callback.seen[0].norm == pytest.approx(float(norm), rel=1e-5)


def test_the_first_step_is_adams_with_a_clipped_gradient(
    tmp_path: Path, tiny: TrainConfig, runs: Any
) -> None:
    from ledeline.data.batches import Batches

    config = changed(
        tiny, system={"dropout": 0.0}, train={"clip_norm": 0.5}, run={"checkpoint_every": 1}
    )
    callback = Memory()
    train(config, tmp_path / "run", max_minutes=0, callback=callback)
    assert [report.step for report in callback.seen] == [1]
    dataset = Dataset(config.data.dataset)
    model = build(config.model, dataset.tokenizer.vocabulary_size, config.train.seed, config.init)
    optimizer = torch.optim.Adam(model.parameters(), 0.001)
    batch = next(Batches(dataset["train"], size=4, seed=config.train.seed).epoch(0))
    model(model.pairs(batch)).total().mean().backward()
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    norm = torch.stack([grad.norm() for grad in grads]).norm()
    assert norm > 0.5
    for grad in grads:
        grad *= 0.5 / norm
    optimizer.step()
    for name, value in runs.weights(tmp_path / "run").items():
        torch.testing.assert_close(value, model.state_dict()[name], rtol=0, atol=2e-5)


@pytest.mark.parametrize("equal_lengths", [True, False])
def test_the_same_run_twice_is_the_same(
    tmp_path: Path, tiny: TrainConfig, equal_lengths: bool, runs: Any
) -> None:
    config = changed(tiny, train={"equal_lengths": equal_lengths, "epochs": 1})
    for name in ("one", "two"):
        train(config, tmp_path / name)
    train(changed(config, train={"seed": 2}), tmp_path / "other")
    assert runs.same(runs.weights(tmp_path / "one"), runs.weights(tmp_path / "two"))
    assert not runs.same(runs.weights(tmp_path / "one"), runs.weights(tmp_path / "other"))


class TestResume:
    def test_stopped_and_resumed_is_as_one(
        self, tmp_path: Path, tiny: TrainConfig, runs: Any
    ) -> None:
        train(tiny, tmp_path / "whole")
        results = [train(tiny, tmp_path / "parts", max_minutes=0)]
        while results[-1].stopped:
            results.append(train(tiny, tmp_path / "parts", resume=True, max_minutes=0))
        assert results[0].stopped == "time limit of 0 minutes reached"
        assert len(results) > 10
        assert runs.same(runs.weights(tmp_path / "whole"), runs.weights(tmp_path / "parts"))
        assert (tmp_path / "whole/best").readlink() == (tmp_path / "parts/best").readlink()

    def test_a_finished_run_stays_finished(
        self, tmp_path: Path, tiny: TrainConfig, runs: Any
    ) -> None:
        first = train(tiny, tmp_path / "run")
        before = runs.weights(tmp_path / "run")
        again = train(tiny, tmp_path / "run", resume=True)
        assert again.train_state == first.train_state
        assert runs.same(runs.weights(tmp_path / "run"), before)

    def test_more_epochs_go_on_as_if_asked_for_at_first(
        self, tmp_path: Path, tiny: TrainConfig, runs: Any
    ) -> None:
        longer, callback = changed(tiny, train={"epochs": 3}), Memory()
        train(longer, tmp_path / "whole")
        train(tiny, tmp_path / "parts")
        train(longer, tmp_path / "parts", resume=True, callback=callback)
        assert "train.epochs was 2 and is 3 from here on" in callback.sentences
        assert runs.same(runs.weights(tmp_path / "whole"), runs.weights(tmp_path / "parts"))

    def test_nothing_to_resume_is_a_beginning(self, tmp_path: Path, tiny: TrainConfig) -> None:
        result = train(tiny, tmp_path / "run", resume=True)
        assert result.train_state.finished

    def test_a_run_folder_is_not_overwritten(self, tmp_path: Path, tiny: TrainConfig) -> None:
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "precious").write_text("x")
        with pytest.raises(TrainingError, match="already exists; use --resume"):
            train(tiny, tmp_path / "run")
        assert [path.name for path in (tmp_path / "run").iterdir()] == ["precious"]

    @pytest.mark.parametrize(
        ("key", "other"),
        [
            ("system.hidden_size", {"system": EncDecConfig(embedding_size=6, hidden_size=9)}),
            ("system.name", {"system": GruConfig(embedding_size=6, hidden_size=8)}),
            ("sgate.enabled", {"addons": addons(spm=True)}),
            ("spm.enabled", {"addons": addons(sgate=True)}),
            ("optimizer.name", {"optimizer": SgdConfig()}),
            ("train.batch_size", {"train": LoopConfig(batch_size=5, epochs=2)}),
            ("train.seed", {"train": LoopConfig(batch_size=4, epochs=2, seed=9)}),
        ],
    )
    def test_another_model_cannot_go_on(
        self, tmp_path: Path, tiny: TrainConfig, key: str, other: dict[str, Any]
    ) -> None:
        train(tiny, tmp_path / "run", max_minutes=0)
        with pytest.raises(TrainingError, match=rf"was started with {re.escape(key)} = "):
            train(replace(tiny, **other), tmp_path / "run", resume=True)
        assert load_train_config(tmp_path / "run" / "config.toml") == tiny

    def test_what_may_change_is_said(self, tmp_path: Path, tiny: TrainConfig) -> None:
        train(tiny, tmp_path / "run", max_minutes=0)
        other = changed(tiny, system={"dropout": 0.1}, optimizer={"learning_rate": 0.01})
        other = replace(
            other, schedule=ConstantSchedule(), addons=addons(sgate=True, spm=True, c=5.0)
        )
        callback = Memory()
        train(other, tmp_path / "run", resume=True, max_minutes=0, callback=callback)
        assert callback.sentences == [
            "system.dropout was 0.3 and is 0.1 from here on",
            "spm.c was 10.0 and is 5.0 from here on",
            "optimizer.learning_rate was 0.001 and is 0.01 from here on",
            "schedule.name was halving and is constant from here on",
            "schedule.halve_from was 10 and is None from here on",
        ]

    def test_a_damaged_checkpoint_is_named_and_the_one_before_used(
        self, tmp_path: Path, tiny: TrainConfig, runs: Any
    ) -> None:
        train(tiny, tmp_path / "run")
        whole = runs.weights(tmp_path / "run")
        newest = sorted((tmp_path / "run" / "checkpoints").iterdir())[-1]
        with (newest / "model.safetensors").open("r+b") as file:
            file.truncate(100)
        callback = Memory()
        train(tiny, tmp_path / "run", resume=True, callback=callback)
        assert any(
            str(newest) in sentence and "not used" in sentence for sentence in callback.sentences
        )
        assert callback.starts[0].step > 0
        assert runs.same(runs.weights(tmp_path / "run"), whole)

    def test_a_foreign_checkpoint_is_named_and_the_one_before_used(
        self, tmp_path: Path, tiny: TrainConfig, runs: Any
    ) -> None:
        train(tiny, tmp_path / "run")
        train(changed(tiny, system={"hidden_size": 9}), tmp_path / "other")
        whole = runs.weights(tmp_path / "run")
        newest = sorted((tmp_path / "run" / "checkpoints").iterdir())[-1]
        (tmp_path / "other" / "checkpoints" / newest.name).rename(tmp_path / "foreign")
        newest.rename(tmp_path / "taken")
        (tmp_path / "foreign").rename(newest)
        callback = Memory()
        train(tiny, tmp_path / "run", resume=True, callback=callback)
        assert any(
            "a run with system.hidden_size = 9" in sentence for sentence in callback.sentences
        )
        assert runs.same(runs.weights(tmp_path / "run"), whole)

    def test_no_sound_checkpoint_is_an_error(self, tmp_path: Path, tiny: TrainConfig) -> None:
        train(tiny, tmp_path / "run")
        for folder in (tmp_path / "run" / "checkpoints").iterdir():
            (folder / "optimizer.safetensors").unlink()
        with pytest.raises(CheckpointError, match="checkpoints"):
            train(tiny, tmp_path / "run", resume=True)

    def test_another_dataset_cannot_go_on(
        self, tmp_path: Path, tiny: TrainConfig, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        import shutil

        train(tiny, tmp_path / "run", max_minutes=0)
        moved = tmp_path / "moved"
        shutil.copytree(tiny.data.dataset, moved)
        train(changed(tiny, data={"dataset": moved}), tmp_path / "run", resume=True, max_minutes=0)
        checkpoint = sorted((tmp_path / "run" / "checkpoints").iterdir())[-1]
        state = json.loads((checkpoint / "checkpoint.json").read_text())["state"]
        assert state["belongs_to"]["dataset"] == Dataset(moved).checksum

    def test_metrics_hold_each_step_once(
        self, tmp_path: Path, tiny: TrainConfig, runs: Any
    ) -> None:
        train(tiny, tmp_path / "run")
        before = [line["step"] for line in runs.lines(tmp_path / "run", "train")]
        newest = sorted((tmp_path / "run" / "checkpoints").iterdir())[-1]
        (newest / "checkpoint.json").unlink()
        with (tmp_path / "run" / "metrics.jsonl").open("a") as file:
            file.write('{"event": "train", "st')
        train(tiny, tmp_path / "run", resume=True)
        assert [line["step"] for line in runs.lines(tmp_path / "run", "train")] == before


class TestCheckpointsInTime:
    @pytest.mark.parametrize(("minutes", "each_step"), [(1e-9, True), (1000.0, False)])
    def test_they_come_by_the_clock_and_with_each_epoch(
        self,
        tmp_path: Path,
        tiny: TrainConfig,
        minutes: float,
        each_step: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        saved: list[int] = []
        save = Checkpoints.save

        def spy(self: Checkpoints, step: int, *rest: Any) -> Path:
            saved.append(step)
            return save(self, step, *rest)

        monkeypatch.setattr(Checkpoints, "save", spy)
        config = changed(tiny, run={"checkpoint_every": 0, "checkpoint_minutes": minutes})
        steps = train(config, tmp_path / "run").train_state.step
        assert saved == (list(range(1, steps + 1)) if each_step else [steps // 2, steps])

    def test_what_goes_wrong_in_the_background_ends_the_run(
        self, tmp_path: Path, tiny: TrainConfig, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also where it was the last checkpoint, behind which no other one comes."""

        def fails(*_: object) -> None:
            raise CheckpointError("no room")

        monkeypatch.setattr(Checkpoints, "save", fails)
        with pytest.raises(CheckpointError, match="no room"):
            train(tiny, tmp_path / "run", max_minutes=0)

    def test_it_holds_the_weights_of_its_step_while_the_next_ones_are_taken(
        self, tmp_path: Path, tiny: TrainConfig, monkeypatch: pytest.MonkeyPatch, runs: Any
    ) -> None:
        train(tiny, tmp_path / "at once")
        save = Checkpoints.save

        def slow(self: Checkpoints, *arguments: Any) -> Path:
            time.sleep(0.1)
            return save(self, *arguments)

        monkeypatch.setattr(Checkpoints, "save", slow)
        train(tiny, tmp_path / "slow")
        steps = Checkpoints(tmp_path / "slow" / "checkpoints").steps()
        assert len(steps) >= 2
        for step in steps:
            weights = [runs.weights(tmp_path / name, step) for name in ("slow", "at once")]
            assert runs.same(*weights)


@pytest.mark.parametrize(("seconds", "steps"), [(0.002, 125), (0.1, 2), (3.0, 1), (0.0, 250_000)])
def test_looks_are_as_far_apart_as_they_may_cost(seconds: float, steps: int) -> None:
    assert (
        _steps_between_reports(World(0, 1, torch.device("cuda")), Throughput(1.0, seconds)) == steps
    )
    assert _steps_between_reports(World(0, 1, torch.device("cpu")), Throughput(1.0, seconds)) == 1


class TestEndings:
    def test_early_stopping_keeps_the_best(self, tmp_path: Path, tiny: TrainConfig) -> None:
        config = changed(
            tiny, optimizer={"learning_rate": 0.1}, train={"epochs": 40, "patience": 2}
        )
        callback = Memory()
        result = train(config, tmp_path / "run", callback=callback)
        losses = [validation.losses.per_token for validation in callback.validations]
        assert result.train_state.finished == "validation has not improved for 2 epochs"
        assert min(losses) == result.train_state.best_loss
        assert losses.index(min(losses)) == len(losses) - 3
        assert [validation.best for validation in callback.validations][-3:] == [True, False, False]

    def test_a_loss_that_is_no_number_stops_the_run(
        self, tmp_path: Path, tiny: TrainConfig, runs: Any
    ) -> None:
        train(tiny, tmp_path / "run", max_minutes=0)
        good = runs.weights(tmp_path / "run")
        wild = changed(tiny, optimizer={"learning_rate": 1e37})
        with pytest.raises(TrainingError, match=r"diverged at step \d+: .*(nan|inf).*--resume"):
            train(wild, tmp_path / "run", resume=True)
        for value in runs.weights(tmp_path / "run").values():
            assert value.isfinite().all()
        assert runs.same(runs.weights(tmp_path / "run"), good)
        result = train(tiny, tmp_path / "run", resume=True)
        assert result.train_state.finished

    def test_the_disk_is_full(
        self, tmp_path: Path, tiny: TrainConfig, monkeypatch: pytest.MonkeyPatch, runs: Any
    ) -> None:
        import errno

        train(tiny, tmp_path / "run", max_minutes=0)
        good = runs.weights(tmp_path / "run")

        def full(*_: object, **__: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("ledeline.train.checkpoint.save_file", full)
        with pytest.raises(CheckpointError, match=r"disk is full.*--resume"):
            train(tiny, tmp_path / "run", resume=True)
        assert runs.same(runs.weights(tmp_path / "run"), good)
        monkeypatch.undo()
        assert train(tiny, tmp_path / "run", resume=True).train_state.finished

    def test_a_dataset_without_validation_pairs_is_refused(
        self, tmp_path: Path, tiny: TrainConfig
    ) -> None:
        with pytest.raises(DatasetError, match="is not a dataset"):
            train(changed(tiny, data={"dataset": tmp_path / "none"}), tmp_path / "run")
        assert not (tmp_path / "run").exists()

    def test_two_runs_in_one_folder_do_not_mix(self, tmp_path: Path, tiny: TrainConfig) -> None:
        from ledeline.core.atomic import exclusive_lock

        with (
            exclusive_lock(tmp_path / "run", TrainingError),
            pytest.raises(TrainingError, match="another run is writing"),
        ):
            train(tiny, tmp_path / "run")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_with_a_checkpoint(
    tmp_path: Path, tiny: TrainConfig, number: signal.Signals
) -> None:
    config = tmp_path / "c.toml"
    config.write_text(to_toml(changed(tiny, train={"epochs": 50, "patience": 50})))
    command = [sys.executable, "-m", "ledeline", "train", "c.toml", "--run", "run"]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell may ignore it
    )
    deadline = time.monotonic() + 100
    while not list(tmp_path.glob("run/checkpoints/0*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    output, errors = process.communicate(timeout=100)
    assert process.returncode == 128 + number, errors
    assert "Traceback" not in errors
    step = re.search(r"stopped at step (\d+): (Ctrl-C|SIGTERM); resume with", output)
    assert step is not None
    assert "ledeline train run/config.toml --run run --resume" in output
    checkpoints = Checkpoints(tmp_path / "run" / "checkpoints")
    assert checkpoints.open(checkpoints.steps()[-1]).step == int(step[1])


def test_a_system_without_attention_trains(
    tmp_path: Path, tiny: TrainConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    traced = EncDec.trace

    def without(self: EncDec, pairs: Pairs) -> Trace:
        return traced(self, pairs)._replace(attention=None, source_predictions=None)

    monkeypatch.setattr(EncDec, "trace", without)
    callback = Memory()
    train(changed(tiny, train={"epochs": 1}), tmp_path / "run", callback=callback)
    (validation,) = callback.validations
    assert [sample.links for sample in validation.samples] == [frozenset()] * 2
    assert all(sample.headline for sample in validation.samples)


@pytest.mark.skipif(not has_bfloat16(), reason="needs a CPU with AVX-512")
def test_bfloat16_trains(tmp_path: Path, tiny: TrainConfig, runs: Any) -> None:
    config = changed(tiny, run={"precision": "bfloat16"}, train={"epochs": 1})
    callback, exact = Memory(), Memory()
    train(config, tmp_path / "bf16", callback=callback)
    train(changed(tiny, train={"epochs": 1}), tmp_path / "f32", callback=exact)
    ours, theirs = (w.validations[0].losses.named["target"] for w in (callback, exact))
    assert ours == pytest.approx(theirs, rel=0.02)
    assert ours != theirs
    assert all(value.dtype == torch.float32 for value in runs.weights(tmp_path / "bf16").values())


def test_what_a_kill_left_is_removed(tmp_path: Path, tiny: TrainConfig) -> None:
    run = tmp_path / "run"
    train(tiny, run, max_minutes=0)
    (run / ".part-123-config.toml").write_text("half")
    (run / ".best.new").symlink_to("nowhere")
    train(tiny, run, resume=True, max_minutes=0)
    assert not list(tmp_path.rglob(".*"))


def test_bfloat16_where_the_cpu_has_none_is_refused_before_anything_is_written(
    tmp_path: Path, tiny: TrainConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ledeline.train.precision.has_bfloat16", lambda: False)
    config = changed(tiny, run={"precision": "bfloat16"})
    with pytest.raises(TrainingError, match=r"bfloat16 needs .* use --run.precision=float32"):
        train(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_trains_and_its_checkpoint_goes_on_anywhere(
    tmp_path: Path, tiny: TrainConfig
) -> None:
    on = {device: replace(tiny, run=replace(tiny.run, device=device)) for device in ("cuda", "cpu")}
    train(on["cuda"], tmp_path / "run", max_minutes=0)
    result = train(on["cpu"], tmp_path / "run", resume=True)
    assert math.isfinite(result.train_state.best_loss)
    assert isinstance(on["cpu"].run, RunConfig)
