"""The ways to take a step of training that bench/gpu.py compares, and whether they are the same."""

import argparse
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ledeline.config import (
    DataConfig,
    LoopConfig,
    RunConfig,
)
from ledeline.core.progress import no_progress
from ledeline.data.batches import Batches, PlannedBatch
from ledeline.data.dataset import Dataset, DatasetWriter, EncodedChunk, Split
from ledeline.model.addons.sgate import SelectiveGateConfig
from ledeline.model.addons.spm import SourcePredictionConfig
from ledeline.model.build import build
from ledeline.model.gpu.dispatch import kernel_mode
from ledeline.model.pairs import Pairs
from ledeline.model.system_config import SystemConfig
from ledeline.model.systems.encdec import EncDecConfig
from ledeline.text.profiles import PAPER
from ledeline.text.subwords import Subwords
from ledeline.text.tokenizer import Tokenizer
from ledeline.train.cuda_graphs import CapturedSteps, CudaGraphs, Work
from ledeline.train.device_data import DeviceSplit
from ledeline.train.optimizers import build_optimizer, set_rate
from ledeline.train.precision import precision
from ledeline.train.step import TrainStep
from ledeline.train.train_config import TrainConfig
from rows import Column, Rows, Table
from train import CUDA, DEVICE, Sizes, Textbook, loss, random_ids, training_step

CLOSE = 1e-4  # in float32
LEARNING_RATE = 1e-3
SYSTEMS = {
    SystemConfig.of(EncDecConfig(), *gate, *spm).name: (*gate, *spm)
    for spm in ((), (SourcePredictionConfig(),))
    for gate in ((), (SelectiveGateConfig(),))
}
MAIN_SYSTEMS = ("EncDec", "EncDec+sGate+SPM")


class Shape(NamedTuple):
    """Of a batch."""

    batch: int = 256
    source: int = 44  # I
    headline: int = 14  # with <eos>


def configured(
    name: str, sizes: EncDecConfig, dataset: Path, train: LoopConfig, **more: Any
) -> TrainConfig:
    """How a system is trained."""
    model, data = SystemConfig.of(sizes, *SYSTEMS[name]), DataConfig(dataset=dataset)
    return TrainConfig(data=data, system=sizes, addons=model.addons, train=train, **more)


# --- the ways to take a step ----------------------------------------------------------------------


def made_up(sizes: Sizes, shape: Shape) -> Split:
    """As many pairs as a batch has, all of one length."""
    sides = (random_ids(sizes, shape.batch, one) for one in (shape.source, shape.headline - 1))
    parts = [(ids.flatten().numpy(), np.full(len(ids), ids.shape[1])) for ids in sides]
    with TemporaryDirectory() as folder:
        writer = DatasetWriter(Path(folder), Tokenizer(PAPER, Subwords.learn({"word": 1}, 0)))
        writer.write_split("train", [EncodedChunk(*parts[0], *parts[1])])
        writer.finish()
        return Dataset(Path(folder))["train"]  # its files stay mapped


class Made:
    """A system at its beginning, and a batch to learn from."""

    def __init__(
        self, name: str, sizes: Sizes, shape: Shape, dropout: float = 0.3, precision: str = "auto"
    ) -> None:
        config = configured(
            name,
            replace(sizes.model, dropout=dropout),
            Path("made-up"),
            LoopConfig(batch_size=shape.batch),
            run=RunConfig(precision=precision),
        )
        self.split, self.shape, self.run = made_up(sizes, shape), shape, config.run
        self.model = build(config.model, sizes.vocabulary).to(DEVICE).train()
        optimizer = build_optimizer(config.optimizer, self.model.parameters(), self.model.device)
        self.step = TrainStep(self.model, self.model, optimizer, config)
        set_rate(self.step.optimizer, LEARNING_RATE)

    def pairs(self) -> Pairs:
        """The batch on the device."""
        model, (batch, source, headline) = self.model, self.shape
        width = int(model.num_steps(np.array([source]), np.array([headline - 1]))[0])
        on_device = DeviceSplit(self.split, model.num_steps, model.device)
        return on_device.pairs(torch.arange(batch, device=DEVICE), source, width)


class Calls:
    """Graphs where there is no GPU: they only call."""

    def warm_up(self, work: Work) -> None:
        """Do it."""
        work()

    def release_memory(self) -> None:
        """Nothing to hand back."""

    def capture(self, work: Work) -> Work:
        """As it is."""
        return work


class Moment:
    """An event where there is no GPU."""

    def record(self) -> None:
        """It is now."""
        self._time = time.perf_counter()

    def elapsed_time(self, other: "Moment") -> float:
        """Milliseconds from this one to another."""
        return 1000 * (other._time - self._time)


def eager(made: Made) -> Work:
    model = Textbook(made.model).to(DEVICE).train()
    return training_step(model, made.pairs(), lr=LEARNING_RATE, fused=True)


