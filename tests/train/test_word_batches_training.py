"""Training on batches of single words."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ledeline.config import LoopConfig
from ledeline.core.errors import ConfigError
from ledeline.data.batches import Batches, PlannedBatch
from ledeline.data.dataset import Dataset
from ledeline.model.build import build
from ledeline.model.system import System
from ledeline.model.systems.abs import AbsConfig
from ledeline.train.callbacks import NullCallback, StepReport
from ledeline.train.checkpoint import Checkpoints
from ledeline.train.cuda_graphs import wants_capture
from ledeline.train.loop import train
from ledeline.train.optimizers import SgdConfig, build_optimizer, set_rate
from ledeline.train.processes import World
from ledeline.train.schedules import ConstantSchedule
from ledeline.train.step import EagerSteps, TrainStep
from ledeline.train.train_config import TrainConfig


@pytest.fixture
def words(tiny: TrainConfig, one_thread: None) -> TrainConfig:
    """A small ABS, two epochs of some 40 steps."""
    return replace(
        tiny,
        system=AbsConfig(embedding_size=6, hidden_size=8, encoder_size=6, dropout=0.1),
        addons={},
        optimizer=SgdConfig(),
        schedule=ConstantSchedule(),
        train=replace(tiny.train, batch_size=8, batch_unit="words"),
        validation=replace(tiny.validation, headlines=0),
        run=replace(tiny.run, report_every=1, checkpoint_every=8),
    )


def model_of(config: TrainConfig, dataset: Dataset) -> System:
    return build(config.model, dataset.tokenizer.vocabulary_size, 1).double()


def epoch(config: TrainConfig, model: System, **keys: Any) -> tuple[float, int, int]:
    """The loss of an epoch over all words, how many of them, and how many batches."""
    dataset, loss, tokens = Dataset(config.data.dataset), 0.0, 0
    batches = Batches(dataset["train"], size=8, seed=1, **keys)
    with torch.no_grad():
        for batch in batches.epoch(0):
            loss += model.eval()(model.pairs(batch)).headline.sum().item()
            tokens += batch.num_tokens
    return loss, tokens, len(batches)


def test_the_loss_of_all_words_is_that_of_all_pairs(words: TrainConfig) -> None:
    dataset = Dataset(words.data.dataset)
    model, num_words = (
        model_of(words, dataset),
        int((dataset["train"].headlines.lengths() + 1).sum()),
    )
    loss, tokens, num_batches = epoch(words, model)
    assert tokens == num_words
    for keys in ({}, {"equal_lengths": False}):
        by_words = epoch(words, model, unit="words", **keys)
        assert by_words[0] == pytest.approx(loss, rel=1e-12)
        assert by_words[1] == num_words
        assert by_words[2] > num_batches


def test_any_system_could_learn_them_by_its_masks(tiny: TrainConfig) -> None:
    """It would only be slow: whole headlines are computed for a word of each."""
    config = replace(tiny, addons={})
    model = model_of(config, Dataset(config.data.dataset))
    loss, tokens, _ = epoch(config, model)
    by_words = epoch(config, model, unit="words")
    assert by_words[:2] == (pytest.approx(loss, rel=1e-12), tokens)


class Reports(NullCallback):
    def __init__(self) -> None:
        self.steps: list[StepReport] = []

    def on_step(self, report: StepReport) -> None:
        self.steps.append(report)


def test_it_learns_and_counts_one_token_a_word(words: TrainConfig, tmp_path: Path) -> None:
    reports, config = Reports(), replace(words, train=replace(words.train, epochs=4))
    result = train(config, tmp_path / "run", callback=reports)
    split = Dataset(config.data.dataset)["train"]
    batches = Batches(split, size=8, seed=config.train.seed, unit="words")
    assert result.train_state.step == 4 * len(batches)
    for report, planned in zip(reports.steps, batches.planned_from(), strict=False):
        assert report.num_batches == len(batches)
        assert report.losses.num_pairs == len(planned[0].rows)  # which are words
        assert report.losses.per_token == pytest.approx(report.losses.named["target"])
    first, last = (
        sum(one.losses.per_token for one in part) / len(part)
        for part in (reports.steps[: len(batches)], reports.steps[-len(batches) :])
    )
    vocabulary = Dataset(config.data.dataset).tokenizer.vocabulary_size
    assert last < first < math.log(vocabulary) + 0.5
    assert last < 0.95 * first


def test_stopped_and_resumed_is_as_one(words: TrainConfig, tmp_path: Path, runs: Any) -> None:
    class Killed(BaseException):
        pass

    class Killer(NullCallback):
        def __init__(self, step: int) -> None:
            self.step = step

        def on_step(self, report: Any) -> None:
            if report.step == self.step:
                raise Killed

    train(words, tmp_path / "whole")
    last = Checkpoints(tmp_path / "whole" / "checkpoints").steps()[-1]
    assert last > 48
    for step in (10, 42):  # behind the checkpoints of 8 and 40
        with pytest.raises(Killed):
            train(words, tmp_path / "parts", resume=step > 10, callback=Killer(step))
        assert Checkpoints(tmp_path / "parts" / "checkpoints").steps()[-1] == step - 2
    train(words, tmp_path / "parts", resume=True)
    assert runs.metrics(tmp_path / "whole") == runs.metrics(tmp_path / "parts")
    assert runs.same(runs.weights(tmp_path / "whole"), runs.weights(tmp_path / "parts"))


@pytest.mark.parametrize("world_size", [2, 3])
def test_ranks_together_learn_as_one(
    words: TrainConfig, world_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gradients of all ranks of a step, averaged, are the gradient of one; dropout included.

    Of an odd batch one rank has a word more, and of a small one it has none.
    """
    dataset = Dataset(words.data.dataset)
    model = model_of(words, dataset).train()
    optimizer = build_optimizer(SgdConfig(), model.parameters(), model.device)
    set_rate(optimizer, 0.0)
    step = TrainStep(
        model, model, optimizer, replace(words, train=replace(words.train, clip_norm=None))
    )
    gradients: list[Any] = []
    monkeypatch.setattr(
        optimizer,
        "zero_grad",
        lambda: (
            gradients.append([one.grad for one in model.parameters()])
            or [setattr(one, "grad", None) for one in model.parameters()]
        ),
    )

    def taken(rank: int, size: int, number: int) -> Any:
        batches = Batches(
            dataset["train"], size=7, seed=1, unit="words", rank=rank, world_size=size
        )
        torch.manual_seed(number)
        world = World(rank, size, torch.device("cpu"))
        EagerSteps(step, batches, world).run(planned(batches, number))
        return gradients.pop()

    alone_batches = Batches(dataset["train"], size=7, seed=1, unit="words")
    sizes = [len(planned(alone_batches, number).rows) for number in range(len(alone_batches))]
    by_size = sorted(range(len(sizes)), key=lambda number: sizes[number])
    assert sizes[by_size[0]] < world_size
    assert sizes[by_size[-1]] == 7
    for number in (*by_size[:6], *by_size[-3:]):
        alone = taken(0, 1, number)
        ranks = [taken(rank, world_size, number) for rank in range(world_size)]
        for one, *others in zip(alone, *ranks, strict=True):
            torch.testing.assert_close(sum(others) / world_size, one, rtol=1e-9, atol=1e-12)


def planned(batches: Batches, number: int) -> PlannedBatch:
    return PlannedBatch(batches.plan(0), number)


class TestRefusal:
    def test_other_systems_learn_whole_headlines(self, tiny: TrainConfig, tmp_path: Path) -> None:
        config = replace(tiny, train=replace(tiny.train, batch_unit="words"))
        with pytest.raises(ConfigError) as caught:
            train(config, tmp_path / "run")
        assert str(caught.value) == (
            'train.batch_unit = "words": the system encdec learns whole headlines only; leave it '
            'out, or set it to "pairs"'
        )
        assert not (tmp_path / "run").exists()

    def test_another_unit(self) -> None:
        with pytest.raises(ConfigError, match="batch_unit"):
            LoopConfig(batch_unit="letters")  # type: ignore[arg-type]


def test_words_are_not_captured(words: TrainConfig) -> None:
    world = World(0, 1, torch.device("cuda"))
    pairs = replace(words, train=replace(words.train, batch_unit="pairs"))
    assert wants_capture(pairs, world)
    assert not wants_capture(words, world)
