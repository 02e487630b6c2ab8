"""Training and validation multiply in one precision, that of the run."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ledeline.config import RunConfig
from ledeline.data.dataset import Batch, Dataset
from ledeline.model.build import build
from ledeline.model.systems.encdec import EncDec
from ledeline.runtime.cpu import has_bfloat16
from ledeline.train import validation
from ledeline.train.loop import train
from ledeline.train.loss_accumulator import MeanLosses
from ledeline.train.precision import precision, refuse_unsupported
from ledeline.train.processes import World
from ledeline.train.train_config import TrainConfig
from ledeline.train.validation import validation_loss

CPU = World(0, 1, torch.device("cpu"))
needs_bfloat16 = pytest.mark.skipif(not has_bfloat16(), reason="needs a CPU with AVX-512")


def of(config: TrainConfig, wanted: str) -> TrainConfig:
    return replace(config, run=replace(config.run, precision=wanted))


@pytest.fixture
def model(tiny: TrainConfig) -> EncDec:
    """One with large weights, so that rounding is seen."""
    model = build(tiny.model, Dataset(tiny.data.dataset).tokenizer.vocabulary_size, seed=1)
    for parameter in model.parameters():
        parameter.data.mul_(10)
    return model


def validated(config: TrainConfig, model: EncDec, size: int = 4) -> MeanLosses:
    config = replace(config, train=replace(config.train, batch_size=size))
    return validation_loss(model, Dataset(config.data.dataset), config, CPU)


@torch.no_grad()
def by_hand(config: TrainConfig, model: EncDec, bfloat16: bool) -> dict[str, float]:
    """The metrics of validation, pair by pair."""
    pairs = [*map(Dataset(config.data.dataset)["valid"].__getitem__, range(12))]
    model.eval()
    with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
        losses = [model(model.pairs(Batch.of([pair]))) for pair in pairs]
    num_tokens = sum(len(headline) + 1 for _, headline in pairs)
    return {
        "target": sum(float(one.named["target"]) for one in losses) / len(pairs),
        "source": sum(float(one.named["source"]) for one in losses) / len(pairs),
        "per_token": sum(float(one.headline) for one in losses) / num_tokens,
    }


@pytest.mark.parametrize(
    ("wanted", "device", "bfloat16"),
    [
        ("auto", "cpu", False),
        ("auto", "cuda", True),
        ("float32", "cpu", False),
        ("float32", "cuda", False),
        ("bfloat16", "cpu", True),
        ("bfloat16", "cuda", True),
    ],
)
def test_which_precision_a_run_has(
    wanted: Any, device: str, bfloat16: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[Any, ...]] = []
    monkeypatch.setattr(torch, "autocast", lambda *given, enabled: made.append((*given, enabled)))
    precision(RunConfig(precision=wanted), torch.device(device))
    assert made == [(device, torch.bfloat16, bfloat16)]


@pytest.mark.parametrize(
    ("wanted", "device"),
    [("auto", "cpu"), ("float32", "cpu"), ("auto", "cuda"), ("bfloat16", "cuda")],
)
def test_what_every_cpu_has_is_not_refused(
    wanted: Any, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ledeline.train.precision.has_bfloat16", lambda: False)
    refuse_unsupported(RunConfig(precision=wanted), torch.device(device))


@pytest.mark.parametrize("wanted", ["auto", "float32"])
def test_on_a_cpu_validation_is_exact(tiny: TrainConfig, model: EncDec, wanted: str) -> None:
    expected = by_hand(tiny, model, bfloat16=False)
    for size in (1, 4, 12):
        means = validated(of(tiny, wanted), model, size)
        assert means.num_pairs == 12
        assert means.metrics == pytest.approx(expected, rel=1e-6)


@needs_bfloat16
def test_validation_in_bfloat16(tiny: TrainConfig, model: EncDec) -> None:
    ours = validated(of(tiny, "bfloat16"), model, 1).metrics
    assert ours == pytest.approx(by_hand(tiny, model, bfloat16=True), rel=1e-6)
    exact = by_hand(tiny, model, bfloat16=False)
    assert ours == pytest.approx(exact, rel=0.02)
    assert ours != pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize(
    ("wanted", "bfloat16"),
    [("float32", False), pytest.param("bfloat16", True, marks=needs_bfloat16)],
)
def test_steps_losses_and_links_have_the_same_and_headlines_are_exact(
    tmp_path: Path,
    tiny: TrainConfig,
    wanted: str,
    bfloat16: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: dict[str, set[bool]] = {}

    def spy(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            seen.setdefault(name, set()).add(torch.is_autocast_enabled("cpu"))
            return real(*given, **named)

        return call

    for place, name in ((validation, "greedy"), (validation, "teacher_force"), (EncDec, "forward")):
        monkeypatch.setattr(place, name, spy(name, getattr(place, name)))
    config = of(tiny, wanted)
    train(replace(config, train=replace(config.train, epochs=1)), tmp_path / "run")
    assert seen == {"forward": {bfloat16}, "teacher_force": {bfloat16}, "greedy": {False}}
    assert not torch.is_autocast_enabled("cpu")
