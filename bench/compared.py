"""The systems that the paper compares itself with, and add-ons, all alike: the table of results.

    python bench/compared.py run --scale paper --data DATASET --test news=news.parquet
    python bench/compared.py table
    python bench/compared.py speed --data DATASET

`run` trains and evaluates each system of the plan, and goes on with what was stopped; `--list`
prints the commands. `--scale paper` is configs/compared/NAME-fair.toml, for a GPU; `--scale small`
has layers of 128 values and two epochs, for a CPU; `--scale newsroom` is for the dataset of `make
newsroom`. `table` prints what is done so far. `speed` trains all systems in turns, some steps each,
and says how fast each is beside EncDec.
"""

import argparse
import shlex
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from fnmatch import fnmatch
from io import StringIO
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np

import quick
import tiny
from addons_runs import Line, read_journal, table
from compared_speed import speed_table
from experiment import Places, Run, do
from ledeline.core.errors import LedelineError
from ledeline.evaluation.evaluation_folder import EvaluationFolder
from ledeline.evaluation.odd_words import KINDS
from ledeline.evaluation.significance import compare
from ledeline.evaluation.summary import MEASURES
from ledeline.model.format.model_folder import load_model
from ledeline.report.numbers import percent, signed
from ledeline.report.published import EARLIER_ROWS, OWN_ROWS
from ledeline.train.metrics_log import METRICS
from machine import accelerator, described

BASE = "encdec"


@dataclass(frozen=True)
class Entry:
    """A system of the plan: its configuration, and what is otherwise with it."""

    config: str  # in the folder of configurations
    options: tuple[str, ...] = ()
    small: tuple[str, ...] = ()  # its own sizes for a CPU
    published: str = ""  # its row in the paper's table


def of(name: str, **more: object) -> Entry:
    return Entry(f"compared/{name}-fair.toml", **more)  # type: ignore[arg-type]


ENCDEC = ("system.layers=1",)
SEASS = ("system.hidden_size=256", "system.attention_size=128", "system.readout_size=256")
DRGD = ("system.latent_size=128", "system.attention_size=128")
ABS = ("system.hidden_size=256", "system.encoder_size=128", "system.filters=128")
LAST_PHASE = ("train.start_from={base}", "train.epochs=1")  # goes on from EncDec
PLAN = {
    BASE: Entry("paper-encdec.toml", (), ENCDEC, "EncDec"),
    "sgate": Entry("paper-sgate.toml", (), ENCDEC, "EncDec+sGate"),
    "spm": Entry("paper-spm.toml", (), ENCDEC, "EncDec+SPM"),
    "sgate-spm": Entry("paper-sgate-spm.toml", (), ENCDEC, "EncDec+sGate+SPM"),
    "abs": of("abs", small=ABS, published="ABS"),
    "seass": of("seass", small=SEASS, published="SEASS"),
    "drgd": of("drgd", small=DRGD, published="DRGD"),
    "wfe": of("wfe", small=ENCDEC, published="WFE"),
    "conv-s2s": of("conv-s2s", small=("system.layers=4",), published="conv-s2s"),
    "coverage": of("coverage", small=ENCDEC),
    "coverage-see": of("coverage", options=("coverage.kind=see", *LAST_PHASE), small=ENCDEC),
    "copy": of("copy", small=ENCDEC),
    "reconstruction": of("reconstruction", small=ENCDEC),
    "word-prediction": of("word-prediction", small=ENCDEC),
    "ras": of("ras"),
    "seass-spm": of("seass", options=("spm.enabled=true",), small=SEASS),
    "drgd-beta": of("drgd", options=("system.beta=0.02",), small=DRGD),
    "abs-bow": of("abs", options=("system.encoder=bow",), small=ABS),
    "abs-conv": of("abs", options=("system.encoder=conv",), small=ABS),
    "conv-s2s-spm": of("conv-s2s", options=("spm.enabled=true",), small=("system.layers=4",)),
}
SCALES = {
    "paper": ("train.epochs=5", "schedule.halve_from=3"),
    "small": (
        "system.embedding_size=128",
        "system.hidden_size=128",
        "system.dropout=0.1",
        "init.bound=0.2",
        "optimizer.learning_rate=0.002",
        "train.batch_size=32",
        "train.epochs=2",
        "schedule.halve_from=2",
        "validation.headlines=200",
    ),
    "newsroom": (
        "system.embedding_size=128",
        "system.hidden_size=128",
        "system.dropout=0.1",
        "init.bound=0.2",
        "optimizer.learning_rate=0.005",
        "train.batch_size=16",
        "train.epochs=4",
        "validation.headlines=150",
    ),
    "tiny": (
        "system.embedding_size=6",
        "system.hidden_size=8",
        "optimizer.learning_rate=0.1",
        "train.epochs=1",
        "validation.headlines=4",
    ),
}
PUBLISHED = {row.system: row for row in (*OWN_ROWS, *EARLIER_ROWS)}
HOW = """\
In brackets are 95 % intervals by the bootstrap over pairs (1,000 resamples, for differences
paired); p is that of approximate randomisation (10,000 shuffles, two-sided), against EncDec. Odd
words are per 1,000 headlines. Rates are those of the runs, whatever else ran beside them; `speed`
measures them in turns.
"""


