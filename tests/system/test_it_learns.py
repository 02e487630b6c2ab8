"""A small system learns the newsroom: what it reaches, a broken one cannot.

Two trainings of half a minute each: EncDec+sGate+SPM, and, for fewer epochs, the same with its
add-ons taken away (no gate, and a source loss that weighs nothing). Each assertion is then tried on
both: the first must hold it, the second must break those of what it lost, and keep the others. A
Transformer+sGate+SPM must hold all of them too, after a third training.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from ledeline import rouge
from ledeline.config import (
    DataConfig,
    LoopConfig,
    RunConfig,
    ValidationConfig,
)
from ledeline.data.dataset import Batch
from ledeline.evaluation.alignment_methods import align
from ledeline.evaluation.links import alignment_score, parse_pharaoh
from ledeline.model.addons.sgate import SelectiveGateConfig
from ledeline.model.addons.spm import SourcePredictionConfig
from ledeline.model.build import build
from ledeline.model.format.model_folder import ModelBundle, load_model
from ledeline.model.initialization import UniformInit
from ledeline.model.pairs import Sources
from ledeline.model.systems.encdec import EncDecConfig
from ledeline.model.systems.transformer import TransformerConfig
from ledeline.search import greedy
from ledeline.synth.newsroom import generate
from ledeline.train.loop import train
from ledeline.train.optimizers import AdamConfig
from ledeline.train.schedules import WarmupCosineSchedule
from ledeline.train.train_config import TrainConfig
from systems import addons

pytestmark = pytest.mark.slow

# Of a seed that training has not, and short, like the ledes it is trained on.
STORIES = [story for story in generate(2000, 99) if len(story.lede.split()) <= 20][:200]


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """So small a model gains little from a second one, and the result depends on none."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory, prepare_newsroom: Any) -> Path:
    """Some 3,000 pairs with short ledes, so that a minute is enough."""
    folder = tmp_path_factory.mktemp("newsroom")
    return prepare_newsroom(folder, 20_000, seed=1, merges=1500, num_valid=200, longest=32)


def learned(dataset: Path, run: Path, addons: dict[str, Any], epochs: int) -> ModelBundle:
    config = TrainConfig(
        data=DataConfig(dataset=dataset),
        system=EncDecConfig(embedding_size=128, hidden_size=128, layers=1, dropout=0.1),
        addons=addons,
        init=UniformInit(bound=0.2),
        optimizer=AdamConfig(learning_rate=0.005),
        train=LoopConfig(batch_size=16, epochs=epochs),
        validation=ValidationConfig(headlines=0),
        run=RunConfig(device="cpu"),
    )
    train(config, run)
    return load_model(run / "best")


