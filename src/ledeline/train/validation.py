"""Validation after each epoch: the loss, and headlines with their scores and alignment."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from ledeline import rouge
from ledeline.core.errors import ModelError
from ledeline.core.progress import Progress, no_progress
from ledeline.data.batches import Batches
from ledeline.data.dataset import Dataset, Ids
from ledeline.evaluation.links import Links, attention_links, spm_links, to_words
from ledeline.inference.traces import teacher_force
from ledeline.model.system import System
from ledeline.search import greedy
from ledeline.train.device_data import DeviceSplit, shapes_of, size_of
from ledeline.train.loss_accumulator import LossAccumulator, MeanLosses
from ledeline.train.precision import precision
from ledeline.train.processes import World
from ledeline.train.train_config import TrainConfig

STAGE = "validate"
_QUICK = rouge.Settings(stem=False)  # stems need lists that not every machine has


@dataclass(frozen=True)
class Sample:
    """A headline that the model wrote, and the reference."""

    source: list[str]
    reference: list[str]
    headline: list[str]
    links: Links  # (source word, headline word), by the SPM, or by attention where there is none


@dataclass(frozen=True)
class Validation:
    """The results on the validation split."""

    step: int
    epoch: int
    losses: MeanLosses
    rouge: rouge.Rouge | None  # of the headlines written; None where none was asked for
    num_headlines: int
    samples: list[Sample]
    best: bool = False

    @property
    def metrics(self) -> dict[str, float]:
        """By name, as a line of metrics has it."""
        metrics = {"epoch": self.epoch, **self.losses.metrics}
        if self.rouge is not None:
            scores = self.rouge.rouge1.f1, self.rouge.rouge2.f1, self.rouge.rouge_l.f1
            metrics |= dict(zip(("rouge1", "rouge2", "rougeL"), scores, strict=True))
        return metrics


@torch.no_grad()
def validation_loss(
    model: System,
    dataset: Dataset,
    config: TrainConfig,
    world: World,
    progress: Progress = no_progress,
) -> MeanLosses:
    """The losses over the whole validation split, from batches put together on the device.

    The largest come first, and the precision is that of the steps.
    """
    split, accumulator = dataset["valid"], LossAccumulator.of(model)
    batches = Batches(split, size=config.train.batch_size, seed=0)
    plan, lengths = batches.plan(0), split.headlines.lengths()
    on_device = DeviceSplit(split, model.num_steps, model.device)
    order = torch.from_numpy(plan.order).to(model.device)
    mine = slice(world.rank, None, world.size)
    model.eval()
    batch_shapes = zip(shapes_of(plan, model.num_steps), plan.bounds.tolist(), strict=True)
    ordered = sorted(batch_shapes, key=lambda one: size_of(one[0]), reverse=True)
    for number, ((_, *sides), bounds) in enumerate(ordered, start=1):
        place = slice(*bounds)
        if num_pairs := len(own := plan.order[place][mine]):
            with precision(config.run, model.device):
                accumulator.add(model(on_device.pairs(order[place][mine], *sides)))
            accumulator.count(int((lengths[own] + 1).sum()), num_pairs)
        progress(STAGE, number, len(batches))
    return accumulator.means(world)


def write_headlines(
    model: System, dataset: Dataset, config: TrainConfig
) -> tuple[rouge.Rouge | None, int, list[Sample]]:
    """Write the first headlines of the validation split greedily, in float32, and score them."""
    model.eval()
    split = dataset["valid"]
    number = min(config.validation.headlines, len(split))
    scores, samples = [], []
    for rows in _chunks(number, config.train.batch_size):
        sources, lengths = split.sources.padded(rows)
        for row, ids in zip(rows.tolist(), greedy(model, sources, lengths), strict=True):
            with precision(config.run, model.device):
                sample = _sample(model, dataset, row, ids, row < config.validation.samples)
            words = sample.headline, sample.reference
            text, reference = map(dataset.tokenizer.join, words)
            scores.append(rouge.score(text, reference, _QUICK))
            samples += [sample] if row < config.validation.samples else []
    return (rouge.mean(scores) if scores else None), number, samples


def _sample(model: System, dataset: Dataset, row: int, ids: list[int], align: bool) -> Sample:
    source, reference = dataset["valid"][row]
    decode = dataset.tokenizer.decode_words
    links = _links(model, dataset, source, ids) if align else frozenset()
    return Sample(decode(source), decode(reference), decode(ids), links)


def _links(model: System, dataset: Dataset, source: list[int], headline: list[int]) -> Links:
    """Which source word each word of a headline came from; none for a system without attention."""
    try:
        (seen,) = teacher_force(model, [(source, headline)])
    except ModelError:
        return frozenset()
    if seen.q is None:
        links = attention_links(seen.attention, len(headline))
    else:
        q, attention = seen.q[:-1], seen.attention[:-1]  # without the step of <eos>
        links = spm_links(q, source, rule="sentence", attention=attention)
    word_ids = dataset.tokenizer.word_ids
    return to_words(links, word_ids(source), word_ids(headline))


def _chunks(number: int, size: int) -> Iterator[Ids]:
    rows: Ids = np.arange(number)
    for start in range(0, number, size):
        yield rows[start : start + size]