class ComparedRun(Run):
    """One system of the plan; its test sets are given with the command."""

    def evaluate(self, places: Places) -> list[str]:
        """The command that judges it."""
        sets = [part for one in self.sets for part in ("--test", one)]
        best, folder = (str(places.output / kind / self.name) for kind in ("runs", "evaluations"))
        options = [*sets, "--unknown", "keep", "--output", folder, "--resume"]
        return ["ledeline", "evaluate", "--model", f"{best}/best", *options]


def plan(options: argparse.Namespace) -> Iterator[ComparedRun]:
    """The runs that are called as one of the patterns, what decides most first."""
    for name, entry in PLAN.items():
        if not any(fnmatch(name, one) for one in options.only):
            continue
        keys = [f"data.dataset={options.data}", *SCALES[options.scale]]
        keys += entry.small if options.scale in ("small", "newsroom") else ()
        base = options.output / "runs" / f"{BASE}-s{options.seed}" / "best"
        keys += [one.format(base=base) for one in entry.options]
        keys += [f"train.seed={options.seed}", *options.also]
        config = str(options.configs / entry.config)
        sets = tuple(options.test)
        yield ComparedRun(f"{name}-s{options.seed}", config, [f"--{key}" for key in keys], sets)


# --- the table ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """What is known of a system."""

    name: str
    system: str  # as it is called in tables
    num_parameters: int
    rate: float  # pairs per second in training
    minutes: float  # of training
    scores: np.ndarray  # (N, measures)
    odd: np.ndarray  # (N, kinds)
    headlines_per_second: float


def rows(output: Path, test_set: str, seed: int) -> Iterator[Row]:
    for name in PLAN:
        run, folder = (output / kind / f"{name}-s{seed}" for kind in ("runs", "evaluations"))
        place = EvaluationFolder(folder)
        if not place.summary_path.exists() or not place.read_summary().inner("sets").values:
            continue  # nothing of it is done yet
        evaluation = place.read()
        if test_set in evaluation.sets:
            judged, lines = evaluation.sets[test_set], read_journal(run / METRICS)
            paces = [one["pairs_per_second"] for one in lines if one["event"] == "train"]
            yield Row(
                name,
                evaluation.system,
                sum(one.numel() for one in load_model(run / "best").model.parameters()),
                median(paces),
                seconds_of(lines) / 60,
                judged.pair_scores,
                np.array([[getattr(one, kind) for kind in KINDS] for one in judged.audit.odds]),
                judged.summary.num_pairs / (judged.summary.seconds or float("nan")),
            )


def seconds_of(lines: Sequence[Line]) -> float:
    """How long a run took in all; what lies between a stop and the next start does not count."""
    return float(sum(b["time"] - a["time"] for a, b in pairwise(lines) if b["event"] != "start"))


def result_table(found: Sequence[Row], published: str) -> list[str]:
    base = next((one for one in found if one.name == BASE), None)
    measures = list(MEASURES.values())
    heads = ["system", "run", "parameters", *measures, f"{measures[0]} less EncDec", "p", *KINDS]
    heads += ["pairs/s", "minutes", "headlines/s", f"published, {published}"]
    return table(heads, [cells(one, base, published) for one in found], 2)


