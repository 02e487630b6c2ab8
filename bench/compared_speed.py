"""How fast systems learn and write, in turns, as ratios to one of them."""

import time
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from addons_runs import table
from ledeline.config import SearchConfig
from ledeline.data.batches import Batches
from ledeline.data.dataset import Dataset
from ledeline.model.build import build
from ledeline.model.system import System
from ledeline.search import search
from ledeline.train.optimizers import build_optimizer
from ledeline.train.processes import World
from ledeline.train.step import EagerSteps, TrainStep
from ledeline.train.train_config import load_train_config

NUM_LEDES = 16  # that each turn writes headlines for
HEADS = ["system", "parameters", "pairs/s", "of the base", "headlines/s, beam 20", "of the base"]


class Racer:
    """A system that learns, and writes, a turn at a time."""

    def __init__(self, config: Path, options: Sequence[str], device: torch.device) -> None:
        self.config = load_train_config(config, options, quiet=True)
        self.dataset = Dataset(self.config.data.dataset)
        size = self.dataset.tokenizer.vocabulary_size
        self.model: System = build(self.config.model, size, 1, self.config.init).to(device)
        optimizer = build_optimizer(self.config.optimizer, self.model.parameters(), device)
        step = TrainStep(self.model, self.model, optimizer, self.config)
        loop = self.config.train
        batches = Batches(self.dataset["train"], size=loop.batch_size, seed=1, unit=loop.batch_unit)
        self._steps = EagerSteps(step, batches, World(0, 1, device))
        self._draws = batches.planned_from()
        self.learned: list[float] = []  # pairs a second, of each turn
        self.written: list[float] = []  # headlines a second

    def learn(self, num_steps: int) -> None:
        """Take some steps; every system has the same batches."""
        self.model.train()
        began, pairs = time.perf_counter(), 0
        for draw, _ in islice(self._draws, num_steps):
            self._steps.run(draw)
            pairs += len(draw.rows)
        _wait(self.model.device)
        self.learned.append(pairs / (time.perf_counter() - began))

    def write(self) -> None:
        """Write some headlines; their lengths are fixed, so that all systems do the same."""
        self.model.eval()
        rows = np.arange(min(NUM_LEDES, len(self.dataset["valid"])))
        sources, lengths = self.dataset["valid"].sources.padded(rows)
        began = time.perf_counter()
        search(self.model, sources, lengths, SearchConfig(min_length=12, max_length=12))
        self.written.append(len(rows) / (time.perf_counter() - began))


def speed_table(
    systems: Mapping[str, tuple[str, Sequence[str]]], base: str, num_steps: int, turns: int
) -> list[str]:
    """Each system in every turn; the median of the turns, and of the ratios in a turn."""
    racers = race(systems, num_steps, turns)
    rows = [[name, *_cells(racer, racers[base])] for name, racer in racers.items()]
    return table(HEADS, rows, 1)


def race(
    systems: Mapping[str, tuple[str, Sequence[str]]],
    num_steps: int,
    turns: int,
    *,
    writes: bool = True,
) -> dict[str, Racer]:
    """Let each system learn in every turn, and write headlines; the first one only warms up."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    racers = {name: Racer(Path(one[0]), one[1], device) for name, one in systems.items()}
    for turn in range(turns + 1):
        for racer in racers.values():
            racer.learn(num_steps if turn else 1)
            if writes:
                racer.write()
    return racers


def _cells(racer: Racer, base: Racer) -> list[str]:
    size = sum(one.numel() for one in racer.model.parameters())
    cells: list[Any] = [f"{size / 1e6:.2f} M"]
    for ours, theirs in ((racer.learned, base.learned), (racer.written, base.written)):
        ratios = [one / other for one, other in zip(ours[1:], theirs[1:], strict=True)]
        cells += [f"{median(ours[1:]):,.1f}", f"{median(ratios):.2f}"]
    return cells


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()
