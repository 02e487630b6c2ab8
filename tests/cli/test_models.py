"""The verbs `package` and `models`, and a package from its making to a headline."""

import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from command import ledeline
from installed_package import install
from ledeline import __version__
from ledeline.cli import app
from ledeline.core.shipped import SHIPPED
from ledeline.model.format.model_summary import summarize_model

NAMED = ["--name", "trial-desk", "--version", "0.2.0"]
LEDE = "Rain fell in Oslo on Monday."

has_setuptools = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("pip", "setuptools"))),
    reason="pip or setuptools is not installed",
)


# --- package --------------------------------------------------------------------------------------


def test_package_prints_what_it_made(model_folder: Path, tmp_path: Path) -> None:
    shown = ledeline(
        "package", model_folder, *NAMED, "--output", "new/a b", "--weights", "int8", cwd=tmp_path
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    model = summarize_model(tmp_path / "new" / "a b" / "src" / "ledeline_trial_desk" / "model")
    assert shown.stdout == (
        f"new/a b: ledeline-trial-desk 0.2.0, EncDec+sGate+SPM, {model.num_parameters:,} "
        f"parameters in int8, {model.num_bytes:,} bytes\n"
        "install it: pip install './new/a b'\n"
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"MODEL": "nothing"},
            "nothing is not a model folder: it does not exist, and no installed",
        ),
        ({"--name": "trial_desk"}, "'trial_desk' cannot be the name of a model"),
        ({"--name": "shipped"}, "shipped is the name of the model that comes with ledeline"),
        ({"--version": "v1"}, "'v1' cannot be the version of a package"),
        ({"--output": "."}, "already exists; name another folder"),
        ({"--card": "none.md"}, "none.md: the card cannot be read"),
    ],
)
def test_what_the_user_can_cause_is_one_sentence(
    model_folder: Path, tmp_path: Path, changes: dict[str, str], sentence: str
) -> None:
    given = {"MODEL": str(model_folder), "--name": "a", "--version": "1", "--output": "new"}
    model, *options = [*(given | changes).items()]
    words = [word for option in options for word in option]
    shown = ledeline("package", model[1], *words, cwd=tmp_path)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert sentence in shown.stderr
    assert shown.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


# --- models ---------------------------------------------------------------------------------------


def find(models: list[Any], key: Any, name: str) -> Any:
    """The model with this name; others may be installed, too."""
    (found,) = (one for one in models if one[key].split()[0] == name)
    return found


class TestModels:
    @pytest.fixture(autouse=True)
    def site(self, model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Where two packages are installed, of which one is damaged."""
        install(tmp_path, "bad", distribution="bad", value="bad")
        (install(tmp_path, model=model_folder) / "card.md").write_text("# For [red]news[/]\n")
        monkeypatch.syspath_prepend(tmp_path)
        return tmp_path

    def test_a_few_lines_for_each(self, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "40")
        shown = CliRunner().invoke(app, ["models"])
        assert shown.exit_code == 0
        parts = [part.splitlines() for part in shown.stdout.split("\n\n")]
        box, bad, large = (find(parts, 0, name) for name in ("shipped", "bad", "trial-desk"))
        assert box == parts[0]
        size = sum(path.stat().st_size for path in SHIPPED.iterdir())
        assert 39e6 < size < 40e6
        assert box == [
            f"shipped {__version__}",
            f"  Transformer, 39,027,956 parameters, {size / 1e6:.1f} MB in int8, profile natural",
            "  The model in the box",
            f"  {SHIPPED}",
        ]
        assert bad[0] == "bad 0.2.0"
        assert bad[1].endswith(f"{site}/bad/model has no model.json; install bad again")
        assert large[0] == "trial-desk 0.2.0"
        assert large[2:] == ["  For [red]news[/]", f"  {site}/ledeline_trial_desk/model"]

    def test_as_json(self, site: Path) -> None:
        shown = CliRunner().invoke(app, ["models", "--json"])
        found = json.loads(shown.stdout)["models"]
        box, bad, large = (find(found, "name", name) for name in ("shipped", "bad", "trial-desk"))
        assert (box["name"], box["parameters"], box["folder"]) == (
            "shipped",
            39_027_956,
            str(SHIPPED),
        )
        assert sorted(bad) == ["error", "folder", "name", "package", "version"]
        model = summarize_model(site / "ledeline_trial_desk" / "model")
        assert large == {
            "name": "trial-desk",
            "version": "0.2.0",
            "package": "ledeline-trial-desk",
            "folder": str(site / "ledeline_trial_desk" / "model"),
            "system": "EncDec+sGate+SPM",
            "parameters": model.num_parameters,
            "bytes": model.num_bytes,
            "weights": "float32",
            "profile": "natural",
            "description": "For [red]news[/]",
        }


# --- from a model to an installed one -------------------------------------------------------------


def run(*words: str | Path, cwd: Path, site: Path | None = None) -> str:
    environment = os.environ | ({} if site is None else {"PYTHONPATH": str(site)})
    command = [sys.executable, "-m", *map(str, words)]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@has_setuptools
def test_a_package_is_built_and_installed_and_writes(model_folder: Path, tmp_path: Path) -> None:
    words = [model_folder, *NAMED, "--output", "project", "--licence", "CC BY 4.0"]
    assert ledeline("package", *words, cwd=tmp_path).returncode == 0
    offline = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    built = ["--no-build-isolation", "--no-cache-dir", "--wheel-dir", "wheels", "./project"]
    run("pip", "wheel", *offline, *built, cwd=tmp_path)
    (wheel,) = (tmp_path / "wheels").iterdir()
    assert wheel.name == "ledeline_trial_desk-0.2.0-py3-none-any.whl"
    names = zipfile.ZipFile(wheel).namelist()
    assert "ledeline_trial_desk/model/model.safetensors" in names
    run("pip", "install", *offline, "--target", "site", wheel, cwd=tmp_path)

    site, work = tmp_path / "site", tmp_path / "work"
    work.mkdir()
    listed = json.loads(run("ledeline", "models", "--json", cwd=work, site=site))["models"]
    found = {one["name"]: one for one in listed}["trial-desk"]
    folder = site / "ledeline_trial_desk" / "model"
    assert (found["version"], found["folder"]) == ("0.2.0", str(folder))
    options = ["--precision", "float32", "--beam", "2", LEDE]
    written = run("ledeline", "generate", "--model", "trial-desk", *options, cwd=work, site=site)
    assert written == ledeline("generate", "--model", model_folder, *options).stdout != ""