def plain(made: Made) -> Work:
    return inside("plain", partial(made.step, made.pairs(), 1 / made.shape.batch))


def plain_captured(made: Made) -> Work:
    with kernel_mode("plain"):
        return inside("plain", fast(made))


def fast(made: Made) -> Work:
    """As `ledeline train` does it; the shape is exactly the one asked for."""
    batches = Batches(made.split, size=made.shape.batch, seed=1)
    steps = CapturedSteps(made.step, batches, [0], CudaGraphs() if CUDA else Calls())
    steps.prepare(no_progress)
    return partial(steps.run, PlannedBatch(batches.plan(0), 0))


def inside(wanted: Any, work: Work) -> Work:
    def step() -> None:
        with kernel_mode(wanted):
            work()

    return step


WAYS = {"eager": eager, "plain": plain, "plain, captured": plain_captured, "fast": fast}


# --- whether they are the same --------------------------------------------------------------------

COLUMNS = [
    Column("system", "system"),
    Column("precision", ""),
    Column("way", ""),
    Column("loss", "loss", ".6f"),
    Column("off", "off plain", ".1e"),
    Column("off_float32", "off plain float32", ".1e"),
    Column("gradients_off", "gradients off plain", ".1e"),
    Column("later", "loss after 3 steps", ".6f"),
    Column("later_off", "off plain", ".1e"),
]


class Learned(NamedTuple):
    """What came of a few steps; the textbook's has no more than a loss."""

    loss: float
    gradients: Tensor | None = None
    later: float | None = None  # the loss after three steps


def agree(options: argparse.Namespace, rows: Rows) -> bool:
    """Print how far the ways are apart; False where it is too far in float32."""
    kinds = precisions()
    table, worst = Table(rows, "agree", *COLUMNS), 0.0
    for system in options.systems or SYSTEMS:
        exact = math.nan
        for kind in kinds:
            with no_tf32():
                make = partial(Made, system, options.sizes, options.shape, 0.0, kind)
                found = {
                    "plain": learned(make(), "plain"),
                    "eager": Learned(textbook_loss(make(), kind)),
                    "fast": learned(make(), "fused"),
                }
            exact = found["plain"].loss if kind == "float32" else exact
            for name, one in found.items():
                offs = apart(one, found["plain"])
                worst = max([worst, *offs.values()]) if kind == "float32" else worst
                figures = {"system": system, "precision": kind, "way": name, **offs}
                figures |= {"loss": one.loss, "later": one.later}
                table.add(**figures, off_float32=abs(one.loss / exact - 1))
    print(f"\nat most {worst:.1e} apart in float32; {CLOSE:.0e} is allowed", flush=True)
    return worst <= CLOSE


def precisions() -> list[str]:
    """In what steps can be taken; where bfloat16 is not among it, that is said."""
    try:
        with torch.autocast(DEVICE, torch.bfloat16):
            torch.nn.LSTM(1, 1, device=DEVICE)(torch.zeros(1, 1, 1, device=DEVICE))
    except RuntimeError:
        print("bfloat16 is left out: this device has no LSTM in it\n", flush=True)
        return ["float32"]
    return ["float32", "bfloat16"]


def learned(made: Made, wanted: Any) -> Learned:
    step, pairs = made.step, made.pairs()
    with kernel_mode(wanted):
        first = valued(made, pairs)
        first.backward()
        gradients = torch.cat([one.grad.flatten().double() for one in made.model.parameters()])
        step.optimizer.zero_grad()
        for _ in range(3):
            step(pairs, 1 / made.shape.batch)
        return Learned(first.item(), gradients, valued(made, pairs).item())


def valued(made: Made, pairs: Pairs) -> Tensor:
    """The mean loss, in the precision of the step."""
    with precision(made.run, made.model.device):
        return loss(made.model, pairs)


def textbook_loss(made: Made, precision: str) -> float:
    model = Textbook(made.model).to(DEVICE).train()
    with torch.autocast(DEVICE, torch.bfloat16, enabled=precision == "bfloat16"):
        return loss(model, made.pairs()).item()


def apart(one: Learned, other: Learned) -> dict[str, float]:
    """Relative differences; gradients as one long vector."""
    offs = {"off": abs(one.loss / other.loss - 1)}
    if one.later is not None and one.gradients is not None:
        offs["gradients_off"] = float((one.gradients - other.gradients).norm())
        offs["gradients_off"] /= float(other.gradients.norm())
        offs["later_off"] = abs(one.later / other.later - 1)
    return {name: off if math.isfinite(off) else math.inf for name, off in offs.items()}


@contextmanager
def no_tf32() -> Iterator[None]:
    """Products of float32 in float32, cuDNN's too."""
    parts = (torch.backends.cuda.matmul, torch.backends.cudnn) if CUDA else ()
    before = [one.allow_tf32 for one in parts]
    for one in parts:
        one.allow_tf32 = False
    try:
        yield
    finally:
        for one, value in zip(parts, before, strict=True):
            one.allow_tf32 = value
