"""A tiny dataset of the newsroom, and a configuration to train on it in a second or two."""

from pathlib import Path
from typing import Any

import pytest

from ledeline.config import (
    DataConfig,
    GateConfig,
    ModelConfig,
    OptimizerConfig,
    RunConfig,
    SpmConfig,
    TrainConfig,
    ValidationConfig,
)


@pytest.fixture(scope="session")
def newsroom(tmp_path_factory: pytest.TempPathFactory, prepare_newsroom: Any) -> Path:
    """24 training and 12 validation pairs, of some 35 sub-words each."""
    folder = tmp_path_factory.mktemp("newsroom")
    return prepare_newsroom(folder, 36, seed=5, merges=2000, num_valid=12)


@pytest.fixture
def tiny(newsroom: Path) -> TrainConfig:
    """EncDec+sGate+SPM, a few units wide, two epochs of some 20 steps."""
    return TrainConfig(
        data=DataConfig(dataset=newsroom),
        model=ModelConfig(embedding_size=6, hidden_size=8),
        gate=GateConfig(enabled=True),
        spm=SpmConfig(enabled=True),
        train=OptimizerConfig(batch_size=4, epochs=2),
        validation=ValidationConfig(headlines=6, samples=2),
        run=RunConfig(device="cpu", checkpoint_every=7, report_every=3),
    )
