"""How Transformers and EncDec learn: loss and ROUGE-1 against pairs seen and minutes of training.

    python bench/scaling.py run --scale gpu --data DATASET
    python bench/scaling.py rates --scale gpu --data DATASET
    python bench/scaling.py table figure --scale gpu

`run` trains each system of the plan, and goes on with what was stopped; `--list` prints the
commands. Scores are those of the validation after each epoch: greedy headlines, no test set is
touched. `rates` lets all systems take steps in turns on a quiet machine; minutes are pairs by these
rates, so that they compare whatever else ran beside the training. `table` and `figure` show what is
done so far. `--scale gpu` is for a GPU; `--scale cpu` has smaller systems, less data, and bfloat16,
which wants a CPU with AVX-512 (`--also run.precision=float32` for others).
"""

import argparse
import json
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from statistics import median
from typing import NamedTuple

import quick
import tiny
from addons_runs import Line, read_journal, table
from compared import run_quietly
from compared_speed import race
from experiment import Places, Run, do
from ledeline.core.errors import LedelineError
from ledeline.data.dataset import Dataset
from ledeline.evaluation.figures import new_figure, save
from ledeline.report.numbers import percent
from ledeline.train.metrics_log import METRICS
from machine import accelerator, described

RATES = "rates.json"
FIGURE = "scaling.svg"
ADDONS = ("sgate.enabled=true", "spm.enabled=true")
KINDS = {"transformer": "transformer.toml", "encdec": "paper-encdec.toml"}
COLOURS = {"transformer": "#b2182b", "encdec": "#2166ac"}


def transformer(size: int, encoder: int, decoder: int, heads: int) -> tuple[str, ...]:
    """The sizes of a Transformer."""
    return (
        f"system.embedding_size={size}",
        f"system.hidden_size={4 * size}",
        f"system.encoder_layers={encoder}",
        f"system.decoder_layers={decoder}",
        f"system.heads={heads}",
    )


def encdec(embedding: int, hidden: int, layers: int) -> tuple[str, ...]:
    """The sizes of EncDec."""
    sizes = f"system.embedding_size={embedding}", f"system.hidden_size={hidden}"
    return (
        *sizes,
        f"system.layers={layers}",
        "init.bound=0.2" if hidden < 300 else "init.bound=0.1",
    )


@dataclass(frozen=True)
class Scale:
    """What is compared: systems by kind and size, on how many pairs (none: all), for how long."""

    sizes: dict[str, dict[str, tuple[str, ...]]]
    pairs: dict[str, int | None]
    epochs: int
    keys: tuple[str, ...]  # for all
    own: dict[str, tuple[str, ...]]  # by kind


ALIKE = (
    "train.batch_unit=source_tokens",
    "train.divide_loss_by=tokens",
    "train.clip_norm=1",
    "train.patience=100",
)
PLAIN = ("system.word_dropout=0", "system.word_replacement=0", "train.label_smoothing=0")
SCALES = {
    "gpu": Scale(
        {
            "transformer": {"small": transformer(256, 6, 2, 4), "base": transformer(512, 6, 6, 8)},
            "encdec": {"box": encdec(256, 512, 2)},
        },
        {"n100k": 100_000, "all": None},
        6,
        (*ALIKE, "train.batch_size=20000"),
        {
            "transformer": ("schedule.warmup_steps=1000",),
            "encdec": ("optimizer.learning_rate=0.002", "schedule.halve_from=4"),
        },
    ),
    "cpu": Scale(
        {
            "transformer": {
                "small": transformer(128, 4, 2, 4),
                "medium": transformer(256, 6, 2, 4),
            },
            "encdec": {"small": encdec(128, 256, 1)},
        },
        {"n100k": 100_000},
        2,
        (
            *(*ALIKE, "train.batch_size=1000", "system.dropout=0"),
            *("run.precision=bfloat16", "run.report_every=50"),
        ),
        {
            "transformer": (*PLAIN, "optimizer.learning_rate=0.002", "schedule.warmup_steps=400"),
            "encdec": ("optimizer.learning_rate=0.002", "schedule.halve_from=2"),
        },
    ),
    "tiny": Scale(
        {
            "transformer": {"tiny": transformer(8, 1, 1, 2)},
            "encdec": {"tiny": encdec(6, 8, 1)},
        },
        {"all": None},
        2,
        (*ALIKE, "train.batch_size=60", "run.report_every=1"),
        {"transformer": PLAIN, "encdec": ()},
    ),
}


