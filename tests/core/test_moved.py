"""Old names of modules work for one version, and say the new one."""

import importlib
import re
import sys
from pathlib import Path

import pytest

from ledeline._moved import MOVED
from ledeline.core.errors import RenamedWarning


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_an_old_name_gives_the_module_and_warns(
    old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, f"ledeline.{old}", raising=False)
    with pytest.warns(RenamedWarning, match=rf"ledeline\.{old} is called ledeline\.{new} now"):
        found = importlib.import_module(f"ledeline.{old}")
    assert found is importlib.import_module(f"ledeline.{new}")


def test_the_changelog_names_modules_that_exist() -> None:
    root = Path(__file__).parents[2]
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    table = text[text.index("Renamed modules of") : text.index("Renamed in Python.")]
    named = re.findall(r"→\s+`([^`]+)`", table)
    assert len(named) > 100
    for name in (one for names in named for one in re.split(r",\s*", names)):
        path = root / "src/ledeline" / name.strip().replace(".", "/")
        assert path.is_dir() or path.with_suffix(".py").exists(), name


def test_other_names_are_not_there() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("ledeline.nonsense")


def test_names_of_a_module_that_became_a_package() -> None:
    from ledeline.text import profiles

    with pytest.warns(RenamedWarning, match=r"is called ledeline\.text\.profiles\.clean now"):
        from ledeline.text import clean
    assert clean is profiles.clean
    with pytest.raises(ImportError):
        from ledeline.text import nonsense  # type: ignore[attr-defined] # noqa: F401
