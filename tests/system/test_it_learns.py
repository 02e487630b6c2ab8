"""A small system learns the newsroom: what it reaches, a broken one cannot.

Two trainings of about a minute each: EncDec+sGate+SPM, and the same with its add-ons taken away
(no gate, and a source loss that weighs nothing). Each assertion is then tried on both: the first
must hold it, the second must break those of what it lost, and keep the others.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from ledeline import rouge
from ledeline.analysis.aligner import align
from ledeline.analysis.alignment import alignment_score, parse
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
from ledeline.dataset import Batch, Dataset
from ledeline.model.files import Loaded, load_model
from ledeline.prepare import prepare
from ledeline.search import greedy
from ledeline.train.loop import train
from ledeline.train.processes import World
from ledeline.train.validation import validation_loss

pytestmark = pytest.mark.slow

STORIES = list(generate(200, 99))  # of a seed that training has not


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("newsroom")
    table = folder / "pairs.jsonl"
    write_table(table, (story._asdict() for story in generate(4200, 1)), Story._fields)
    config = PrepareConfig(
        text=TextConfig(profile="natural"),
        corpus=CorpusConfig(train=(str(table),)),
        split=SplitConfig(by="random", num_valid=200),
        subword=SubwordConfig(merges=1500),
        dataset=DatasetConfig(output=folder / "dataset"),
    )
    return prepare(config).folder


def learned(dataset: Path, run: Path, gate: GateConfig, spm: SpmConfig) -> Loaded:
    config = TrainConfig(
        data=DataConfig(dataset=dataset),
        model=ModelConfig(embedding_size=128, hidden_size=128, layers=1, dropout=0.1, init=0.2),
        gate=gate,
        spm=spm,
        train=OptimizerConfig(batch_size=16, learning_rate=0.005, epochs=4),
        validation=ValidationConfig(headlines=0),
        run=RunConfig(device="cpu"),
    )
    train(config, run)
    return load_model(run / "best")


@pytest.fixture(scope="module")
def whole(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """EncDec+sGate+SPM."""
    run = tmp_path_factory.mktemp("runs") / "whole"
    return learned(dataset, run, GateConfig(enabled=True), SpmConfig(enabled=True))


@pytest.fixture(scope="module")
def bare(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """The same with no gate, and with an SPM whose loss weighs nothing."""
    run = tmp_path_factory.mktemp("runs") / "bare"
    return learned(dataset, run, GateConfig(), SpmConfig(enabled=True, c=1e12))


def headlines(loaded: Loaded, ledes: list[str]) -> Iterator[str]:
    model, subwords, profile = loaded
    batch = Batch.of([(subwords.encode(profile.words(lede)), []) for lede in ledes])
    for ids in greedy(model, batch.sources, batch.source_lengths):
        yield profile.join(subwords.decode(ids))


def rouge_1(loaded: Loaded, ledes: list[str]) -> float:
    references = [story.headline for story in STORIES]
    scores = map(rouge.score, headlines(loaded, ledes), references)
    return rouge.mean(scores).rouge1.f1


def alignment_errors(loaded: Loaded) -> dict[str, float]:
    found = align(loaded, [(story.lede, story.headline) for story in STORIES])
    gold = [parse(story.alignment) for story in STORIES]
    return {method: alignment_score(links, gold).error_rate for method, links in found.items()}


def loss_without_gate(loaded: Loaded, dataset: Path) -> tuple[float, float]:
    """The validation loss per token, as it is and with the gate left out of the trained model."""
    world, data = World(0, 1, torch.device("cpu")), Dataset(dataset)
    as_it_is = validation_loss(loaded.model, data, 32, world).per_token
    gate, loaded.model.gate = loaded.model.gate, None
    try:
        return as_it_is, validation_loss(loaded.model, data, 32, world).per_token
    finally:
        loaded.model.gate = gate


# --- what is asserted -----------------------------------------------------------------------------


def assert_headlines_are_written(loaded: Loaded) -> None:
    """Headlines follow from their ledes: with the ledes of other stories they are far worse."""
    ledes = [story.lede for story in STORIES]
    assert rouge_1(loaded, ledes) >= 0.55
    assert rouge_1(loaded, ledes[1:] + ledes[:1]) <= 0.2


def assert_spm_aligns(loaded: Loaded) -> None:
    """By both rules the SPM finds far more of the gold alignment than one who knows nothing."""
    errors = alignment_errors(loaded)
    assert errors["spm-vocabulary"] <= 0.82
    assert errors["spm-sentence"] <= 0.82
    assert min(errors["identity"], errors["diagonal"]) >= 0.92


def assert_gate_is_used(loaded: Loaded, dataset: Path) -> None:
    """Without its gate the trained model does worse."""
    as_it_is, without = loss_without_gate(loaded, dataset)
    assert without >= 1.03 * as_it_is


def test_the_whole_system_learns(whole: Loaded, dataset: Path) -> None:
    assert_headlines_are_written(whole)
    assert_spm_aligns(whole)
    assert_gate_is_used(whole, dataset)


def test_what_is_taken_away_is_missed(bare: Loaded, dataset: Path) -> None:
    assert_headlines_are_written(bare)  # it still writes: nothing else is broken
    with pytest.raises(AssertionError):
        assert_spm_aligns(bare)
    with pytest.raises(AssertionError):
        assert_gate_is_used(bare, dataset)


def test_a_model_that_has_learned_nothing_passes_nothing(whole: Loaded, dataset: Path) -> None:
    torch.manual_seed(1)
    model = type(whole.model)(whole.model.config, whole.model.vocabulary, seed=3).eval()
    with pytest.raises(AssertionError):
        assert_headlines_are_written(whole._replace(model=model))
    with pytest.raises(AssertionError):
        assert_spm_aligns(whole._replace(model=model))
