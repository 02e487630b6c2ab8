"""The figure of odd generation: what is on it."""

from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'ledeline[plot]'")

from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from ledeline.evaluation.audit import Audit
from ledeline.evaluation.figures import save
from ledeline.evaluation.histogram import odd_figure
from ledeline.evaluation.odd_words import OddWords


def repeating(*numbers: int, irrelevant: int | None = 0) -> Audit:
    return Audit(tuple(OddWords(number, 0, irrelevant) for number in numbers))


def heights(panel: Axes) -> list[list[float]]:
    """The bars of each system."""
    return [[patch.get_height() for patch in bars] for bars in panel.containers]


def ticks(panel: Axes) -> list[str]:
    return [label.get_text() for label in panel.get_xticklabels()]


def test_a_panel_for_each_kind() -> None:
    panels = odd_figure({"a": repeating(1), "b": repeating(2)}).axes
    assert [panel.get_xlabel().split()[0] for panel in panels] == [
        "repeating",
        "lacking",
        "irrelevant",
    ]
    assert all("0 are left out" in panel.get_xlabel() for panel in panels)
    unknown = odd_figure({"a": repeating(1), "b": repeating(2, irrelevant=None)}).axes
    assert [panel.get_xlabel().split()[0] for panel in unknown] == ["repeating", "lacking"]


def test_bars_are_headlines_with_1_or_more() -> None:
    panel = odd_figure({"a": repeating(0, 0, 0, 1, 1, 3), "b": repeating(0, 7)}).axes[0]
    assert heights(panel) == [[2, 0, 1], [0, 0, 0, 0, 0, 0, 1]]
    assert ticks(panel) == list("1234567")


@pytest.mark.parametrize(
    ("largest", "last"), [(1, "5"), (5, "5"), (9, "9"), (10, "10"), (11, "10+"), (25, "10+")]
)
def test_the_last_bar(largest: int, last: str) -> None:
    panel = odd_figure({"a": repeating(2, largest, largest)}).axes[0]
    assert ticks(panel)[-1] == last
    assert heights(panel)[0][min(largest, 10) - 1] == 2
    assert sum(heights(panel)[0]) == 3


def test_ten_and_all_above_share_the_last_bar() -> None:
    panel = odd_figure({"a": repeating(9, 10, 10, 11, 30)}).axes[0]
    assert heights(panel)[0][8:] == [1, 4]


def test_bars_stand_side_by_side_about_their_number() -> None:
    systems = {str(number): repeating(1, 2) for number in range(7)}
    bars = [container.patches for container in odd_figure(systems).axes[0].containers]
    first = [edge for one in bars for edge in edges(one[0])]
    assert first == sorted(first)
    assert (first[0] + first[-1]) / 2 == pytest.approx(1)
    assert first[-1] < edges(bars[0][1])[0]


def edges(bar: Rectangle) -> tuple[float, float]:
    return bar.get_x(), bar.get_x() + bar.get_width()


def test_the_legend_names_every_system_in_its_colour(tmp_path: Path) -> None:
    names = ["_a", "$b", "c$", "…", "e" * 30, "f", "g", "h", "x/" * 60 + "end"]
    figure = odd_figure({name: repeating(1) for name in names})
    shown = [text.get_text() for text in figure.legends[0].get_texts()]
    assert shown[:-1] == names[:-1]
    assert shown[-1].startswith("…")
    assert shown[-1].endswith("x/end")
    looks = [look(container.patches[0]) for container in figure.axes[0].containers]
    assert len(set(looks)) == len(names)
    assert [look(mark) for mark in figure.legends[0].get_patches()] == looks
    save(figure, tmp_path / "a.png")


def look(bar: Rectangle) -> tuple[str, str | None]:
    return to_hex(bar.get_facecolor()), bar.get_hatch()


def test_thousands_have_commas() -> None:
    figure = odd_figure({"a": repeating(*[1] * 2500)})
    panel = figure.axes[0]
    assert panel.yaxis.get_major_formatter()(2000) == "2,000"


@pytest.mark.parametrize("audit", [Audit(()), repeating(0, 0), repeating(0, 1)])
def test_few_headlines_have_whole_numbers_on_the_axis(audit: Audit, tmp_path: Path) -> None:
    figure = odd_figure({"a": audit})
    save(figure, tmp_path / "a.svg")
    for panel in figure.axes:
        assert [tick for tick in panel.get_yticks() if tick <= panel.get_ylim()[1]] == [0, 1]
        assert ticks(panel) == list("12345")
