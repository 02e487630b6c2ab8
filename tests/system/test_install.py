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


def run_pip(*arguments: str | Path, **environment: str) -> None:
    """Run pip on what is here; nothing is fetched."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    environ = os.environ | environment
    done = subprocess.run([*command, *options], env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def installed(given: Path, folder: Path, **environment: str) -> Path:
    """Install sources or a wheel into a new environment, which borrows the other packages that
    ledeline needs -> its programs."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    where = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(where, check=True, capture_output=True, text=True).stdout[:-1])
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    # The one that is borrowed is ignored.
    run_pip("--python", python, "install", "--ignore-installed", given, **environment)
    return folder / "bin"


def generated(programs: Path) -> subprocess.CompletedProcess[str]:
    """A headline by the command; WordNet's lists, which are files, are there too."""
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    scored = [programs / "python", "-c", STEMS]
    assert subprocess.run(scored, capture_output=True, text=True, env=alone).stdout == "1.0\n"
    command = [programs / "ledeline", "generate", LEDE]
    return subprocess.run(command, capture_output=True, text=True, env=alone)


@has_compiler
def test_one_wheel_is_for_all_pythons_and_writes(sources: Path, tmp_path: Path) -> None:
    run_pip("wheel", "--wheel-dir", tmp_path / "wheels", sources)
    (wheel,) = (tmp_path / "wheels").iterdir()
    assert "-cp311-abi3-" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        suffixes = {Path(name).suffix for name in archive.namelist()}
    assert suffixes.isdisjoint({".c", ".h"})
    written = generated(installed(wheel, tmp_path / "environment"))
    assert (written.returncode, written.stdout, written.stderr) == (0, HEADLINE, "")


def test_without_a_compiler_a_sentence_says_what_is_missing(sources: Path, tmp_path: Path) -> None:
    written = generated(installed(sources, tmp_path / "environment", CC="no-such-compiler"))
    assert (written.returncode, written.stdout) == (2, "")
    assert written.stderr.startswith(NO_ENGINE)
    assert written.stderr.count("\n") == 1
