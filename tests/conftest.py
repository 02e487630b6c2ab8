"""Settings for all tests, and the dataset that many of them train on."""

import os
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import settings

from ledeline.config import (
    CorpusConfig,
    DatasetConfig,
    FilterConfig,
    PrepareConfig,
    SplitConfig,
    SubwordConfig,
    TextConfig,
)
from ledeline.corpus.newsroom import Story, generate
from ledeline.corpus.tables import write_table
from ledeline.prepare import prepare

# No deadlines: speed is measured in bench/. On a shared runner every run tries the same examples.
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


class PrepareNewsroom(Protocol):
    """Makes a dataset of the newsroom's stories in a folder."""

    def __call__(
        self, folder: Path, pairs: int, *, seed: int, merges: int, num_valid: int, longest: int = 0
    ) -> Path: ...


@pytest.fixture(scope="session")
def prepare_newsroom() -> PrepareNewsroom:
    def made(
        folder: Path, pairs: int, *, seed: int, merges: int, num_valid: int, longest: int = 0
    ) -> Path:
        table = folder / "pairs.jsonl"
        write_table(table, (story._asdict() for story in generate(pairs, seed)), Story._fields)
        config = PrepareConfig(
            text=TextConfig(profile="natural"),
            corpus=CorpusConfig(train=(str(table),)),
            filter=FilterConfig(max_lede_subwords=longest),
            split=SplitConfig(by="random", num_valid=num_valid),
            subword=SubwordConfig(merges=merges),
            dataset=DatasetConfig(output=folder / "dataset"),
        )
        return prepare(config).folder

    return made
