"""Heat maps as SVG, with colours from the style sheet: a column per source word, a row per step."""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from ledeline.inference.headline import Matrix
from ledeline.report.svg import element

_CELL: Final = 15
_LETTER: Final = 6.3  # the width of a letter, about
_PADDING: Final = 6
_LONGEST: Final = 24  # letters of a label
LEAST: Final = 0.005  # smaller values are not drawn


@dataclass(frozen=True)
class HeatMapView:
    """One heat map: how much each step of the headline has of each source word."""

    source: tuple[str, ...]
    rows: tuple[str, ...]
    values: Matrix


def heat_map_svg(heat: HeatMapView, summary: str, left: int) -> Markup:
    """Draw a heat map with so much room for the labels of rows; a cell has its value as title."""
    top = _room(heat.source)
    width, height = left + _CELL * len(heat.source) + 2, top + _CELL * len(heat.rows) + 2
    return element(
        "svg",
        _frame(left, top, len(heat.rows), len(heat.source)),
        *(_row_label(label, left, top, j) for j, label in enumerate(heat.rows)),
        *(_column_label(label, left, top, i) for i, label in enumerate(heat.source)),
        *_cells(heat, left, top),
        class_="heat",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
        aria_label=summary,
    )


def room_for_rows(maps: Iterable[HeatMapView]) -> int:
    """The room for the labels of rows, such that the columns of several maps are in line."""
    return max(_room(one.rows) for one in maps)


def _shortened(label: str) -> str:
    return label if len(label) <= _LONGEST else f"{label[: _LONGEST - 1]}…"


def _room(labels: Sequence[str]) -> int:
    """The room that the longest label needs."""
    longest = max((sum(map(_num_letters, _shortened(label))) for label in labels), default=0)
    return round(longest * _LETTER) + 2 * _PADDING


def _num_letters(letter: str) -> int:
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _frame(left: int, top: int, num_rows: int, num_columns: int) -> Markup:
    """Thin lines around and between all cells."""
    width, height = _CELL * num_columns, _CELL * num_rows
    lines = [f"M{left} {top + _CELL * j}h{width}" for j in range(num_rows + 1)]
    lines += [f"M{left + _CELL * i} {top}v{height}" for i in range(num_columns + 1)]
    return element("path", d="".join(lines), class_="lattice")


def _row_label(label: str, left: int, top: int, j: int) -> Markup:
    y = top + _CELL * j + _CELL * 0.72
    return _label(label, x=left - _PADDING, y=round(y, 2), text_anchor="end")


def _column_label(label: str, left: int, top: int, i: int) -> Markup:
    x, y = left + _CELL * i + _CELL * 0.72, top - _PADDING
    return _label(label, transform=f"translate({round(x, 2)} {y}) rotate(-90)")


def _label(label: str, **attributes: str | float) -> Markup:
    """A label; if it is shortened, all of it is its title."""
    short = _shortened(label)
    title = [element("title", label)] if short != label else []
    return element("text", *title, short, **attributes)


def _cells(heat: HeatMapView, left: int, top: int) -> list[Markup]:
    return [
        element(
            "rect",
            element("title", f"{row} ← {source}: {value:.2f}"),
            x=left + _CELL * i,
            y=top + _CELL * j,
            width=_CELL,
            height=_CELL,
            fill_opacity=round(min(value, 1.0), 3),
        )
        for j, (row, values) in enumerate(zip(heat.rows, heat.values, strict=True))
        for i, (source, value) in enumerate(zip(heat.source, values, strict=True))
        if value >= LEAST
    ]
