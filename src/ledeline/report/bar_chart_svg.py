"""Bar charts as SVG, with colours from the style sheet."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from ledeline.report.numbers import whole
from ledeline.report.svg import element

NUM_COLOURS: Final = 8
_WIDTH: Final = 368
_HEIGHT: Final = 230
_LEFT: Final = 44
_RIGHT: Final = 4
_TOP: Final = 10
_BOTTOM: Final = 44
_SPACE: Final = 0.22  # share of a group's width that stays free
_NUM_TICKS: Final = 4


@dataclass(frozen=True)
class Series:
    """The bars of one system."""

    place: int  # of the system; its colour
    label: str
    counts: tuple[int, ...]  # one per bin


def series_class(place: int) -> str:
    """The class that gives a series its colour; where colours are used again, bars are hollow."""
    hollow = " hollow" if (place // NUM_COLOURS) % 2 else ""
    return f"series-{place % NUM_COLOURS}{hollow}"


def swatch(place: int) -> Markup:
    """A small square in the colour of a series."""
    square = element(
        "rect", x=1, y=1, width=10, height=10, rx=1.5, class_=f"bar {series_class(place)}"
    )
    return element("svg", square, class_="swatch", viewBox="0 0 12 12", aria_hidden="true")


def bar_chart(bins: Sequence[str], series: Sequence[Series], x_title: str, summary: str) -> Markup:
    """Grouped bars: a group for each bin, in it a bar for each series."""
    top = _end(max(max(one.counts) for one in series))
    parts = [*_grid(top), *_bars(bins, series, top), *_bin_labels(bins), *_titles(x_title)]
    return element(
        "svg",
        *parts,
        class_="chart",
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_label=summary,
    )


def _step(largest: int) -> int:
    """A round distance between ticks, such that the largest count needs few ticks."""
    least = max(1, -(-largest // _NUM_TICKS))
    magnitude: int = 10 ** (len(str(least)) - 1)
    return next(factor * magnitude for factor in (1, 2, 5, 10) if factor * magnitude >= least)


def _end(largest: int) -> int:
    """Where the axis ends: at the first tick that is not below the largest count."""
    step = _step(largest)
    return step * max(1, -(-largest // step))


def _height(count: int, top: int) -> float:
    return count / top * (_HEIGHT - _TOP - _BOTTOM)


def _grid(top: int) -> list[Markup]:
    parts = []
    base = _HEIGHT - _BOTTOM
    for count in range(0, top + 1, _step(top)):
        y = round(base - _height(count, top), 2)
        line = "axis" if count == 0 else "grid"
        parts += [
            element("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y, class_=line),
            element("text", whole(count), x=_LEFT - 6, y=y + 3.5, text_anchor="end"),
        ]
    return parts


def _group_width(bins: Sequence[str]) -> float:
    return (_WIDTH - _LEFT - _RIGHT) / len(bins)


def _bars(bins: Sequence[str], series: Sequence[Series], top: int) -> list[Markup]:
    group = _group_width(bins)
    width = group * (1 - _SPACE) / len(series)
    return [
        _bar(
            _LEFT + group * (place + _SPACE / 2) + width * number,
            width,
            _height(one.counts[place], top),
            series_class(one.place),
            f"{one.label}, {name}: {whole(one.counts[place])}",
        )
        for place, name in enumerate(bins)
        for number, one in enumerate(series)
        if one.counts[place]
    ]


def _bar(x: float, width: float, height: float, class_: str, title: str) -> Markup:
    height = max(height, 0.75)  # a single headline among thousands stays visible
    return element(
        "rect",
        element("title", title),
        x=round(x, 2),
        y=round(_HEIGHT - _BOTTOM - height, 2),
        width=round(width * 0.92, 2),
        height=round(height, 2),
        class_=f"bar {class_}",
    )


def _bin_labels(bins: Sequence[str]) -> list[Markup]:
    group = _group_width(bins)
    return [
        element(
            "text",
            name,
            x=round(_LEFT + group * (place + 0.5), 2),
            y=_HEIGHT - _BOTTOM + 16,
            text_anchor="middle",
        )
        for place, name in enumerate(bins)
    ]


def _titles(x_title: str) -> list[Markup]:
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    return [element("text", x_title, x=middle, y=_HEIGHT - 8, text_anchor="middle", class_="title")]
