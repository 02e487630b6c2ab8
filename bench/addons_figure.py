"""What bench/addons.py varies, by the names of folders, and the figure: a panel for each."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ledeline.core.errors import ScoreError
from ledeline.corpus.columns import read_parallel_columns
from ledeline.evaluation.figures import new_figure
from ledeline.evaluation.significance import Comparison, Interval
from ledeline.model.addons.spm import SourcePredictionConfig
from ledeline.report.published import OWN_ROWS
from ledeline.text.profiles import clean
from wire import is_wire

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from addons import Study

Rows = npt.NDArray[np.intp]

SYSTEMS = dict(
    zip(("encdec", "sgate", "spm", "both"), [row.system for row in OWN_ROWS], strict=True)
)
WITH_SPM = ("spm", "both")
PAPER_C = SourcePredictionConfig().c
NAME = re.compile(rf"({'|'.join(SYSTEMS)})-s([0-9]+)(?:-c([0-9]+(?:\.[0-9]+)?))?")
NUM_ALL = 1_566_339  # training pairs of the news: bench/README.md
QUARTERS = ("lowest", "second", "third", "highest")


class Key(NamedTuple):
    """What was trained, whatever the seed."""

    data: str
    system: str
    c: float = PAPER_C


class Part(NamedTuple):
    """Some pairs of a test set."""

    test_set: str
    rows: Rows
    name: str  # empty for all of them


class Effect(NamedTuple):
    """A system on some pairs, and against EncDec by the seeds that both have."""

    seeds: list[int]
    means: list[float]  # by measure
    bounds: list[Interval]
    shared: list[int]
    found: list[Comparison]  # by measure; empty where no seed is shared
    by_seed: list[float]  # differences in R-1; empty below two seeds


class Group(NamedTuple):
    """Systems that were trained on the same and are judged on the same."""

    data: str
    part: Part
    c: float | None  # of those with an SPM, where it varies
    effects: dict[str, Effect | None]  # by system, None for what is not there

    @property
    def label(self) -> str:
        """What they were trained on, and with which C."""
        return self.data if self.c is None else f"{self.data}, C = {self.c:g}"


# --- what varies ----------------------------------------------------------------------------------


def parsed(place: Path) -> tuple[Key, int]:
    """What was trained, and the seed, by the name of a folder."""
    found = NAME.fullmatch(place.name)
    if found is None or (found[3] and (found[1] not in WITH_SPM or float(found[3]) == 0)):
        raise ScoreError(
            f"{place}: is not called SYSTEM-sSEED with one of {', '.join(SYSTEMS)}, nor "
            f"SYSTEM-sSEED-cC with {' or '.join(WITH_SPM)} and a C above 0; rename it"
        )
    return Key(place.parent.name, found[1], float(found[3] or PAPER_C)), int(found[2])


def num_trained(data: str) -> int | None:
    """How many pairs of the news; None for data that are not called by their size."""
    thousands = re.fullmatch("n([1-9][0-9]*)k", data)
    return 1000 * int(thousands[1]) if thousands else NUM_ALL if data == "all" else None


def by_size(data: str) -> tuple[float, str]:
    """A key to sort data by: by size, then by name."""
    return num_trained(data) or float("inf"), data


def every_pair(study: "Study", test_set: str) -> Part:
    return Part(test_set, np.arange(study.first[test_set].summary.num_pairs), "")


def wire_part(study: "Study", sources: Path) -> Part | None:
    """The news of wire agencies, by a table whose rows are the pairs."""
    columns = [(str(sources), name) for name in ("headline", "source")]
    headlines, agencies = read_parallel_columns(columns)
    if tuple(map(clean, headlines)) != study.first["news"].texts.golds:
        raise ScoreError(f"{sources}: its headlines are not those of news; name that test set")
    wire = [is_wire(name) for name in agencies]
    return Part("news", np.flatnonzero(wire), "wire agencies only") if any(wire) else None


def quarters(study: "Study") -> Iterator[Part]:
    """The news in four equal parts by ratio; pairs of the same ratio stay in their order."""
    texts = study.first["news"].texts
    headlines, ledes = (list(map(num_words, one)) for one in (texts.references, texts.sources))
    ratios = np.array(headlines) / np.maximum(ledes, 1)
    parts = np.array_split(np.argsort(ratios, kind="stable"), len(QUARTERS))
    for name, rows in zip(QUARTERS, parts, strict=True):
        if len(rows):
            low, high = ratios[rows].min(), ratios[rows].max()
            yield Part("news", rows, f"{name}, {low:.2f} to {high:.2f}")


def num_words(text: str) -> int:
    """Words, punctuation aside; # is a digit."""
    return sum(any(map(str.isalnum, word.replace("#", "0"))) for word in text.split())


