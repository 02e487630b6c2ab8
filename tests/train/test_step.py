"""A step: how its gradient is scaled and clipped, and what happens before an epoch."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ledeline.core.errors import ConfigError
from ledeline.data.batches import Batches
from ledeline.data.dataset import Dataset
from ledeline.model.build import build
from ledeline.model.initialization import UniformInit
from ledeline.model.system import System
from ledeline.model.systems.encdec import EncDec
from ledeline.train.callbacks import NullCallback, StepReport
from ledeline.train.loop import train
from ledeline.train.optimizers import SgdConfig, build_optimizer, set_rate
from ledeline.train.processes import World
from ledeline.train.step import EagerSteps, TrainStep
from ledeline.train.train_config import TrainConfig
from ledeline.train.validation import Validation


@pytest.fixture
def gradients(
    tiny: TrainConfig,
) -> Callable[..., tuple[dict[str, torch.Tensor], float]]:
    """The gradient that one step of plain SGD subtracts, and the norm it reports."""

    def taken(**keys: float | None) -> tuple[dict[str, torch.Tensor], float]:
        config = replace(tiny, train=replace(tiny.train, **keys), optimizer=SgdConfig())
        dataset = Dataset(config.data.dataset)
        model: System = build(config.model, dataset.tokenizer.vocabulary_size, 1).double()
        before = {name: one.detach().clone() for name, one in model.named_parameters()}
        optimizer = build_optimizer(config.optimizer, model.parameters(), model.device)
        set_rate(optimizer, 1.0)
        step = TrainStep(model.eval(), model, optimizer, config)
        batch = next(Batches(dataset["train"], size=4, seed=1).epoch(0))
        step(model.pairs(batch), 1 / batch.num_pairs)
        after = {name: one.detach() for name, one in model.named_parameters()}
        return {name: before[name] - after[name] for name in before}, float(step.norm)

    return taken


ALONE = World(0, 1, torch.device("cpu"))


def norm_of(gradient: dict[str, torch.Tensor]) -> float:
    return math.sqrt(sum(float(one.square().sum()) for one in gradient.values()))


class TestClipping:
    @pytest.mark.parametrize("off", [0.0, None])
    def test_none(self, gradients: Any, off: float | None) -> None:
        gradient, norm = gradients(clip_norm=off, clip_value=off)
        assert norm_of(gradient) == pytest.approx(norm)
        assert norm > 1

    def test_by_norm(self, gradients: Any) -> None:
        whole, norm = gradients(clip_norm=None)
        gradient, reported = gradients(clip_norm=0.5)
        assert reported == pytest.approx(norm)  # that of before
        assert norm_of(gradient) == pytest.approx(0.5, rel=1e-5)
        for name, one in gradient.items():
            torch.testing.assert_close(one, whole[name] * 0.5 / norm, rtol=1e-5, atol=1e-9)

    def test_a_small_gradient_stays(self, gradients: Any) -> None:
        whole, _ = gradients(clip_norm=None)
        gradient, _ = gradients(clip_norm=1e6)
        assert all(torch.equal(one, whole[name]) for name, one in gradient.items())

    def test_by_value(self, gradients: Any) -> None:
        whole, _ = gradients(clip_norm=None)
        gradient, _ = gradients(clip_norm=None, clip_value=0.01)
        assert any(bool((one.abs() > 0.01).any()) for one in whole.values())
        for name, one in gradient.items():
            torch.testing.assert_close(one, whole[name].clamp(-0.01, 0.01), rtol=0, atol=1e-12)

    def test_by_norm_and_then_by_value(self, gradients: Any) -> None:
        whole, norm = gradients(clip_norm=None)
        gradient, _ = gradients(clip_norm=0.5, clip_value=0.01)
        for name, one in gradient.items():
            expected = (whole[name] * 0.5 / norm).clamp(-0.01, 0.01)
            torch.testing.assert_close(one, expected, rtol=0, atol=1e-8)


class Losses(NullCallback):
    """A callback that keeps the losses."""

    def __init__(self) -> None:
        self.steps: list[StepReport] = []
        self.validations: list[Validation] = []

    def on_step(self, report: StepReport) -> None:
        self.steps.append(report)

    def on_validation(self, validation: Validation) -> None:
        self.validations.append(validation)


class TestLabelSmoothing:
    def test_runs_compare_by_the_loss_per_token(self, tmp_path: Path, tiny: TrainConfig) -> None:
        """The first step starts from the same weights: only what it minimises differs."""
        seen = []
        for smoothing in (0.0, 0.2):
            loop = replace(tiny.train, label_smoothing=smoothing, epochs=1)
            callback = Losses()
            each = replace(tiny.run, report_every=1)
            config = replace(tiny, train=loop, run=each, init=UniformInit(bound=2.0))
            train(config, tmp_path / str(smoothing), callback=callback)
            seen.append(callback)
        (plain, *later), (smooth, *others) = (one.steps for one in seen)
        assert smooth.losses.per_token == pytest.approx(plain.losses.per_token, rel=1e-6)
        assert smooth.losses.named["target"] != pytest.approx(plain.losses.named["target"])
        assert smooth.losses.named["source"] == pytest.approx(plain.losses.named["source"])
        assert later[-1].losses.per_token != others[-1].losses.per_token  # it learns otherwise
        valid = seen[1].validations[0].losses
        tokens = Dataset(tiny.data.dataset)["valid"].headlines.lengths() + 1
        assert valid.named["target"] > valid.per_token * float(tokens.mean())  # <pad> counts, too

    def test_a_system_that_has_none_refuses_it(
        self, tmp_path: Path, tiny: TrainConfig, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(EncDec, "label_smoothing", None)
        config = replace(tiny, train=replace(tiny.train, label_smoothing=0.1))
        sentence = r"train\.label_smoothing = 0\.1: the system encdec has no label smoothing"
        with pytest.raises(ConfigError, match=sentence):
            train(config, tmp_path / "run")
        assert not (tmp_path / "run").exists()


class TestDivisor:
    """What the summed loss is divided by."""

    @pytest.mark.parametrize("unit", ["pairs", "tokens", "nothing"])
    def test_the_gradient_is_that_of_the_sum_divided(self, tiny: TrainConfig, unit: Any) -> None:
        loop = replace(tiny.train, divide_loss_by=unit, clip_norm=None)
        config = replace(tiny, train=loop, optimizer=SgdConfig())
        dataset = Dataset(config.data.dataset)
        model: System = build(config.model, dataset.tokenizer.vocabulary_size, 1).double()
        before = {name: one.detach().clone() for name, one in model.named_parameters()}
        optimizer = build_optimizer(config.optimizer, model.parameters(), model.device)
        set_rate(optimizer, 1.0)
        batches = Batches(dataset["train"], size=4, seed=1)
        draw, _ = next(batches.planned_from())
        batch = batches.read(draw)
        total = model.eval()(model.pairs(batch)).total().sum()
        expected = torch.autograd.grad(total, list(model.parameters()))
        step = TrainStep(model, model, optimizer, config)
        EagerSteps(step, batches, ALONE).run(draw)
        tokens = int((batch.headline_lengths + 1).sum())
        divisor = {"pairs": len(batch.sources), "tokens": tokens, "nothing": 1}[unit]
        for (name, after), gradient in zip(model.named_parameters(), expected, strict=True):
            torch.testing.assert_close(before[name] - after, gradient / divisor)


def test_an_epoch_is_started_once_also_where_it_is_resumed(
    tiny: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in the middle of an epoch, and before its first step."""
    steps: list[int] = []
    taken: list[int] = []
    monkeypatch.setattr(EncDec, "start_epoch", lambda _: steps.append(len(taken)))
    run = EagerSteps.run
    monkeypatch.setattr(
        EagerSteps, "run", lambda self, draw: (taken.append(draw.number), run(self, draw))[1]
    )
    config = replace(tiny, train=replace(tiny.train, epochs=2, patience=9))
    train(config, tmp_path / "run")
    per_epoch = len(taken) // 2
    assert steps == [0, per_epoch]
    steps.clear()
    longer = replace(config, train=replace(config.train, epochs=3))
    train(longer, tmp_path / "run", resume=True)
    assert steps == [2 * per_epoch]
