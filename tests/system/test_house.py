"""The habits of the house that a machine can keep."""

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ledeline
from pages import ROOT, blocks, run

SOURCE = ROOT / "src" / "ledeline"
MODULES = sorted(SOURCE.rglob("*.py"))

# Imports point one way: a room may import from itself and from the rooms above it in this list.
ROOMS = (
    "core",
    "config",
    "text",
    "rouge",
    "corpus",
    "synth",
    "data",
    "model",
    "runtime",
    "search",
    "inference",
    "evaluation",
    "train",
    "report",
    "server",
    "cli",
)


def imported(path: Path) -> set[str]:
    """The rooms that a file imports from, also within functions."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("ledeline"):
            names = [alias.name for alias in node.names]
            rooms |= set(names) if node.module == "ledeline" else {node.module.split(".")[1]}
        elif isinstance(node, ast.Import):
            rooms |= {a.name.split(".")[1] for a in node.names if a.name.startswith("ledeline.")}
    return rooms


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_one_way(path: Path) -> None:
    room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if room in ("__init__", "__main__", "_moved"):
        return
    for other in imported(path) - {"__version__"}:
        assert ROOMS.index(other) <= ROOMS.index(room), f"{room} must not import {other}"


def test_every_package_is_a_room() -> None:
    found = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert found == set(ROOMS)


def test_no_two_modules_share_a_name() -> None:
    """But for the verbs of the command and their views, and the fused twins of plain layers."""
    twins = {"decoder", "encoder", "top_k"}
    names = [
        path.stem
        for path in MODULES
        if path.relative_to(SOURCE).parts[0] != "cli" and path.stem not in {"__init__", *twins}
    ]
    assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)


def test_no_two_classes_share_a_name() -> None:
    names = [
        node.name
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)


def test_tests_lie_in_the_rooms_that_they_test() -> None:
    folders = {
        path.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").rglob("test_*.py")
    }
    assert folders <= {*ROOMS, "system"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_stay_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400


def test_only_the_command_prints() -> None:
    for path in MODULES:
        calls = [
            node
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        ]
        printing = [call for call in calls if call.func.id == "print"]  # type: ignore[attr-defined]
        assert not printing or path.parts[-2] == "cli", path


def test_all_names_the_exports() -> None:
    for name in ledeline.__all__:
        assert hasattr(ledeline, name)
    public = {
        name
        for name, value in vars(ledeline).items()
        if not name.startswith("_") and not isinstance(value, type(importlib))
    }
    assert public <= set(ledeline.__all__)


def test_every_key_is_documented() -> None:
    spec = importlib.util.spec_from_file_location("config_page", ROOT / "docs" / "config_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text() == module.config_page(), "run make docs"


class TestReadme:
    README = (ROOT / "README.md").read_text()

    def test_it_opens_with_the_two_commands(self) -> None:
        first = re.search(r"```\n(.*?)```", self.README, re.S)
        assert first is not None
        assert re.findall(r"^make (\w+)", first[1], re.M) == ["demo", "test"]

    def test_the_make_goals_it_names_exist(self) -> None:
        makefile = (ROOT / "Makefile").read_text()
        for goal in re.findall(r"\bmake (\w+)\b", self.README):
            assert re.search(rf"^{goal}:", makefile, re.M), goal

    def test_its_commands_work(self, tmp_path: Path) -> None:
        use = self.README.split("## Use")[1].split("## Read on")[0]
        languages = ["", "text", "python", "text", "console", "", "toml", "", "toml", "", "", ""]
        assert [block.language for block in blocks(use)] == languages
        run(blocks(use), tmp_path, ["pairs.toml", "train.toml"])


PAGES = [ROOT / "README.md", ROOT / "bench" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


class TestPages:
    """What the documentation points to exists."""

    @pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
    def test_links_lead_somewhere(self, page: Path) -> None:
        for target, anchor in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", page.read_text()):
            if "://" not in target:
                other = page.parent / target if target else page
                assert other.exists(), target
                assert not anchor or anchor in anchors(other), f"{target}#{anchor}"

    @pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
    def test_a_linked_file_has_the_name_and_the_code_that_the_page_says(self, page: Path) -> None:
        link = r"\[`([\w./]+\.py)`\]\(([^)]+)\)((?:,? (?:and )?`[\w.]+`)*)"
        for name, target, code in re.findall(link, page.read_text()):
            assert target.endswith(name)
            source = (page.parent / target).read_text()
            for word in re.findall(r"`(?:\w+\.)?(\w+)`", code):
                assert re.search(rf"\b(def|class|self\.) ?{word}\b", source), f"{target}: {word}"


def anchors(page: Path) -> list[str]:
    """The headings of a page, as links name them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return [re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings]


def test_python_in_the_guide_of_evaluation_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "evaluation.md").read_text(), re.S)
    assert len(blocks) == 2
    for block in blocks:
        subprocess.run([sys.executable, "-c", block], check=True, capture_output=True)


def test_versions_are_pinned_exactly() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert "torch==2.13.0" in pins
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins)