def cells(row: Row, base: Row | None, published: str) -> list[str]:
    gap = ["", ""]
    if base is not None and row is not base:
        one = compare(base.scores[:, :1], row.scores[:, :1])[0]
        gap = [f"{signed(one.difference)} [{signed(one.low)}, {signed(one.high)}]"]
        gap.append(f"{one.randomisation_p:.3f}" if one.randomisation_p >= 0.001 else "< 0.001")
    printed = PUBLISHED.get(PLAN[row.name].published)
    figures = printed.figures.get(published) if printed is not None else None
    return [
        row.system,
        row.name,
        f"{row.num_parameters / 1e6:.2f} M",
        *map(percent, row.scores.mean(axis=0)),
        *gap,
        *(f"{1000 * one:,.0f}" for one in row.odd.mean(axis=0)),
        f"{row.rate:,.0f}",
        f"{row.minutes:.1f}",
        f"{row.headlines_per_second:.1f}",
        " / ".join(f"{one:.2f}" for one in figures) if figures else "",
    ]


# --- doing it -------------------------------------------------------------------------------------


def run_all(options: argparse.Namespace) -> None:
    runs = list(plan(options))
    places = Places(options.data, Path(), options.output, options.configs)
    if options.list:
        for run in runs:
            print(f"# {run.name}", *map(shlex.join, run.commands(places)), sep="\n")
    elif options.quick:
        run_quietly(runs, places)
    else:
        with ThreadPoolExecutor(options.workers) as pool:
            results = list(pool.map(lambda run: do(run, places), runs))
        sys.exit(0 if all(results) else 1)


def run_quietly(runs: Sequence[Run], places: Places) -> None:
    """In this process, without a word."""
    from ledeline.cli import app

    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        for run in runs:
            for command in run.commands(places):
                app(command[1:], standalone_mode=False)


def print_table(options: argparse.Namespace) -> None:
    print(f"{described()}\n{accelerator()}\n\n{HOW}")
    for name in [one.partition("=")[0] for one in options.test]:
        found = list(rows(options.output, name, options.seed))
        num_pairs = len(found[0].scores) if found else 0
        print(f"Test set `{name}`, {num_pairs:,} pairs, seed {options.seed}\n")
        print("\n".join(result_table(found, options.published)))


def print_speed(options: argparse.Namespace) -> None:
    systems = {run.name.rpartition("-s")[0]: (run.config, run.options) for run in plan(options)}
    print(f"{described()}\n{accelerator()}\n")
    print("\n".join(speed_table(systems, BASE, options.steps, options.turns)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=["run", "table", "speed", "all"], nargs="?", default="all")
    parser.add_argument("--data", type=Path, default=Path("data/news-paper"), help="the dataset")
    parser.add_argument("--test", nargs="*", default=[], help="test sets, as for ledeline evaluate")
    parser.add_argument("--output", type=Path, default=Path("build/compared"))
    parser.add_argument("--configs", type=Path, default=Path("configs"), help="of configurations")
    parser.add_argument("--scale", choices=list(SCALES), default="paper")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=["*"], help="systems, such as seass*")
    parser.add_argument("--also", nargs="*", default=[], help="keys for each training")
    parser.add_argument("--workers", type=int, default=1, help="runs at a time")
    parser.add_argument("--list", action="store_true", help="print commands instead of running")
    parser.add_argument("--published", default="Rush", help="column of the paper's table")
    parser.add_argument("--steps", type=int, default=20, help="of each turn, for speed")
    parser.add_argument("--turns", type=int, default=5, help="of each system, for speed")
    quick.offer(
        parser,
        data=tiny.dataset,
        test=lambda: [f"news={tiny.tests() / 'news.parquet'}"],
        output=tiny.results,
        configs=tiny.configs,
        scale="tiny",
        only=[BASE, "abs", "wfe"],
        steps=1,
        turns=1,
    )
    options = parser.parse_args()
    try:
        for name, work in (("run", run_all), ("table", print_table), ("speed", print_speed)):
            if options.what in (name, "all"):
                work(options)
    except (LedelineError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
