"""A whole epoch by `ledeline.train.loop.train`: bench/gpu.py runs this for each system.

The process is fresh, and so is Triton's cache unless `--warm` is said: the time to the first step
has everything in it that a first run on a new machine has to do. The first step begins when all
shapes are captured and the data lies on the device. Of its parts, the rehearsal is a validation,
which compiles what it needs; the data are read meanwhile, and "reading behind it" is what was left
of that; the warm-up takes a step of every shape, and compiles the rest.

The epoch is from there to the end of the run: steps, looks, metrics, validation with its headlines,
the checkpoint written. "Steps alone" is what the steps would take with nothing between them: when
the run is over, each shape of the epoch is replayed some times back to back, and weighs as often as
the epoch had it. Its share of the whole epoch is what the target is about.

"Reserved" is the most that PyTorch had; "used" is what the process took of the GPU when the epoch
was over, with CUDA itself and the graphs.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

import quick
from gpu_ways import Calls, Moment, configured
from ledeline.config import LoopConfig, ValidationConfig
from ledeline.data.batches import PlannedBatch
from ledeline.data.dataset import Column as Sequences
from ledeline.data.dataset import Dataset, DatasetWriter, EncodedChunk
from ledeline.train import loop
from ledeline.train.callbacks import NullCallback, StepReport
from ledeline.train.cuda_graphs import CapturedSteps
from ledeline.train.metrics_log import METRICS
from ledeline.train.step import EagerSteps
from ledeline.train.train_config import TrainConfig
from ledeline.train.validation import Validation
from rows import Column, Rows, Table
from train import CUDA, QUICK, Sizes

FOUND = "found.json"
COLUMNS = [
    Column("system", "system"),
    Column("pairs", "pairs", ",d"),
    Column("batches", "batches", ",d"),
    Column("graphs", "graphs", "d"),
    Column("from_command", "command to first step, s", ".1f"),
    Column("from_train", "of it in train(), s", ".1f"),
    Column("rehearsal", "rehearsal, s", ".1f"),
    Column("reading", "reading behind it, s", ".1f"),
    Column("warm_up", "warm-up, s", ".1f"),
    Column("capture", "capture, s", ".1f"),
    Column("compiled", "kernels compiled", "d"),
    Column("compiled_later", "later", "d"),
    Column("steps", "steps, s", ".2f"),
    Column("validation", "validation, s", ".2f"),
    Column("rest", "rest, s", ".2f"),
    Column("epoch", "whole epoch, s", ".2f"),
    Column("alone", "steps alone, s", ".2f"),
    Column("share", "share of it", ".3f"),
    Column("pairs_per_second", "pairs/s", ",.0f"),
    Column("loss", "valid loss a token", ".3f"),
    Column("reserved", "reserved, GiB", ".2f"),
    Column("used", "used, GiB", ".2f"),
]


# --- the process that waits -----------------------------------------------------------------------


def epoch(options: argparse.Namespace, rows: Rows) -> bool:
    """A row for each system; False where a process failed."""
    whole = True
    with tempfile.TemporaryDirectory() as folder:
        dataset = dataset_for(options, Path(folder))
        table = Table(rows, "epoch", *COLUMNS)
        for number, system in enumerate(options.systems or options.main_systems):
            place = Path(folder) / str(number)
            place.mkdir()
            whole &= in_a_process(options, dataset, system, place, table)
    return whole


def in_a_process(
    options: argparse.Namespace, dataset: Path, system: str, place: Path, table: Table
) -> bool:
    """Print what the process found; False where it failed."""
    environment = dict(os.environ)
    if not options.warm:
        environment["TRITON_CACHE_DIR"] = str(place / "triton")
    here, began = used(), time.time()
    command = [sys.executable, __file__, system, str(dataset), str(place), str(options.replays)]
    status = subprocess.run(command + ["--quick"] * options.quick, env=environment).returncode
    if (place / FOUND).exists():
        found = json.loads((place / FOUND).read_text())
        found["from_command"] = found.pop("first_step") - began
        found["used"] = found["used"] - here if CUDA else None
        table.add(system=system, **found)
    if status:
        print(f"{system}: failed", flush=True)
    return not status


def dataset_for(options: argparse.Namespace, folder: Path) -> Path:
    """The one given; of other size where that was asked for."""
    dataset: Path = options.dataset
    if options.pairs is None:
        return dataset
    began, longer = time.perf_counter(), folder / "longer"
    longer.mkdir()
    write_longer(Dataset(dataset), longer, options.pairs)
    took = time.perf_counter() - began
    print(f"{options.pairs:,} pairs, those of {dataset} over and over: {took:.1f} s\n", flush=True)
    return longer


def write_longer(dataset: Dataset, folder: Path, num_pairs: int) -> None:
    """The same dataset with so many training pairs: its own, over and over."""
    writer = DatasetWriter(folder, dataset.tokenizer)
    for name, split in dataset.splits.items():
        wanted = num_pairs if name == "train" else len(split)
        sides = [repeated(side, wanted) for side in (split.sources, split.headlines)]
        writer.write_split(name, [EncodedChunk(*sides[0], *sides[1])])
    writer.finish()


def repeated(side: Sequences, wanted: int) -> tuple[np.ndarray, np.ndarray]:
    """So many sequences, end to end, and their lengths."""
    lengths = np.resize(side.lengths(), wanted)
    return np.resize(side.joined(), int(lengths.sum())), lengths


# --- the process that trains ----------------------------------------------------------------------


class Seen(NullCallback):
    """When what happened, and who took the steps."""

    steps: CapturedSteps | EagerSteps
    num_compiled: int
    loss: float

    def __init__(self) -> None:
        self.times: dict[str, float] = {}

    def first(self, steps: CapturedSteps | EagerSteps) -> None:
        """The first step is about to be taken."""
        self.steps, self.num_compiled = steps, num_compiled()
        self.times["first"] = time.time()
        print(f"{steps._step.model.config.name} begins", file=sys.stderr, flush=True)

    def on_step(self, report: StepReport) -> None:
        """The GPU has done all steps until here."""
        if report.batch == report.num_batches:
            self.times["stepped"] = time.time()

    def on_validation(self, validation: Validation) -> None:
        """Only the checkpoint is left."""
        self.times["validated"] = time.time()
        self.loss = validation.losses.per_token


@contextmanager
def seen_steps(seen: Seen) -> Iterator[None]:
    """Have the loop tell of its first step; nothing else changes."""

    def told(kind: Any) -> Any:
        class Told(kind):
            def run(self, draw: PlannedBatch) -> None:
                if "first" not in seen.times:
                    seen.first(self)
                super().run(draw)

        return Told

    with (
        patch.object(loop, "CapturedSteps", told(CapturedSteps)),
        patch.object(loop, "EagerSteps", told(EagerSteps)),
    ):
        yield


@contextmanager
def captured_anywhere() -> Iterator[None]:
    """Have the loop take the steps of a GPU where there is none: graphs that only call."""
    with (
        patch.object(loop, "can_capture", lambda *_: True),
        patch.object(loop, "CudaGraphs", Calls),
    ):
        yield


def trained(config: TrainConfig, folder: Path) -> tuple[CapturedSteps | EagerSteps, dict[str, Any]]:
    """One epoch, and what it took."""
    seen, began = Seen(), time.time()
    with seen_steps(seen):
        loop.train(config, folder, callback=seen)
    end, when, start = time.time(), seen.times, first_line(folder)
    num_pairs, whole = len(Dataset(config.data.dataset)["train"]), end - when["first"]
    return seen.steps, {
        "pairs": num_pairs,
        "graphs": start.get("graphs"),
        "first_step": when["first"],
        "from_train": when["first"] - began,
        "rehearsal": start.get("seconds_to_rehearse"),
        "reading": start.get("seconds_to_read"),
        "warm_up": start.get("seconds_to_warm_up"),
        "capture": start.get("seconds_to_capture"),
        "compiled": seen.num_compiled,
        "compiled_later": num_compiled() - seen.num_compiled,
        "steps": when["stepped"] - when["first"],
        "validation": when["validated"] - when["stepped"],
        "rest": end - when["validated"],
        "epoch": whole,
        "pairs_per_second": num_pairs / whole,
        "loss": seen.loss,
        "reserved": torch.cuda.max_memory_reserved() / 2**30 if CUDA else None,
        "used": used() if CUDA else None,
    }


def first_line(folder: Path) -> dict[str, Any]:
    """What the journal says of the start."""
    with (folder / METRICS).open(encoding="utf-8") as lines:
        start: dict[str, Any] = json.loads(next(lines))
    return start


def seconds_alone(steps: CapturedSteps, replays: int) -> float:
    """What all steps of the epoch would take back to back, each shape measured on its own."""
    steps._step.model.train()
    firsts = {shape: number for number, shape in reversed([*enumerate(steps._shapes)])}
    event = partial(torch.cuda.Event, enable_timing=True) if CUDA else Moment
    events = {}
    for shape, number in firsts.items():
        work = steps._replays.get(shape, partial(steps._learn, shape))
        steps._number.fill_(number)
        events[shape] = [event(), event()]
        events[shape][0].record()
        for _ in range(replays):
            work()
        events[shape][1].record()
    if CUDA:
        torch.cuda.synchronize()
    milliseconds = {shape: a.elapsed_time(b) / replays for shape, (a, b) in events.items()}
    return (
        sum(often * milliseconds[shape] for shape, often in Counter(steps._shapes).items()) / 1000
    )


def num_compiled() -> int:
    """Entries of Triton's cache."""
    folder = Path(os.environ.get("TRITON_CACHE_DIR", Path.home() / ".triton" / "cache"))
    return len([*folder.iterdir()]) if folder.is_dir() else 0


def used() -> float:
    """GiB of the GPU that are taken, by whomever."""
    if not CUDA:
        return 0.0
    free, total = torch.cuda.mem_get_info()
    return (total - free) / 2**30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("system")
    parser.add_argument("dataset", type=Path)
    parser.add_argument("place", type=Path, help="folder for the run and what was found")
    parser.add_argument("replays", type=int)
    parser.set_defaults(sizes=Sizes(), validation=ValidationConfig())
    quick.offer(parser, sizes=QUICK, validation=ValidationConfig(headlines=4))
    options = parser.parse_args()
    train, model = LoopConfig(epochs=1), options.sizes.model
    more = {"validation": options.validation}
    config = configured(options.system, model, options.dataset, train, **more)
    with captured_anywhere() if options.quick and not CUDA else nullcontext():
        steps, found = trained(config, options.place / "run")
    (options.place / FOUND).write_text(json.dumps(found))
    if isinstance(steps, CapturedSteps):
        found |= {"batches": len(steps._shapes), "alone": seconds_alone(steps, options.replays)}
        found["share"] = found["alone"] / found["epoch"]
        (options.place / FOUND).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
