"""A tiny dataset of the newsroom, a configuration to train on it, and what a run leaves behind."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from ledeline.config import (
    DataConfig,
    LoopConfig,
    RunConfig,
    ValidationConfig,
)
from ledeline.model.systems.encdec import EncDecConfig
from ledeline.train.checkpoint import Checkpoints
from ledeline.train.train_config import TrainConfig
from systems import addons

LOSSES = 1e-5  # relative, and of norms; 1.5e-7 was the largest seen: the rounding of a float32


@pytest.fixture(scope="session")
def newsroom(tmp_path_factory: pytest.TempPathFactory, prepare_newsroom: Any) -> Path:
    """24 training and 12 validation pairs with ledes cut to 10 to 40 sub-words, of many lengths."""
    folder = tmp_path_factory.mktemp("newsroom")
    return prepare_newsroom(folder, 36, seed=5, merges=2000, num_valid=12, cut=True)


@pytest.fixture
def tiny(newsroom: Path) -> TrainConfig:
    """EncDec+sGate+SPM, a few units wide, two epochs of some 20 steps, in a second or two."""
    return TrainConfig(
        data=DataConfig(dataset=newsroom),
        system=EncDecConfig(embedding_size=6, hidden_size=8),
        addons=addons(sgate=True, spm=True),
        train=LoopConfig(batch_size=4, epochs=2),
        validation=ValidationConfig(headlines=6, samples=2),
        run=RunConfig(device="cpu", checkpoint_every=7, report_every=3),
    )


class Runs:
    """What runs left behind, and whether it is alike."""

    def lines(self, run: Path, *events: str) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl with these events."""
        everything = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
        return [line for line in everything if line["event"] in events]

    def metrics(self, run: Path) -> list[dict[str, Any]]:
        """What was reported of training and validation, but for the time it took."""
        passing = {"time", "pairs_per_second"}
        return [
            {name: value for name, value in line.items() if name not in passing}
            for line in self.lines(run, "train", "valid")
        ]

    def num_steps(self, run: Path) -> int:
        """Steps that were reported, if only half of a line is there yet."""
        path = run / "metrics.jsonl"
        return path.read_text().count('"event": "train"') if path.exists() else 0

    def weights(self, run: Path, step: int | None = None) -> dict[str, torch.Tensor]:
        """The weights of a step, or of the newest checkpoint, in memory of their own."""
        folder = run / "checkpoints"
        name = f"{step or Checkpoints(folder).steps()[-1]:08}"
        tensors = load_file(folder / name / "model.safetensors")
        return {name: tensor.clone() for name, tensor in tensors.items()}

    def same(self, one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
        """Whether weights are the same to the last bit."""
        return one.keys() == other.keys() and all(
            torch.equal(one[name], other[name]) for name in one
        )

    def assert_losses_alike(self, run: list[dict[str, Any]], other: list[dict[str, Any]]) -> None:
        """Metrics are the same up to rounding."""
        for line, expected in zip(run, other, strict=True):
            assert line.pop("event") == expected.pop("event")
            assert line == pytest.approx(expected, rel=LOSSES, abs=0)


@pytest.fixture(scope="session")
def runs() -> Runs:
    return Runs()