class TrainedRun(Run):
    """A run whose validations are enough."""

    def commands(self, places: Places) -> list[list[str]]:
        """The training alone."""
        return [self.train(places)]


class Named(NamedTuple):
    """A run of the plan: what its folder is called after."""

    data: str
    kind: str
    size: str
    addons: bool

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.data}/{self.kind}-{self.size}{'-both' * self.addons}"

    @property
    def label(self) -> str:
        """In tables and in the figure."""
        kind = {"transformer": "Transformer", "encdec": "EncDec"}[self.kind]
        return f"{kind} {self.size}{'+sGate+SPM' * self.addons}"


def plan(options: argparse.Namespace) -> Iterator[tuple[Named, Run]]:
    """The runs that are called as one of the patterns, what decides most first."""
    scale = SCALES[options.scale]
    names = [
        Named(data, kind, size, addons)
        for data in scale.pairs
        for addons in (False, True)
        for kind, sizes in scale.sizes.items()
        for size in sizes
    ]
    for one in names:
        if any(fnmatch(one.name, pattern) for pattern in options.only):
            config = str(options.configs / KINDS[one.kind])
            yield one, TrainedRun(one.name, config, [f"--{key}" for key in keys(one, options)], ())


def keys(one: Named, options: argparse.Namespace) -> list[str]:
    """What a run has beside its configuration."""
    scale = SCALES[options.scale]
    found = [f"data.dataset={options.data}", *scale.keys, *scale.own[one.kind]]
    found += scale.sizes[one.kind][one.size]
    found += [f"train.epochs={scale.epochs}", f"train.seed={options.seed}"]
    if (pairs := scale.pairs[one.data]) is not None:
        found.append(f"data.pairs={pairs}")
    if one.addons:
        found += [*ADDONS, *(["sgate.initial_bias=2"] if one.kind == "transformer" else [])]
    return [*found, *options.also]


# --- what was found -------------------------------------------------------------------------------


class Curve(NamedTuple):
    """How a run went: (pairs, loss per token) of training, (pairs, loss, R-1) of validations."""

    run: Named
    train: list[tuple[float, float]]
    valid: list[tuple[float, float, float | None]]
    rate: float  # pairs a second
    rate_is_of_turns: bool

    def minutes(self, pairs: float) -> float:
        """How long so many pairs take."""
        return pairs / self.rate / 60


def curves(options: argparse.Namespace) -> list[Curve]:
    """Of each run that has seen all its pairs once."""
    rates = {}
    if (path := options.output / RATES).exists():
        rates = json.loads(path.read_text("utf-8"))
    found = []
    for one, _ in plan(options):
        journal = options.output / "runs" / one.name / METRICS
        if journal.exists():
            num_pairs = SCALES[options.scale].pairs[one.data] or len(Dataset(options.data)["train"])
            found.append(curve(one, read_journal(journal), num_pairs, rates.get(one.name)))
    return [one for one in found if one.valid]


def curve(run: Named, lines: Sequence[Line], num_pairs: int, rate: float | None) -> Curve:
    """The first validation is after all pairs; so many have been seen in so many steps."""
    train, valid = ([one for one in lines if one["event"] == name] for name in ("train", "valid"))
    per_step = num_pairs / valid[0]["step"] if valid else 0.0
    return Curve(
        run,
        [(one["step"] * per_step, one["per_token"]) for one in train],
        [(one["step"] * per_step, one["per_token"], one.get("rouge1")) for one in valid],
        rate or median([one["pairs_per_second"] for one in train] or [float("nan")]),
        rate is not None,
    )


def print_table(options: argparse.Namespace) -> None:
    rows = []
    for one in curves(options):
        for epoch, (pairs, loss, score) in enumerate(one.valid, start=1):
            rows.append(
                [
                    one.run.data,
                    one.run.label,
                    str(epoch),
                    f"{pairs:,.0f}",
                    f"{one.minutes(pairs):.1f}{'' if one.rate_is_of_turns else ' (own)'}",
                    f"{one.rate:,.0f}",
                    f"{loss:.3f}",
                    "" if score is None else percent(score),
                ]
            )
    heads = ["trained on", "system", "epoch", "pairs seen", "minutes", "pairs/s"]
    print("\n".join(table([*heads, "loss per token", "R-1, greedy"], rows, 2)))


