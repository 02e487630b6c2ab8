"""A tiny dataset of the newsroom, and configurations to train on it in a second or two."""

import os
from pathlib import Path

import pytest

from ledeline.config import (
    CorpusConfig,
    DataConfig,
    DatasetConfig,
    GateConfig,
    ModelConfig,
    OptimizerConfig,
    PrepareConfig,
    RunConfig,
    SplitConfig,
    SpmConfig,
    SubwordConfig,
    TextConfig,
    TrainConfig,
    ValidationConfig,
)
from ledeline.corpus.newsroom import Story, generate
from ledeline.corpus.tables import write_table
from ledeline.prepare import prepare

os.environ.setdefault("OMP_NUM_THREADS", "2")


@pytest.fixture(scope="session")
def newsroom(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 training, 12 validation and 12 test pairs, of some 35 sub-words each."""
    folder = tmp_path_factory.mktemp("newsroom")
    table = folder / "pairs.jsonl"
    write_table(table, (story._asdict() for story in generate(48, 5)), Story._fields)
    config = PrepareConfig(
        text=TextConfig(profile="natural"),
        corpus=CorpusConfig(train=(str(table),)),
        split=SplitConfig(by="random", num_valid=12, num_test=12),
        subword=SubwordConfig(merges=2000),
        dataset=DatasetConfig(output=folder / "dataset"),
    )
    return prepare(config).folder


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
