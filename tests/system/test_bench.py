"""Every program in bench/ runs: its --quick does all that it does, in tiny sizes.

Speed is not looked at; figures are taken without --quick.
"""

import os
import re
from itertools import takewhile
from pathlib import Path

import pytest

import command
from pages import ROOT

WORKERS = ("gpu_epoch.py", "load_client.py")  # gpu.py and load.py start them
PASSING = {"__pycache__", "data", "runs"}  # folders where others may write meanwhile
OF_TORCH = "torchinductor_"  # what torch leaves in the folder for temporary files begins so
HEAD = re.compile(r"\$ python |.*, Python 3\.|#|`python ")  # of the output: what was run, and where
RULE = re.compile(r"\|( ?-+:? ?\|)+")  # below the heads of a table in Markdown

PROGRAMS = sorted(
    path.name
    for path in (ROOT / "bench").glob("*.py")
    if '__name__ == "__main__"' in path.read_text("utf-8") and path.name not in WORKERS
)


def files() -> set[tuple[Path, int]]:
    """What lies in the repository, and when it was written."""
    found = set()
    for place, folders, names in os.walk(ROOT):
        folders[:] = [one for one in folders if one not in PASSING and not one.startswith(".")]
        paths = (Path(place, name) for name in names if not name.startswith("."))
        found |= {(path, path.stat().st_mtime_ns) for path in paths}
    return found


def figures(output: str) -> list[str]:
    """The lines that tell a number."""
    return [line for line in output.splitlines() if re.search(r"\d", line) and not HEAD.match(line)]


def empty_tables(output: str) -> list[str]:
    """The heads of tables without a row that tells a number."""
    lines = output.splitlines()
    rules = [place for place, line in enumerate(lines) if RULE.fullmatch(line)]
    rows = [takewhile(lambda line: line.startswith("|"), lines[place + 1 :]) for place in rules]
    return [
        lines[place - 1]
        for place, found in zip(rules, rows, strict=True)
        if not re.search(r"\d", "".join(found))
    ]


def test_the_programs_are_found() -> None:
    assert {"addons.py", "gpu.py", "wire.py"} < {*PROGRAMS}
    assert not {"quick.py", "rows.py", *WORKERS} & {*PROGRAMS}


def test_an_empty_table_is_noticed() -> None:
    head = "$ python bench/x.py\nAMD, 2 cores, Python 3.11.7\n\n| | ms, p95 |\n| --- | ---: |\n"
    assert not figures("$ python bench/x.py 1\nAMD, 2 cores, Python 3.11.7\n# 2\n")
    assert empty_tables(head) == ["| | ms, p95 |"]
    assert empty_tables(head + "\npart: 0.1 s\n") == ["| | ms, p95 |"]
    assert not empty_tables(head + "| theirs | |\n| ours | 0.1 |\n")


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_offers_to_be_quick(program: str) -> None:
    assert "quick.offer(" in (ROOT / "bench" / program).read_text("utf-8")


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_runs_quickly(program: str, tmp_path: Path) -> None:
    if program == "load.py" and not Path("/proc/stat").exists():
        pytest.skip("it asks /proc who is busy")
    place, temporary = tmp_path / "place", tmp_path / "temporary"
    place.mkdir()
    temporary.mkdir()
    before = files()
    path = ROOT / "bench" / program
    environment = {"OMP_NUM_THREADS": "1", "TMPDIR": str(temporary)}
    done = command.program(path, "--quick", cwd=place, env=environment)
    said = f"{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, said
    assert "Traceback" not in said
    assert figures(done.stdout), said
    assert not empty_tables(done.stdout), said
    written = files() - before
    assert not written
    left = [one for one in temporary.iterdir() if not one.name.startswith(OF_TORCH)]
    assert not [*place.iterdir(), *left], "it leaves nothing behind"
