"""Risk against coverage as SVG: a line for each detector, and one for publishers."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from markupsafe import Markup

from ledeline.report.svg import element

Point = tuple[float, float]  # coverage, risk
WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 56, 170, 34, 52
FROM: Final = 0.05  # coverage below is of so few headlines that the line would only jump
LABEL_GAP: Final = 18  # between two lines of the key
_STEPS: Final = (0.01, 0.02, 0.05, 0.1, 0.2)
_MOST_TICKS: Final = 7
# Colours that can be told apart with any sight, in dashes too; the second set is for dark pages.
LIGHT: Final = ("#1d5fae", "#b34700", "#1b7837", "#8b2a8b", "#5a5a00", "#a3142d")
DARK: Final = ("#86b8f2", "#ffa05c", "#78cf92", "#dd9be0", "#d6d267", "#ff8f9d")
DASHES: Final = ("none", "7 3", "2 3", "9 3 2 3", "4 2", "1 2")
_BASE: Final = """
svg { font: 12px system-ui, "Segoe UI", "Noto Sans", "Liberation Sans", Arial, sans-serif; }
.page { fill: #ffffff; } text { fill: #1b1e23; } .title { font-weight: 600; font-size: 14px; }
.grid { stroke: #d5d9df; } .axis { stroke: #6b7482; }
.line { fill: none; stroke-width: 2; } .publisher { stroke: #596270; stroke-width: 1.5; }
"""
_AT_NIGHT: Final = """
.page { fill: #14171b; } text { fill: #e4e6e9; }
.grid { stroke: #343a43; } .axis { stroke: #8b94a1; } .publisher { stroke: #a2aab5; }
"""


def risk_figure(
    curves: Mapping[str, Sequence[Point]], publishers: float | None, target: str = "false"
) -> str:
    """The figure as the text of a file."""
    shown = {name: [one for one in curve if one[0] >= FROM] for name, curve in curves.items()}
    highest = max((risk for curve in shown.values() for _, risk in curve), default=0.0)
    top, step = _scale(max(highest, publishers or 0.0))
    parts = [
        element("style", Markup(_style(len(shown)))),
        element("rect", class_="page", width=WIDTH, height=HEIGHT),
        element(
            "text",
            f"Headlines that are {target}, of those with most support",
            x=LEFT,
            y=20,
            class_="title",
        ),
        *_grid(top, step),
        *_lines(shown, publishers, top),
        *_key(shown, publishers),
    ]
    drawing = element(
        "svg",
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        width=WIDTH,
        height=HEIGHT,
        role="img",
        aria_label=_summary(shown, publishers, target),
    )
    return f"{drawing}\n"


def _style(number: int) -> str:
    """Colours for light and dark pages."""
    rules = [_BASE, *_series(LIGHT, number)]
    rules += ["@media (prefers-color-scheme: dark) {", _AT_NIGHT, *_series(DARK, number), "}"]
    return "\n".join(rules)


def _series(colours: Sequence[str], number: int) -> list[str]:
    found = []
    for place in range(number):
        colour, dash = colours[place % len(colours)], DASHES[place % len(DASHES)]
        found.append(f".line.s{place} {{ stroke: {colour}; stroke-dasharray: {dash}; }}")
        found.append(f"text.s{place} {{ fill: {colour}; }}")
    return found


def _scale(highest: float) -> tuple[float, float]:
    """Where the axis ends, and the distance of its ticks."""
    step = next((one for one in _STEPS if highest / one <= _MOST_TICKS), _STEPS[-1])
    return step * max(1, math.ceil(highest / step - 1e-9)), step


def _x(coverage: float) -> float:
    return round(LEFT + coverage * (WIDTH - LEFT - RIGHT), 1)


def _y(risk: float, top: float) -> float:
    return round(HEIGHT - BOTTOM - risk / top * (HEIGHT - TOP - BOTTOM), 1)


def _grid(top: float, step: float) -> list[Markup]:
    parts = []
    for number in range(round(top / step) + 1):
        y = _y(number * step, top)
        parts += [
            element("line", x1=_x(0), x2=_x(1), y1=y, y2=y, class_="grid" if number else "axis"),
            element("text", f"{100 * number * step:.0f} %", x=LEFT - 8, y=y + 4, text_anchor="end"),
        ]
    for tenth in range(0, 11, 2):
        at = {"x": _x(tenth / 10), "y": HEIGHT - BOTTOM + 18}
        parts.append(element("text", f"{10 * tenth} %", text_anchor="middle", **at))
    title = "coverage: share of headlines that are kept"
    return [*parts, element("text", title, x=_x(0.5), y=HEIGHT - 12, text_anchor="middle")]


def _lines(
    curves: Mapping[str, Sequence[Point]], publishers: float | None, top: float
) -> list[Markup]:
    parts = []
    if publishers is not None:
        y = _y(publishers, top)
        parts.append(element("line", x1=_x(0), x2=_x(1), y1=y, y2=y, class_="publisher"))
    for place, (name, curve) in enumerate(curves.items()):
        points = " ".join(f"{_x(coverage)},{_y(risk, top)}" for coverage, risk in curve)
        line = element("title", name)
        parts.append(element("polyline", line, points=points, class_=f"line s{place}"))
    return parts


def _key(curves: Mapping[str, Sequence[Point]], publishers: float | None) -> list[Markup]:
    """A key at the right: lines end in one point, so that names cannot stand where they end."""
    names = [(f"s{place}", name) for place, name in enumerate(curves)]
    parts, y = [], TOP + 10.0
    for class_, name in names:
        sample = element("line", x1=_x(1) + 14, x2=_x(1) + 38, y1=y, y2=y, class_=f"line {class_}")
        parts += [sample, element("text", name, x=_x(1) + 44, y=y + 4, class_=class_)]
        y += LABEL_GAP
    if publishers is not None:
        sample = element("line", x1=_x(1) + 14, x2=_x(1) + 38, y1=y, y2=y, class_="publisher")
        label = element("text", f"publishers, {100 * publishers:.1f} %", x=_x(1) + 44, y=y + 4)
        parts += [sample, label]
    return parts


def _summary(curves: Mapping[str, Sequence[Point]], publishers: float | None, target: str) -> str:
    """The figure in words, for those who cannot see it."""
    parts = []
    for name, curve in curves.items():
        if curve:
            half = min(curve, key=lambda one: abs(one[0] - 0.5))[1]
            whole = curve[-1][1]
            parts.append(f"{name}: {100 * half:.1f} % at half, {100 * whole:.1f} % of all")
    if publishers is not None:
        parts.append(f"publishers: {100 * publishers:.1f} %")
    return f"Share of {target} headlines against coverage. {'; '.join(parts)}."
