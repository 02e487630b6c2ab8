"""The colours of the page can be read, in both themes, and told apart."""

import math
import re
from importlib import resources
from itertools import combinations

import pytest

from ledeline.report.bar_chart_svg import NUM_COLOURS

PACKAGE = resources.files("ledeline")
CSS = "".join(
    (PACKAGE / name).read_text("utf-8") for name in ("report/base.css", "report/page.css")
)
Colour = tuple[float, float, float]

# How colours look without one kind of cone (Machado, Oliveira, Fernandes 2009, severity 1).
EYES = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}


def theme(name: str) -> dict[str, Colour]:
    light, dark, light_series, dark_series = re.findall(r":root \{([^}]*--[^}]*)\}", CSS)
    block = {"light": light + light_series, "dark": dark + dark_series}[name]
    found = dict(re.findall(r"--([\w-]+): #([0-9a-f]{6});", block))
    return {key: linear(value) for key, value in found.items()}


def linear(code: str) -> Colour:
    """As WCAG 2 defines it."""
    parts = [int(code[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return red, green, blue


def contrast(first: Colour, second: Colour) -> float:
    light = [0.2126 * red + 0.7152 * green + 0.0722 * blue for red, green, blue in (first, second)]
    return (max(light) + 0.05) / (min(light) + 0.05)


def lab(colour: Colour, eye: str) -> Colour:
    """What an eye sees, in CIE Lab, where distances are about what people notice."""
    red, green, blue = (
        sum(weight * part for weight, part in zip(row, colour, strict=True)) for row in EYES[eye]
    )
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883
    x, y, z = (one ** (1 / 3) if one > 0.008856 else 7.787 * one + 16 / 116 for one in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("name", ["light", "dark"])
class TestTheme:
    def test_text_is_legible(self, name: str) -> None:
        colours = theme(name)
        for text in ("text", "muted"):
            for ground in ("page", "band"):
                assert contrast(colours[text], colours[ground]) >= 4.5
        assert contrast(colours["link"], colours["page"]) >= 4.5
        assert contrast(colours["text"], colours["odd"]) >= 4.5

    def test_marks_are_seen(self, name: str) -> None:
        colours = theme(name)
        series = [f"series-{number}" for number in range(NUM_COLOURS)]
        for mark in ("heat", "rule", *series):
            assert contrast(colours[mark], colours["page"]) >= 3
        for ground in ("band", "odd"):
            assert contrast(colours["odd-edge"], colours[ground]) >= 3

    @pytest.mark.parametrize("eye", EYES)
    def test_series_are_told_apart(self, name: str, eye: str) -> None:
        colours = theme(name)
        seen = [lab(colours[f"series-{number}"], eye) for number in range(NUM_COLOURS)]
        assert min(math.dist(*pair) for pair in combinations(seen, 2)) >= 18
        assert min(math.dist(*pair) for pair in combinations(seen[:4], 2)) >= 22


def test_both_themes_name_the_same_colours() -> None:
    assert theme("light").keys() == theme("dark").keys()


def test_each_variable_is_there_and_used() -> None:
    used = set(re.findall(r"var\(--([\w-]+)\)", CSS)) - {"series"}
    assert used == set(theme("light"))


def test_it_loads_nothing() -> None:
    assert "url(" not in CSS
    assert "@import" not in CSS
    assert "@font-face" not in CSS
    assert "<" not in CSS  # it stands in an element