def draw_figure(options: argparse.Namespace) -> None:
    """Training loss by minutes; beside it R-1 of each validation."""
    figure = new_figure(9.5, 4.2)
    left, right = figure.subplots(1, 2)
    found, both_sizes = curves(options), options.scale == "gpu"
    for one in found:
        style = {"color": COLOURS[one.run.kind]}
        style["linestyle"] = ":" if both_sizes and one.run.data == "n100k" else "-"
        width = {"small": 1.0, "tiny": 1.0}.get(one.run.size, 2.2)
        marker = {"marker": "s" if one.run.addons else "o", "markersize": 5}
        alpha = 0.55 if one.run.addons else 1.0
        label = one.run.label + (f", {one.run.data}" if both_sizes else "")
        times = [one.minutes(pairs) for pairs, _ in one.train]
        losses = [loss for _, loss in one.train]
        left.plot(times, losses, linewidth=width, alpha=alpha, label=label, **style)
        points = [(one.minutes(pairs), 100 * score) for pairs, _, score in one.valid if score]
        if points:
            right.plot(*zip(*points, strict=True), alpha=alpha, linewidth=width, **marker, **style)
    where = "GPU" if options.scale == "gpu" else "core"
    for axes, title in ((left, "training loss per token"), (right, "ROUGE-1, greedy")):
        axes.set_title(title, fontsize=10)
        axes.set_xlabel(f"minutes of training on one {where}", fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#e6e6e6", linewidth=0.6)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    path = options.output / FIGURE
    save(figure, path)
    print(f"{path}: {len(found)} runs")


def print_rates(options: argparse.Namespace) -> None:
    runs = {one.name: run for one, run in plan(options)}
    systems = {name: (run.config, run.options) for name, run in runs.items()}
    racers = race(systems, options.steps, options.turns, writes=False)
    rates = {name: median(racer.learned[1:]) for name, racer in racers.items()}
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / RATES).write_text(json.dumps(rates, indent=2) + "\n", encoding="utf-8")
    rows = [[name, f"{rate:,.1f}"] for name, rate in rates.items()]
    print("\n".join(table(["run", "pairs/s"], rows, 1)))


# --- doing it -------------------------------------------------------------------------------------


def run_all(options: argparse.Namespace) -> None:
    runs = [run for _, run in plan(options)]
    places = Places(options.data, Path(), options.output, options.configs)
    if options.list:
        for run in runs:
            print(f"# {run.name}", shlex.join(run.train(places)), sep="\n")
    elif options.quick:
        run_quietly(runs, places)
    else:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        with ThreadPoolExecutor(options.workers) as pool:
            results = list(pool.map(lambda run: do(run, places), runs))
        if not all(results):
            sys.exit(1)


PARTS = {"run": run_all, "rates": print_rates, "table": print_table, "figure": draw_figure}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--data", type=Path, default=Path("data/news-natural"), help="the dataset")
    parser.add_argument("--output", type=Path, default=Path("build/scaling"))
    parser.add_argument("--configs", type=Path, default=Path("configs"), help="of configurations")
    parser.add_argument("--scale", choices=list(SCALES), default="gpu")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=["*"], help="runs, such as n100k/encdec*")
    parser.add_argument("--also", nargs="*", default=[], help="keys for each training")
    parser.add_argument("--workers", type=int, default=1, help="runs at a time")
    parser.add_argument("--list", action="store_true", help="print commands instead of running")
    parser.add_argument("--steps", type=int, default=20, help="of each turn, for rates")
    parser.add_argument("--turns", type=int, default=5, help="of each system, for rates")
    small = {"data": tiny.dataset, "output": tiny.results, "configs": tiny.configs}
    quick.offer(parser, **small, scale="tiny", steps=1, turns=1)
    options = parser.parse_args()
    for one in {*options.parts} - {*PARTS}:
        parser.error(f"there is no {one}")
    print(f"{described()}\n{accelerator()}\n")
    try:
        for part in options.parts or PARTS:
            PARTS[part](options)
    except (LedelineError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