def grouped(study: "Study", sources: Path | None) -> dict[str, list[Group]]:
    """By what varies, the systems that are compared; on the news, and where there are any."""
    data = study.data("news")
    if not data:
        return {"size": [], "wire": [], "ratio": [], "weight": []}
    if "wire" in data and not sources:
        print("wire: is left out, for without --sources its pairs are not known", file=sys.stderr)
    news, wire = every_pair(study, "news"), wire_part(study, sources) if sources else None
    weights = {
        one: sorted({key.c for key in study.runs["news"] if key.data == one}) for one in data
    }
    return {
        "size": [study.group(one, news) for one in data if one != "wire"],
        "wire": [study.group(one, wire) for one in data if wire and one in ("all", "wire")],
        "ratio": [study.group("all", part) for part in quarters(study) if "all" in data],
        "weight": [
            study.group(one, news, c) for one in data for c in weights[one] if len(weights[one]) > 1
        ],
    }


# --- the figure -----------------------------------------------------------------------------------


class StepReport(NamedTuple):
    """How a system is drawn: colours differ in lightness too, and each has a shape of its own."""

    label: str
    colour: str
    shape: str
    size: float


LOOKS = {
    "sgate": StepReport("+sGate", "#d08700", "s", 5.6),
    "spm": StepReport("+SPM", "#0078c0", "o", 6.2),
    "both": StepReport("+sGate+SPM", "#4d0a33", "D", 5.2),
}
MOST = 1.5  # points that the y axis reaches; beyond it a difference is written in figures
DODGE = 0.2  # from one system to the next, where ticks are 1 apart or more
MOST_PLACES = 7  # of a log scale
SEED_SHIFT = 0.075  # from a system to its single seeds
PLACE_WIDTH, Y_WIDTH, LEAST_WIDTH, HEIGHT = 0.66, 0.9, 5.0, 3.9  # inches
SEEDS = "single seeds"
HOLLOW: dict[str, Any] = {"mfc": "white", "ms": 3, "mew": 0.8}
NOTHING = Comparison(*[float("nan")] * 5)
DARK, GREY, PALE = "#333333", "#777777", "#dddddd"


class Panel(NamedTuple):
    """A question: what varies along x, and groups of systems at places there."""

    title: str
    x_label: str
    groups: Sequence[Group]
    places: Sequence[float]
    ticks: Sequence[str]
    joined: bool = True  # the places are steps of a scale

    @property
    def ends(self) -> tuple[float, float]:
        """Half a place before the first and after the last, and room for a title."""
        middle, half = self.places[-1] / 2, max(1.1, self.places[-1] / 2 + 0.5)
        return middle - half, middle + half

    def effects(self, system: str) -> list[Effect | None]:
        """What was found at each place; None where the system was not compared."""
        effects = [group.effects.get(system) for group in self.groups]
        return [effect if effect and effect.found else None for effect in effects]


def panels(groups: Mapping[str, Sequence[Group]]) -> Iterator[Panel]:
    """Those that there are differences for."""
    there = {what: [one for one in some if is_shown(one)] for what, some in groups.items()}
    if size := [one for one in there["size"] if num_trained(one.data)]:
        sizes = [num_trained(one.data) or 0 for one in size]
        label = "pairs trained on\n(log scale)"
        yield Panel("Training pairs", label, size, spread(sizes), list(map(short, sizes)))
    if wire := there["wire"]:
        ticks = [{"all": "all news", "wire": "wire only"}[one.data] for one in wire]
        label = "trained on\n(judged on wire)"
        yield Panel("Wire agencies", label, wire, range(len(wire)), ticks, joined=False)
    if ratio := there["ratio"]:
        ticks = [one.part.name.replace(", ", "\n").replace(" to ", "–") for one in ratio]
        label = "reference words / lede words,\nquarters of the test set"
        yield Panel("Headline-to-lede ratio", label, ratio, range(len(ratio)), ticks)
    if weight := there["weight"]:
        data = [one.data for one in weight]
        most = max(data, key=data.count)
        weight = [one for one in weight if one.data == most]
        values = [one.c or PAPER_C for one in weight]
        label = f"divides the source loss\n({short(num_trained(most)) or most} training pairs)"
        ticks = [f"{one:g}" + "\n(paper)" * (one == PAPER_C) for one in values]
        yield Panel("C of the SPM", label, weight, spread(values), ticks)


def is_shown(group: Group) -> bool:
    """Whether a system was compared in it."""
    return any(effect and effect.found for effect in group.effects.values())


def short(number: int | None) -> str:
    """20k or 1.57M; nothing for None."""
    if number is None:
        return ""
    return f"{number / 1000:g}k" if number < 10**6 else f"{number / 10**6:.3g}M"


