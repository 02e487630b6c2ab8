"""The paper's figure of odd generation: how many headlines have how many odd words."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ledeline.evaluation.audit import Audit, binned
from ledeline.evaluation.figures import new_figure
from ledeline.evaluation.odd_words import KINDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

# Seven of Okabe and Ito's colours, which the colour-blind can tell apart; after those, hatches.
_COLOURS: Final = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#4d4d4d",
)  # fmt: skip
_HATCHES: Final = ("", "/////", ".....", "xxxxx")
_LAST: Final = 10  # the last bin on the axis is for this number and all above
_WIDTH, _PANEL_HEIGHT, _LEGEND_ROW = 7.0, 2.4, 0.25  # inches
_LETTERS_A_ROW: Final = 84  # of a legend
_KEY: Final = 6  # letters of space for the colour before a name
_MIN_PLACES: Final = 5  # on the axis


def odd_figure(systems: Mapping[str, Audit]) -> "Figure":
    """A panel for each kind that all systems know, and in it a bar for each system."""
    kinds = [kind for kind in KINDS if all(one.knows(kind) for one in systems.values())]
    names = [_shortened(name) for name in systems]
    num_rows = _num_legend_rows(names)
    figure = new_figure(_WIDTH, len(kinds) * _PANEL_HEIGHT + num_rows * _LEGEND_ROW)
    marks: list[Patch] = []  # of the systems
    for panel, kind in zip(figure.subplots(len(kinds)), kinds, strict=True):
        marks = _draw(panel, kind, [one.histogram(kind) or [] for one in systems.values()])
    figure.align_ylabels()
    num_columns = -(-len(systems) // num_rows)
    figure.legend(marks, names, loc="outside upper center", ncols=num_columns, frameon=False)
    return figure


def _draw(panel: "Axes", kind: str, histograms: Sequence[Sequence[int]]) -> "list[Patch]":
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    groups = [_heights(histogram) for histogram in histograms]
    last = max(_MIN_PLACES, *map(len, groups))
    largest = max(map(len, histograms)) - 1
    panel.set_xticks(range(1, last + 1), _labels(last, largest))
    panel.set_xlim(0.5, last + 0.5)
    panel.set_ylim(0, 1.05 * max(1, *map(max, groups)))
    panel.set_xlabel(f"{kind} words in a headline (headlines with 0 are left out)")
    panel.set_ylabel("headlines")
    panel.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10], integer=True))
    panel.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(axis="y", color="#dddddd", linewidth=0.6)
    panel.set_axisbelow(True)
    return [_bars(panel, heights, number, len(groups)) for number, heights in enumerate(groups)]


def _bars(panel: "Axes", heights: Sequence[int], number: int, num_systems: int) -> "Patch":
    """Draw the bars of one system beside those of the others, and return one of them."""
    width = min(0.8 / num_systems, 0.4)
    left = (number - (num_systems - 1) / 2) * width
    bars = panel.bar(
        [place + left for place in range(1, len(heights) + 1)],
        heights,
        width * 0.92,
        color=_COLOURS[number % len(_COLOURS)],
        hatch=_HATCHES[number // len(_COLOURS) % len(_HATCHES)],
        edgecolor="white",
        linewidth=0,
    )
    return bars.patches[0]


def _heights(histogram: Sequence[int]) -> list[int]:
    """How many headlines have 1, 2, ... odd words; the last bar is for all that have more."""
    heights = binned(histogram, _LAST)[1:]
    while len(heights) > 1 and not heights[-1]:
        heights.pop()
    return heights


def _labels(last: int, largest: int) -> list[str]:
    labels = [str(number) for number in range(1, last + 1)]
    return [*labels[:-1], f"{last}+"] if largest > last else labels


def _num_legend_rows(names: Sequence[str]) -> int:
    """The smallest number of rows of a legend, filled by columns, that is not too wide."""
    for num_rows in range(1, len(names)):
        columns = [names[begin : begin + num_rows] for begin in range(0, len(names), num_rows)]
        if sum(_KEY + max(map(len, column)) for column in columns) <= _LETTERS_A_ROW:
            return num_rows
    return len(names)


def _shortened(name: str) -> str:
    """A name that fits into a row; of a longer one its end, where paths differ."""
    room = _LETTERS_A_ROW - _KEY
    return name if len(name) <= room else "…" + name[1 - room :]
