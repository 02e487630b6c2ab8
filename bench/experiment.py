"""The experiments of docs/results.md: trains and judges each system of the plan, some at a time.

    python bench/experiment.py --list            # the plan: every run, with its commands
    python bench/experiment.py --output OUTPUT   # does what is not done yet

A run is one `ledeline train` and one `ledeline evaluate`; what they print goes to OUTPUT/logs. What
was stopped is gone on with. Several trainings share one GPU well, since each waits for memory most
of its time; NVIDIA's MPS (`nvidia-cuda-mps-control -d`) lets them do so at the same moment.
"""

import argparse
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path

import quick
import tiny

SYSTEMS = ("encdec", "sgate", "spm", "both")
CONFIGS = {"both": "sgate-spm"}  # where a configuration is called otherwise
TINY = [
    f"system.embedding_size={tiny.MODEL.embedding_size}",
    f"system.hidden_size={tiny.MODEL.hidden_size}",
    "train.epochs=1",
    "optimizer.learning_rate=0.1",  # so that they differ
    "validation.headlines=4",
]
SIZES = {"n20k": 20_000, "n100k": 100_000, "n400k": 400_000}


@dataclass(frozen=True)
class Recipe:
    """How long something is trained: most epochs, the first that halves the rate, patience."""

    epochs: int
    halve_from: int
    patience: int = 2

    @property
    def options(self) -> list[str]:
        """For `ledeline train`."""
        return [
            f"--train.epochs={self.epochs}",
            f"--schedule.halve_from={self.halve_from}",
            *([] if self.patience == 2 else [f"--train.patience={self.patience}"]),
        ]


RECIPES = {
    "all": Recipe(5, 3),
    "n400k": Recipe(8, 5),
    "wire": Recipe(10, 7),
    "n100k": Recipe(16, 11, patience=4),
    "n20k": Recipe(60, 45, patience=10),  # it learns to copy late
    "natural": Recipe(10, 7),
}


@dataclass(frozen=True)
class Places:
    """Where everything is."""

    data: Path  # datasets, by the names of configs/: news-paper and so on
    tests: Path  # news.parquet, and Rush's test set
    output: Path
    configs: Path = Path("configs")

    def config(self, system: str) -> str:
        """The configuration of a system."""
        return str(self.configs / f"paper-{CONFIGS.get(system, system)}.toml")


@dataclass(frozen=True)
class Run:
    """One system, trained and judged."""

    name: str  # data/system-s1, and a suffix where something is otherwise
    config: str
    options: list[str]
    sets: tuple[str, ...]

    def train(self, places: Places) -> list[str]:
        """The command that trains it."""
        folder = str(places.output / "runs" / self.name)
        return ["ledeline", "train", self.config, "--run", folder, "--resume", *self.options]

    def evaluate(self, places: Places) -> list[str]:
        """The command that judges it."""
        tests = {
            "news": f"news={places.tests / 'news.parquet'}",
            "rush": f"rush={places.tests / 'rush-test.article.txt'},"
            f"{places.tests / 'rush-test.title.txt'}",
        }
        sets = [part for one in self.sets for part in ("--test", tests[one])]
        best = str(places.output / "runs" / self.name / "best")
        folder = str(places.output / "evaluations" / self.name)
        options = [*sets, "--unknown", "keep", "--output", folder, "--resume"]  # as the paper's
        return ["ledeline", "evaluate", "--model", best, *options]

    def commands(self, places: Places) -> list[list[str]]:
        """All that is done, in order."""
        return [self.train(places), self.evaluate(places)]


def plan(places: Places) -> Iterator[Run]:
    """All runs, what matters most first."""
    for system in SYSTEMS:
        yield on_news(places, "all", system, 1)
    yield natural(places)
    for system in ("encdec", "both"):
        yield on_news(places, "all", system, 2)
    for system in SYSTEMS:
        yield tuned(places, system)
    yield from on_less(places, 1)
    for system in ("spm", "both"):
        for c in (1, 100):
            yield on_news(places, "n100k", system, 1, c=c)
    yield from on_less(places, 2)
    yield narrow(places)


def chosen(places: Places, only: Sequence[str], also: Sequence[str]) -> Iterator[Run]:
    """The runs that are called as one of the patterns, with further options of the training."""
    for run in plan(places):
        if any(fnmatch(run.name, one) for one in only):
            yield replace(run, options=[*run.options, *(f"--{option}" for option in also)])


