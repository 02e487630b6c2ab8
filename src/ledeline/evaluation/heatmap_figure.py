"""A heat map drawn: attention and SPM, with source tokens across and the tokens of steps down."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from ledeline.evaluation.alignment_json import HeatMap
from ledeline.evaluation.figures import new_figure
from ledeline.inference.headline import Matrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

_COLOURS: Final = "Blues"
_LINES: Final = "0.88"  # grey between the cells
_MOST_BESIDE: Final = 16  # source tokens, up to which two maps are side by side
_SHORT: Final = 8  # source tokens, up to which a map is too narrow for a long title
_LONGEST_NAME: Final = 32  # letters of a token, or of a row, that are shown
_POINTS: Final = 72  # of a font, in an inch
_LETTER: Final = 0.6  # width of a letter, about, in font sizes

# Inches.
_CELL, _LARGEST_CELL, _WIDEST_MAP = 0.2, 0.36, 40.0
_SMALL_MAP: Final = 3.0  # that larger cells should fill
_ROOM: Final = 0.5  # around a map: title, ticks
_BAR, _BAR_HEIGHT = 0.8, 2.5  # the colour bar


class _Map(NamedTuple):
    title: str
    names: tuple[str, ...]  # of the rows
    rows: Matrix


class _Sheet(NamedTuple):
    """The sizes of a figure, such that all names can be read."""

    width: float
    height: float
    font: float  # points
    beside: bool  # or one below the other

    @classmethod
    def of(cls, maps: Sequence[_Map], source: Sequence[str]) -> Self:
        longest = max(len(source), *(len(one.names) for one in maps))
        cell = min(max(_CELL, min(_LARGEST_CELL, _SMALL_MAP / longest)), _WIDEST_MAP / longest)
        font = min(10.0, 0.62 * cell * _POINTS)
        letter = _LETTER * font / _POINTS
        widths = [cell * len(source) + letter * _widest(one.names) + _ROOM for one in maps]
        heights = [cell * len(one.names) + letter * _widest(source) + _ROOM for one in maps]
        if len(source) <= _MOST_BESIDE:
            return cls(sum(widths) + _BAR, max(heights) + _ROOM, font, True)
        return cls(max(widths) + _BAR, sum(heights), font, False)


def _widest(names: Iterable[str]) -> int:
    return max(map(len, names))


def heat_map_figure(heat_map: HeatMap) -> "Figure":
    """Draw attention and, where there is one, the SPM; the longer the pair, the larger."""
    source = _cut(heat_map.source)
    maps = [_Map("Attention", _cut(heat_map.attention_rows), heat_map.attention)]
    if heat_map.spm is not None and heat_map.spm_rows is not None:
        title = "Source-side prediction (SPM)" if len(source) > _SHORT else "SPM"
        maps.append(_Map(title, _cut(heat_map.spm_rows), heat_map.spm))
    sheet = _Sheet.of(maps, source)
    figure = new_figure(sheet.width, sheet.height)
    axes = _axes(figure, maps, sheet.beside)
    for one, on in zip(maps, axes, strict=True):
        mesh = _draw(one, source, on, sheet.font)
        if len(one.names) > len(heat_map.attention_rows):
            on.axhline(len(heat_map.attention_rows), color="0.4", linewidth=0.8)  # <pad> below
    shrink = min(1.0, _BAR_HEIGHT / sheet.height)
    bar = figure.colorbar(mesh, ax=axes, shrink=shrink, anchor=(0.0, 1.0), panchor=False, aspect=14)
    bar.ax.tick_params(labelsize=sheet.font)
    return figure


def _cut(names: Iterable[str]) -> tuple[str, ...]:
    """Names short enough to leave room for the map."""
    return tuple(
        name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…" for name in names
    )


def _axes(figure: "Figure", maps: Sequence[_Map], beside: bool) -> "list[Axes]":
    if beside:
        axes = figure.subplots(1, len(maps), squeeze=False)
        for on in axes.flat:
            on.set_aspect("equal", anchor="N")
    else:
        heights = [len(one.names) for one in maps]
        axes = figure.subplots(len(maps), 1, squeeze=False, height_ratios=heights)
    return list(axes.flat)


def _draw(one: _Map, source: Sequence[str], on: "Axes", font: float) -> "QuadMesh":
    mesh = on.pcolormesh(
        one.rows,
        cmap=_COLOURS,
        vmin=0,
        vmax=1,
        edgecolors=_LINES,
        linewidth=0.4,
        rasterized=True,  # in an SVG too, where thousands of cells would be a megabyte
    )
    on.invert_yaxis()
    on.set_title(one.title, fontsize=font + 2, loc="left")
    on.set_xticks(_centres(source), source, rotation=90, parse_math=False)
    on.set_yticks(_centres(one.names), one.names, parse_math=False)
    on.tick_params(length=0, labelsize=font)
    return mesh


def _centres(names: Sequence[str]) -> list[float]:
    return [place + 0.5 for place in range(len(names))]