@pytest.fixture(scope="module")
def whole(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> ModelBundle:
    """EncDec+sGate+SPM."""
    run = tmp_path_factory.mktemp("runs") / "whole"
    return learned(dataset, run, addons(sgate=True, spm=True), epochs=3)


@pytest.fixture(scope="module")
def bare(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> ModelBundle:
    """The same with no gate, and with an SPM whose loss weighs nothing."""
    run = tmp_path_factory.mktemp("runs") / "bare"
    return learned(dataset, run, addons(spm=True, c=1e12), epochs=2)


@pytest.fixture(scope="module")
def transformer(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> ModelBundle:
    """Transformer+sGate+SPM."""
    sections = {"sgate": SelectiveGateConfig(initial_bias=2.0), "spm": SourcePredictionConfig()}
    config = TrainConfig(
        data=DataConfig(dataset=dataset),
        system=TransformerConfig(
            embedding_size=64,
            hidden_size=192,
            encoder_layers=2,
            decoder_layers=1,
            heads=4,
            dropout=0.05,
        ),
        addons=sections,
        optimizer=AdamConfig(learning_rate=0.004, beta2=0.98),
        schedule=WarmupCosineSchedule(warmup_steps=100),
        train=LoopConfig(
            batch_unit="source_tokens",
            batch_size=400,
            divide_loss_by="tokens",
            clip_norm=1.0,
            epochs=4,
        ),
        validation=ValidationConfig(headlines=0),
        run=RunConfig(device="cpu"),
    )
    run = tmp_path_factory.mktemp("runs") / "transformer"
    train(config, run)
    return load_model(run / "best")


def headlines(loaded: ModelBundle, ledes: list[str]) -> Iterator[str]:
    model, tokenizer = loaded.model, loaded.tokenizer
    batch = Batch.of([(tokenizer.encode(tokenizer.words(lede)), []) for lede in ledes])
    for ids in greedy(model, batch.sources, batch.source_lengths):
        yield tokenizer.decode(ids)


def rouge_1(loaded: ModelBundle, ledes: list[str]) -> float:
    references = [story.headline for story in STORIES]
    written = list(headlines(loaded, ledes))
    return rouge.mean(rouge.score_all(written, references)).rouge1.f1


def alignment_errors(loaded: ModelBundle) -> dict[str, float]:
    found = align(loaded, [(story.lede, story.headline) for story in STORIES]).links
    gold = [parse_pharaoh(story.alignment) for story in STORIES]
    return {method: alignment_score(links, gold).error_rate for method, links in found.items()}


def gate_spread(loaded: ModelBundle) -> float:
    """How far the gates of the stories' sub-words are from being all alike; 0 without a gate."""
    model, tokenizer = loaded.model, loaded.tokenizer
    if "sgate" not in model.addons:
        return 0.0
    batch = Batch.of([(tokenizer.encode(tokenizer.words(story.lede)), []) for story in STORIES])
    sources = Sources.of(batch.sources, batch.source_lengths)
    with torch.no_grad():
        encoded = model.encoder(sources.ids, sources.lengths)
        return model.gate.gate_values(encoded)[sources.mask].std().item()


def untrained(loaded: ModelBundle) -> ModelBundle:
    """The same system as it was before its first step."""
    return loaded._replace(model=build(loaded.model.config, loaded.model.vocabulary, 1).eval())


# --- what is asserted -----------------------------------------------------------------------------


def assert_headlines_are_written(loaded: ModelBundle, least: float = 0.45) -> None:
    """Headlines follow from their ledes: with the ledes of other stories they are far worse."""
    ledes = [story.lede for story in STORIES]
    assert rouge_1(loaded, ledes) >= least
    assert rouge_1(loaded, ledes[1:] + ledes[:1]) <= least / 3


def assert_spm_aligns(loaded: ModelBundle) -> None:
    """By both rules the SPM finds far more of the gold alignment than one who knows nothing."""
    errors = alignment_errors(loaded)
    assert min(errors["identity"], errors["diagonal"]) >= 0.88
    assert errors["spm-vocabulary"] <= 0.82
    assert errors["spm-sentence"] <= 0.82


def assert_gate_has_learned(loaded: ModelBundle) -> None:
    """Gates open and close, where at first all were about half open."""
    assert gate_spread(loaded) >= 0.2
    assert gate_spread(loaded) >= 1.5 * gate_spread(untrained(loaded))


def assert_words_are_predicted_where_they_belong(loaded: ModelBundle) -> None:
    """SPM: headline steps predict the lede's types, <pad> steps those that the headline lacks.

    Of about 1,600 types a lede has some 25.
    """
    model, tokenizer, masses = loaded.model, loaded.tokenizer, []
    for story in STORIES[:100]:
        lede = tokenizer.encode(tokenizer.words(story.lede))
        headline = tokenizer.encode(tokenizer.headline_words(story.headline))
        with torch.no_grad():
            (q,) = model.trace(model.pairs(Batch.of([(lede, headline)]))).source_predictions
        steps, pads = q[: len(headline)], q[len(headline) + 1 :]
        left = sorted({*lede} - {*headline})
        masses.append((steps[:, [*{*lede}]].sum(1).mean(), pads[:, left].sum(1).mean()))
    written, left_over = torch.tensor(masses).mean(0).tolist()
    assert written >= 0.4
    assert left_over >= 0.25


def test_the_whole_system_learns(whole: ModelBundle) -> None:
    assert_headlines_are_written(whole)
    assert_spm_aligns(whole)
    assert_gate_has_learned(whole)


def test_a_transformer_learns(transformer: ModelBundle) -> None:
    assert_headlines_are_written(transformer)
    assert_spm_aligns(transformer)
    assert_gate_has_learned(transformer)
    assert_words_are_predicted_where_they_belong(transformer)


def test_what_is_taken_away_is_missed(bare: ModelBundle) -> None:
    assert_headlines_are_written(bare, 0.2)  # it still learns to write: nothing else is broken
    with pytest.raises(AssertionError):
        assert_spm_aligns(bare)
    with pytest.raises(AssertionError):
        assert_gate_has_learned(bare)


def test_before_training_nothing_holds(whole: ModelBundle, transformer: ModelBundle) -> None:
    all_of_it = (
        assert_headlines_are_written,
        assert_spm_aligns,
        assert_gate_has_learned,
        assert_words_are_predicted_where_they_belong,
    )
    for before in (untrained(whole), untrained(transformer)):
        for holds in all_of_it:
            with pytest.raises(AssertionError):
                holds(before)