def spread(numbers: Sequence[float]) -> list[float]:
    """Places on a log scale from 0 on, such that the closest are 1 apart if there is room."""
    logs = [log(number) for number in numbers]
    gap = max(min(np.diff(logs), default=1.0), (logs[-1] - logs[0]) / MOST_PLACES)
    return [float((one - logs[0]) / gap) for one in logs]


def drawn(groups: Mapping[str, Sequence[Group]]) -> "Figure":
    """The panels side by side, with one y axis."""
    found = list(panels(groups))
    if not found:
        raise ScoreError("no system can be compared with EncDec; evaluate both with the same seed")
    widths = [panel.ends[1] - panel.ends[0] for panel in found]
    figure = new_figure(max(LEAST_WIDTH, Y_WIDTH + PLACE_WIDTH * sum(widths)), HEIGHT)
    row = figure.subplots(1, len(found), sharey=True, squeeze=False, width_ratios=widths)[0]
    keys: dict[str, Any] = {}
    for axes, panel in zip(row, found, strict=True):
        keys |= draw(axes, panel)
    row[0].set_ylabel("difference in ROUGE-1 to EncDec\n(points, 95 % intervals)", color=DARK)
    row[0].set_ylim(-MOST, MOST)
    figure.align_xlabels()
    if SEEDS in keys:
        (keys[SEEDS],) = row[0].plot([], [], "o", mec=GREY, **HOLLOW)
    names = [name for name in (*LOOKS, SEEDS) if name in keys]
    figure.legend(
        [keys[name] for name in names],
        [LOOKS[name].label if name in LOOKS else name for name in names],
        loc="outside upper center",
        ncols=len(names),
        frameon=False,
        handletextpad=0.2,
        columnspacing=1.6,
    )
    figure.set_layout_engine("constrained", wspace=0.05)
    return figure


def draw(axes: "Axes", panel: Panel) -> dict[str, Any]:
    """Draw a panel; give what stands for each system, and for single seeds."""
    axes.axhline(0, color=GREY, linewidth=1.2, zorder=1.5)
    axes.grid(axis="y", color=PALE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(GREY)
    axes.tick_params(length=0, colors=DARK)
    axes.set_xticks(panel.places, panel.ticks, fontsize=8.2)
    axes.set_xlim(panel.ends)
    axes.set_title(panel.title, fontsize=10.5, fontweight="bold", color=DARK)
    axes.set_xlabel(panel.x_label, fontsize=9, color=DARK)
    systems = [name for name in LOOKS if any(panel.effects(name))]
    keys: dict[str, Any] = {}
    for number, name in enumerate(systems):
        shift = DODGE * (number - (len(systems) - 1) / 2)
        keys |= draw_system(axes, panel, name, [place + shift for place in panel.places])
    return keys


def draw_system(axes: "Axes", panel: Panel, system: str, places: Sequence[float]) -> dict[str, Any]:
    """Draw differences with their intervals, and beside them those of single seeds."""
    look, effects = LOOKS[system], panel.effects(system)
    found = [effect.found[0] if effect else NOTHING for effect in effects]
    heights = [100 * one.difference for one in found]
    for place, height in zip(places, heights, strict=True):
        if abs(height) > MOST:
            draw_beyond(axes, place, height, look.colour)
    heights = [height if abs(height) <= MOST else float("nan") for height in heights]
    bars = [
        [max(0.0, 100 * (one.difference - one.low)) for one in found],  # not below 0 by rounding
        [max(0.0, 100 * (one.high - one.difference)) for one in found],
    ]
    if panel.joined:  # but not across what is not there
        axes.plot(places, heights, color=look.colour, linewidth=0.9, alpha=0.4, zorder=2)
    seeds = [
        (place + SEED_SHIFT, 100 * value)
        for place, effect in zip(places, effects, strict=True)
        for value in (effect.by_seed if effect else [])
    ]
    keys: dict[str, Any] = {}
    if seeds:
        (keys[SEEDS],) = axes.plot(*zip(*seeds, strict=True), "o", mec=look.colour, **HOLLOW)
    keys[system] = axes.errorbar(
        places,
        heights,
        yerr=bars,
        fmt=look.shape,
        color=look.colour,
        markersize=look.size,
        markeredgecolor="white",
        markeredgewidth=0.7,
        elinewidth=1.6,
        zorder=4,
    )
    return keys


def draw_beyond(axes: "Axes", place: float, height: float, colour: str) -> None:
    """Write what does not fit at the edge it lies beyond."""
    is_up = height > 0
    axes.text(
        place,
        MOST if is_up else -MOST,
        f"+{height:.1f}  →" if is_up else f"←  −{-height:.1f}",
        color=colour,
        fontsize=8,
        rotation=90,
        ha="center",
        va="top" if is_up else "bottom",
    )
