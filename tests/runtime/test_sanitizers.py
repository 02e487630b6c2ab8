"""That an error is noticed by the sanitizers; `bench/sanitize.py --quick` runs the engine under them."""

import subprocess
import sys
from pathlib import Path

import pytest

from pages import ROOT

sys.path.append(str(ROOT / "bench"))
import sanitize

pytestmark = pytest.mark.skipif(sanitize.missing() is not None, reason=sanitize.missing() or "")


def test_an_error_is_noticed(tmp_path: Path) -> None:
    source, program = tmp_path / "wrong.c", tmp_path / "wrong"
    source.write_text("int main(int n, char **a) { int x[2] = {0}; return x[n + 1] + !a; }")
    flags = [*sanitize.ADDRESS, *sanitize.ADDRESS_ONLY]
    subprocess.run(["gcc", *flags, str(source), "-o", str(program)], check=True)
    done = subprocess.run([str(program)], capture_output=True, text=True)
    assert done.returncode != 0
    assert "out of bounds" in done.stderr
