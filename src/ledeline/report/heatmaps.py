"""Heat maps as SVG that takes its colours from the page: a column a source word, a row a step."""

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

from ledeline.report.alignments import HeatMap
from ledeline.report.markup import Html, element

_CELL: Final = 15
_LETTER: Final = 6.3  # the width of a letter, about
_PADDING: Final = 6
_LONGEST: Final = 24  # letters of a label
LEAST: Final = 0.005  # what is below is not drawn


def heat_map(heat: HeatMap, summary: str, left: int) -> Html:
    """Draw one with so much room for the labels of rows; values show when a pointer rests."""
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


def room_for_rows(maps: Iterable[HeatMap]) -> int:
    """How much the labels of rows need, so that the columns of several maps stand in line."""
    return max(_room(one.rows) for one in maps)


def _shortened(label: str) -> str:
    return label if len(label) <= _LONGEST else f"{label[: _LONGEST - 1]}…"


def _room(labels: Sequence[str]) -> int:
    """How much the longest label takes."""
    longest = max((sum(map(_num_letters, _shortened(label))) for label in labels), default=0)
    return round(longest * _LETTER) + 2 * _PADDING


def _num_letters(letter: str) -> int:
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _frame(left: int, top: int, num_rows: int, num_columns: int) -> Html:
    """The field of all cells, with thin lines between them."""
    width, height = _CELL * num_columns, _CELL * num_rows
    lines = [f"M{left} {top + _CELL * j}h{width}" for j in range(num_rows + 1)]
    lines += [f"M{left + _CELL * i} {top}v{height}" for i in range(num_columns + 1)]
    return element("path", d="".join(lines), class_="lattice")


def _row_label(label: str, left: int, top: int, j: int) -> Html:
    y = top + _CELL * j + _CELL * 0.72
    return _label(label, x=left - _PADDING, y=round(y, 2), text_anchor="end")


def _column_label(label: str, left: int, top: int, i: int) -> Html:
    x, y = left + _CELL * i + _CELL * 0.72, top - _PADDING
    return _label(label, transform=f"translate({round(x, 2)} {y}) rotate(-90)")


def _label(label: str, **attributes: str | float) -> Html:
    """A label; where it is shortened, all of it shows when a pointer rests on it."""
    short = _shortened(label)
    title = [element("title", label)] if short != label else []
    return element("text", *title, short, **attributes)


def _cells(heat: HeatMap, left: int, top: int) -> list[Html]:
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