def on_less(places: Places, seed: int) -> Iterator[Run]:
    """All systems on each part of the news."""
    for data in ("n100k", "wire", "n400k", "n20k"):
        for system in SYSTEMS:
            yield on_news(places, data, system, seed)


def on_news(places: Places, data: str, system: str, seed: int, c: int | None = None) -> Run:
    """A system on the news, or on a part of it, as the paper prepares its data."""
    dataset = "news-wire" if data == "wire" else "news-paper"
    options = [f"--data.dataset={places.data / dataset}", f"--train.seed={seed}"]
    if data in SIZES:
        options.append(f"--data.pairs={SIZES[data]}")
    if data != "all":
        options.append("--validation.headlines=0")  # an epoch is over before they are written
    if c is not None:
        options.append(f"--spm.c={c}")
    suffix = "" if c is None else f"-c{c}"
    sets = ("news", "rush") if data == "all" else ("news",)
    options += RECIPES[data].options
    return Run(f"{data}/{system}-s{seed}{suffix}", places.config(system), options, sets)


def tuned(places: Places, system: str) -> Run:
    """A system of the news that goes on with Gigaword."""
    options = [
        f"--data.dataset={places.data / 'gigaword'}",
        f"--train.start_from={places.output / 'runs' / 'all' / f'{system}-s1' / 'best'}",
        "--optimizer.learning_rate=0.0005",
        *Recipe(6, 3).options,
    ]
    return Run(f"tuned/{system}-s1", places.config(system), options, ("rush",))


def natural(places: Places) -> Run:
    """The model in the box."""
    return boxed(places, "natural/both-s1", RECIPES["natural"])


def narrow(places: Places) -> Run:
    """The first epochs of the model in the box in the paper's sizes: what the wider layers buy."""
    sizes = "--system.embedding_size=200", "--system.hidden_size=400"
    return boxed(places, "natural/narrow-s1", replace(RECIPES["natural"], epochs=4), *sizes)


def boxed(places: Places, name: str, recipe: Recipe, *more: str) -> Run:
    """A system with the configuration of the model in the box."""
    options = [f"--data.dataset={places.data / 'news-natural'}", *recipe.options, *more]
    return Run(name, str(places.configs / "model-in-the-box.toml"), options, ("news",))


# --- doing it ---------------------------------------------------------------------------------


def do(run: Run, places: Places) -> bool:
    """Train and judge one system; whether that went well."""
    began = time.monotonic()
    log = places.output / "logs" / f"{run.name.replace('/', '-')}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    for command in run.commands(places):
        with log.open("a", encoding="utf-8") as file:
            print("$", shlex.join(command), file=file, flush=True)
            program = [sys.executable, "-m", *command]
            code = subprocess.call(program, stdout=file, stderr=subprocess.STDOUT)
        seconds = time.monotonic() - began
        print(f"{run.name}: {command[1]} {code or 'done'}, {seconds:,.0f} s", flush=True)
        if code:
            print(*log.read_text(encoding="utf-8").splitlines()[-5:], sep="\n", flush=True)
            return False
    return True


def main() -> None:
    """Print the plan, or do it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of datasets")
    parser.add_argument("--tests", type=Path, default=Path("data/tests"), help="of test sets")
    parser.add_argument("--output", type=Path, default=Path("build/results"))
    parser.add_argument("--configs", type=Path, default=Path("configs"), help="of configurations")
    parser.add_argument("--only", nargs="*", default=["*"], help="runs, such as all/* or n20k/*-s1")
    parser.add_argument("--workers", type=int, default=1, help="runs at a time")
    parser.add_argument("--list", action="store_true", help="print commands instead of running")
    parser.add_argument(
        "--also", nargs="*", default=[], help="for each training, as run.fast=false"
    )
    tiny_places = {"data": tiny.data, "tests": tiny.tests, "output": tiny.results}
    quick.offer(parser, **tiny_places, configs=tiny.configs, only=["all/both-s1"], also=TINY)
    arguments = parser.parse_args()
    places = Places(arguments.data, arguments.tests, arguments.output, arguments.configs)
    runs = list(chosen(places, arguments.only, arguments.also))
    if arguments.list or arguments.quick:
        for run in runs:
            print(f"# {run.name}", *map(shlex.join, run.commands(places)), sep="\n")
    if arguments.list:
        return
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with ThreadPoolExecutor(arguments.workers) as pool:
        results = list(pool.map(lambda run: do(run, places), runs))
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
