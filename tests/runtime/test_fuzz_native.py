"""The engine without Python under sanitizers, for some seconds; bench/sanitize.py does more."""

import sys
from pathlib import Path

import pytest

from pages import ROOT

pytest.importorskip("ledeline.runtime._runtime")
sys.path.append(str(ROOT / "bench"))
import golden
import native_driver
import sanitize

pytestmark = pytest.mark.skipif(sanitize.missing() is not None, reason=sanitize.missing() or "")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return sanitize.programs(tmp_path_factory.mktemp("sanitizers"))


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    return golden.write_dump(tmp_path / "dump", golden.encoded(["Rain", "Shares fell."]))


def test_hostile_models_and_questions(programs: dict[str, Path]) -> None:
    result = sanitize.run_fuzzer(programs["fuzz"], 300, seed=1)
    assert not result.findings, result.said
    assert "headlines written" in result.said


@pytest.mark.parametrize(("sanitizer", "threads"), [("address", 1), ("thread", 3)])
def test_all_options_of_the_search(
    programs: dict[str, Path], dump: Path, sanitizer: str, threads: int
) -> None:
    result = sanitize.run_options(sanitizer, programs[sanitizer], dump, threads)
    assert result.runs == len(sanitize.OPTIONS)
    assert not result.findings, result.said


def test_damaged_dumps_are_refused_or_run(
    programs: dict[str, Path], dump: Path, tmp_path: Path
) -> None:
    result = sanitize.run_damaged(programs["address"], dump, tmp_path)
    assert not result.findings, result.said


def test_an_error_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "wrong.c").write_text(
        "int main(int n, char **a) { int x[2] = {0}; return x[n + 1] + !a; }"
    )
    import subprocess

    program = str(tmp_path / "wrong")
    asked = [
        "gcc",
        *sanitize.ADDRESS,
        *sanitize.ADDRESS_ONLY,
        str(tmp_path / "wrong.c"),
        "-o",
        program,
    ]
    subprocess.run(asked, check=True)
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode != 0
    assert "out of bounds" in done.stderr
    assert native_driver.missing("gcc") is None
