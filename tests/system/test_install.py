"""`pip install .` into a new environment, with a C compiler and without one, gives the command."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from pages import ROOT

pytestmark = pytest.mark.slow

LEDE = "Rain fell in Oslo on Monday."
HEADLINE = "Rain falls in Oslo\n"
STEMS = "from ledeline import rouge; print(rouge.score('two oxen', 'two ox').rouge_l.f1)"
NO_ENGINE = "ledeline: ledeline was installed without its engine ("
has_compiler = pytest.mark.skipif(
    not (shutil.which("cc") or shutil.which("gcc")), reason="there is no C compiler"
)


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """What a release has, since pip leaves what it builds beside the sources."""
    folder = tmp_path / "sources"
    folder.mkdir()
    for name in ("pyproject.toml", "README.md", "MANIFEST.in"):
        shutil.copy(ROOT / name, folder)
    left_out = shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", folder / "src", ignore=left_out)
    return folder


def installed(sources: Path, folder: Path, **environment: str) -> Path:
    """Install into a new environment that borrows the packages ledeline needs -> its programs."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    where = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(where, check=True, capture_output=True, text=True).stdout[:-1])
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    command = [*pip, "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    ignored = ["--ignore-installed", sources]  # the one that is borrowed, too
    done = subprocess.run(
        [*command, *ignored], env=os.environ | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "bin"


@pytest.mark.parametrize(
    ("environment", "built"),
    [
        pytest.param({}, True, marks=has_compiler, id="with a compiler"),
        pytest.param({"CC": "no-such-compiler"}, False, id="without one"),
    ],
)
def test_a_headline_from_a_new_environment(
    sources: Path, tmp_path: Path, environment: dict[str, str], built: bool
) -> None:
    programs = installed(sources, tmp_path / "environment", **environment)
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    written = subprocess.run(
        [programs / "ledeline", "generate", LEDE], capture_output=True, text=True, env=alone
    )
    if built:
        assert (written.returncode, written.stdout, written.stderr) == (0, HEADLINE, "")
    else:
        assert (written.returncode, written.stdout) == (2, "")
        assert written.stderr.startswith(NO_ENGINE)
        assert written.stderr.count("\n") == 1
    scored = [programs / "python", "-c", STEMS]  # with WordNet's lists, which are files
    assert subprocess.run(scored, capture_output=True, text=True, env=alone).stdout == "1.0\n"


@has_compiler
def test_one_wheel_is_for_all_pythons(sources: Path, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
    options = [
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--wheel-dir",
        tmp_path / "wheels",
    ]
    subprocess.run([*pip, *options, sources], check=True)
    (wheel,) = (tmp_path / "wheels").iterdir()
    assert "-cp311-abi3-" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        suffixes = {Path(name).suffix for name in archive.namelist()}
    assert suffixes.isdisjoint({".c", ".h"})
