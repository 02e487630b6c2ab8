"""A Transformer keeps the promises of training: same bits after a stop, any number of processes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ledeline.data.batches import Batches
from ledeline.data.dataset import Dataset
from ledeline.model.build import build
from ledeline.model.layers.dropout import Share, seed
from ledeline.model.systems.transformer import TransformerConfig
from ledeline.train.callbacks import NullCallback, StepReport
from ledeline.train.loop import train
from ledeline.train.train_config import TrainConfig
from systems import addons

NOISY = TransformerConfig(
    embedding_size=8,
    hidden_size=12,
    heads=2,
    encoder_layers=2,
    decoder_layers=1,
    dropout=0.2,
    attention_dropout=0.1,
    activation_dropout=0.1,
    word_dropout=0.1,
    word_replacement=0.1,
)


@pytest.fixture
def config(tiny: TrainConfig) -> TrainConfig:
    """All that is random, label smoothing, and batches of tokens."""
    loop = replace(
        tiny.train, batch_unit="source_tokens", batch_size=120, label_smoothing=0.1, epochs=2
    )
    return TrainConfig(
        data=tiny.data,
        system=NOISY,
        addons=addons(sgate=True, spm=True),
        train=replace(loop, divide_loss_by="tokens"),
        validation=tiny.validation,
        run=replace(tiny.run, checkpoint_every=4, report_every=1),
    )


class StopAfter(NullCallback):
    """A callback that raises after so many steps, as a killed process would."""

    def __init__(self, step: int) -> None:
        self._last = step

    def on_step(self, report: StepReport) -> None:
        if report.step == self._last:
            raise KeyboardInterrupt


def test_stopped_and_resumed_is_as_one(config: TrainConfig, tmp_path: Path, runs: Any) -> None:
    train(config, tmp_path / "whole")
    for number in (3, 6, 11):
        with pytest.raises(KeyboardInterrupt):
            train(config, tmp_path / "parts", resume=True, callback=StopAfter(number))
    train(config, tmp_path / "parts", resume=True)
    whole, parts = (runs.metrics(tmp_path / name) for name in ("whole", "parts"))
    assert whole == parts
    assert runs.same(runs.weights(tmp_path / "whole"), runs.weights(tmp_path / "parts"))


def test_two_processes_learn_as_one(config: TrainConfig) -> None:
    """Losses pair by pair, with everything random on; each process has every other pair."""
    dataset = Dataset(config.data.dataset)
    model: Any = build(config.model, dataset.tokenizer.vocabulary_size, 1).double().train()
    model.label_smoothing = 0.1
    options = {"size": 120, "seed": 1, "unit": "source_tokens"}
    draws = [Batches(dataset["train"], **options, rank=rank, world_size=2) for rank in (0, 1)]
    whole = list(Batches(dataset["train"], **options).epoch(0))
    shared = 0
    for number, both in enumerate(zip(*(one.epoch(0) for one in draws), strict=True)):
        model.share_batches(Share(0, 1, None))
        seed(1, number)
        expected = model(model.pairs(whole[number]))
        for rank, batch in enumerate(both):
            if not len(batch.sources):
                continue
            model.share_batches(Share(rank, 2, batch.num_pairs))
            seed(1, number)
            found = model(model.pairs(batch))
            for name in expected.named:
                torch.testing.assert_close(found.named[name], expected.named[name][rank::2])
            shared += rank
    assert shared > 2  # batches of which both had pairs
