"""What the journals of runs tell: learning curves, and what training took; and tiny runs."""

import json
import shutil
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import tiny
from addons_figure import NAME, PAPER_C, SYSTEMS, Key, by_size, parsed
from experiment import TINY, Places, chosen
from ledeline.core.errors import ScoreError
from ledeline.report.numbers import percent
from ledeline.train.metrics_log import METRICS

LEARNING = "Validation: loss per token / R-1; bold is the epoch that was kept.\n"
TIMES = "Medians over whole epochs and over reports; start is what comes before the first step.\n"
TIME_HEADS = (
    "trained on", "run", "GPU", "epochs", "epoch, s", "validation, s", "pairs/s", "start, s",
    "GPU memory, GiB", "in all, min",
)  # fmt: skip
Line = dict[str, Any]  # of a journal


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], num_texts: int) -> list[str]:
    """Lines of Markdown; the first columns are texts, the others figures."""
    marks = ["---"] * num_texts + ["---:"] * (len(heads) - num_texts)
    return [*(f"| {' | '.join(cells)} |" for cells in (heads, marks, *rows)), ""]


class Run(NamedTuple):
    """The journal of a run, docs/training.md."""

    key: Key
    seed: int
    lines: list[Line]

    @property
    def label(self) -> str:
        """System, C where it is not the paper's, and seed."""
        c = "" if self.key.c == PAPER_C else f", C = {self.key.c:g}"
        return f"{SYSTEMS[self.key.system]}{c}, seed {self.seed}"

    def events(self, name: str) -> list[Line]:
        """The lines of a kind."""
        return [line for line in self.lines if line["event"] == name]


def read_runs(folder: Path) -> list[Run]:
    """The runs whose folders are called as evaluations are."""
    if not folder.is_dir():
        raise ScoreError(f"{folder}: there is no such folder; name one with runs")
    paths = [one for one in folder.glob(f"*/*/{METRICS}") if NAME.fullmatch(one.parent.name)]
    runs = [Run(*parsed(path.parent), read_journal(path)) for path in paths]
    order = list(SYSTEMS).index
    return sorted(runs, key=lambda one: (by_size(one.key.data), order(one.key.system), one.label))


def read_journal(path: Path) -> list[Line]:
    """The lines of a journal; half a line at the end, of a run that was killed, is left out."""
    lines = path.read_text("utf-8", "replace").rpartition("\n")[0].splitlines()
    try:
        found = [json.loads(line) for line in lines]
        return [line | {name: line[name] for name in ("event", "step", "time")} for line in found]
    except (ValueError, TypeError, KeyError) as error:
        raise ScoreError(f"{path}: is no journal of a run: {error!r}; name a whole one") from None


def curve_table(runs: Sequence[Run]) -> list[str]:
    """A row an epoch, a column a run: loss per token and R-1; bold is the epoch that was kept."""
    curves = [{line["epoch"]: line for line in run.events("valid")} for run in runs]
    kept = [max((n for n, line in curve.items() if line["best"]), default=0) for curve in curves]
    rows = []
    for epoch in sorted(set().union(*curves)):
        lines = [curve.get(epoch, {}) for curve in curves]
        losses = [f"{line['per_token']:.3f}" if line else "" for line in lines]
        scores = [f" / {percent(line['rouge1'])}" if "rouge1" in line else "" for line in lines]
        marks = ["**" * (epoch == best) for best in kept]
        rows.append([str(epoch), *map("{2}{0}{1}{2}".format, losses, scores, marks)])
    return table(["epoch", *(run.label for run in runs)], rows, 0)


def epoch_seconds(run: Run) -> list[tuple[float, float]]:
    """Of each epoch that was not interrupted, how long its steps and its validation took."""
    last_steps = {line["step"]: line["time"] for line in run.events("train")}
    borders = {0, *(line["step"] for line in run.events("valid"))}
    spans, began = [], None
    for line in run.lines:
        if line["event"] == "start":
            began = line["time"] if line["step"] in borders else None
        elif line["event"] == "valid":
            ended = last_steps.get(line["step"], line["time"])
            spans += [(ended - began, line["time"] - ended)] if began else []
            began = line["time"]
    return spans


def time_row(run: Run) -> list[str]:
    starts, spans = run.events("start"), epoch_seconds(run)
    paces = [line["pairs_per_second"] for line in run.events("train")]
    prepared = [sum(v for k, v in line.items() if k.startswith("seconds_to_")) for line in starts]
    steps = sum(b["time"] - a["time"] for a, b in pairwise(run.lines) if b["event"] != "start")
    memory = [line["gpu_memory"] / 2**30 for line in starts if "gpu_memory" in line]
    return [
        run.key.data,
        run.label,
        (starts[0]["gpu"] or "none") if starts else "",
        str(len(run.events("valid"))),
        *(f"{median(column):.1f}" for column in zip(*spans, strict=True)),
        *[""] * (0 if spans else 2),
        f"{median(paces):,.0f}" if paces else "",
        f"{prepared[0]:.1f}" if prepared and prepared[0] else "",
        f"{max(memory):.1f}" if memory else "",
        f"{(steps + sum(prepared)) / 60:.1f}",
    ]


def run_tables(runs: Sequence[Run]) -> list[str]:
    lines, of_all = [], [run for run in runs if run.key.data == "all"]
    if of_all:
        lines += ["## Learning curves, trained on all\n", LEARNING, *curve_table(of_all)]
    if runs:
        lines += [
            "## Training time\n",
            TIMES,
            *table(TIME_HEADS, map(time_row, runs), 3),
        ]
    return lines


# --- for --quick ----------------------------------------------------------------------------------


def tiny_study() -> Path:
    """Two systems as bench/experiment.py leaves them, and copies of them under other names."""
    from ledeline.cli import app

    places = Places(tiny.data(), tiny.tests(), tiny.results(), tiny.configs())
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        for run in chosen(places, ["all/encdec-s1", "all/both-s1"], TINY):
            for command in (run.train(places), run.evaluate(places)):
                app(command[1:], standalone_mode=False)
    for kind in ("runs", "evaluations"):
        done = places.output / kind
        for data in ("tuned", "wire", "n20k"):
            shutil.copytree(done / "all", done / data)
        for name in ("encdec-s2", "both-s2", "both-s1-c100"):
            system, _, _ = name.partition("-")
            shutil.copytree(done / "all" / f"{system}-s1", done / "all" / name)
    return places.output / "evaluations"
