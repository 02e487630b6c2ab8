"""Figures as files: the same bytes each time, whole or not at all."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ledeline.core.errors import LedelineError
from ledeline.evaluation.figures import new_figure, picture_format, save

needs_matplotlib = pytest.mark.skipif(
    find_spec("matplotlib") is None, reason="needs matplotlib: pip install 'ledeline[plot]'"
)


def draw(path: Path) -> bytes:
    figure = new_figure(3, 2)
    panel = figure.add_subplot()
    bars = panel.bar([1, 2], [3, 4])
    panel.set_title("漢 $ 5 to $ 6")  # a letter that the font has not
    panel.set_xticks([1, 2], ["$_$", "$^$"])  # no formulas, which these would be bad ones of
    figure.legend([bars], ["$\\frac$"])
    save(figure, path)
    return path.read_bytes()


@needs_matplotlib
@pytest.mark.parametrize("name", ["a.png", "a.svg", "A.PNG", "A.SVG"])
def test_the_same_figure_is_the_same_bytes(tmp_path: Path, name: str) -> None:
    data = draw(tmp_path / "first" / name)
    assert data == draw(tmp_path / name)
    assert data.startswith(b"\x89PNG" if name.lower().endswith("png") else b"<?xml")
    for word in (b"dc:date", b"dc:creator", b"Software", b"Matplotlib"):
        assert word not in data
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [name]


@needs_matplotlib
def test_labels_that_are_made_when_the_figure_is_drawn_are_no_formulas_either(
    tmp_path: Path,
) -> None:
    figure = new_figure(3, 2)
    panel = figure.add_subplot()
    draw_figure = figure.draw

    def draw_late(renderer: Any) -> None:
        panel.text(0.5, 0.5, "$_$")
        draw_figure(renderer)

    figure.draw = draw_late  # type: ignore[method-assign]
    save(figure, tmp_path / "a.png")
    assert {text.get_text() for text in panel.texts} == {"$_$"}


@needs_matplotlib
def test_the_size_is_in_inches(tmp_path: Path) -> None:
    width, height = draw(tmp_path / "a.png")[16:20], draw(tmp_path / "a.png")[20:24]
    assert [int.from_bytes(width), int.from_bytes(height)] == [450, 300]


@pytest.mark.parametrize(("name", "suffix"), [("a.pdf", "'.pdf'"), ("a", "''"), ("png", "''")])
def test_other_formats_are_refused(tmp_path: Path, name: str, suffix: str) -> None:
    with pytest.raises(LedelineError, match=rf"{name}: .*\.png or \.svg.*{suffix}"):
        picture_format(tmp_path / name)


@needs_matplotlib
def test_a_file_of_another_format_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(LedelineError, match=r"'\.jpg'"):
        save(new_figure(3, 2), tmp_path / "a.jpg")
    assert not list(tmp_path.iterdir())


@needs_matplotlib
def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_text("before")
    figure = new_figure(3, 2)
    figure.draw = fail  # type: ignore[method-assign]
    with pytest.raises(RuntimeError):
        save(figure, path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def fail(renderer: object) -> None:
    raise RuntimeError


@needs_matplotlib
def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LedelineError, match="cannot be written"):
        save(new_figure(3, 2), tmp_path / "file" / "a.png")


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(LedelineError, match=r"pip install 'ledeline\[plot\]'"):
        new_figure(3, 2)
