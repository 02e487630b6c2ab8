"""How large a new environment with ledeline is, by package, and how fast its command starts.

    python bench/install.py

Makes a virtual environment in a temporary folder, builds the wheel of this repository, and installs
it with what it needs. The bytes of a package are those of the files that pip has recorded for it.
pip itself, which the environment comes with, is named but not counted. Then the command and an
empty program are started in turns. --quick looks at the environment that it runs in instead.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, NamedTuple

import quick
from machine import described
from rows import Column, Rows, Table

ROOT = Path(__file__).parent.parent
TOOLS = ("pip", "setuptools", "wheel")
ALONE = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
LEDE = "Tokyo stocks rose on Tuesday as exporters gained on a weaker yen."


class Size(NamedTuple):
    """The bytes of a package."""

    package: str
    version: str
    files: int
    compiled: int  # of them .pyc


def size(found: Distribution) -> Size:
    """Sum the files that are recorded for a package and are there."""
    total = compiled = 0
    for file in found.files or ():
        path = Path(str(found.locate_file(file)))
        if path.is_file():
            total += path.stat().st_size
            compiled += path.stat().st_size * (path.suffix == ".pyc")
    return Size(found.metadata["Name"], found.version, total, compiled)


def sizes(name: str) -> list[Size]:
    """Those of a package and of all that it needs, without extras."""
    seen: dict[str, Size] = {}
    waiting = [name]
    while waiting:
        one = waiting.pop()
        try:
            found = distribution(one)
        except PackageNotFoundError:
            continue  # for another kind of machine
        key = found.metadata["Name"].lower()
        if key in seen:
            continue
        seen[key] = size(found)
        needed = (line for line in found.requires or () if "extra ==" not in line)
        waiting += [re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in needed]
    return sorted(seen.values(), key=lambda one: -one.files)


def sizes_in(python: Path) -> list[Size]:
    """The same in another environment."""
    command = [python, __file__, "--list"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=ALONE)
    return [Size(*one) for one in json.loads(done.stdout)]


def install(folder: Path, constraints: Path) -> Path:
    """Build a wheel and install it into a new environment -> its Python."""
    environment = folder / "environment"
    venv.create(environment, with_pip=True)
    python = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    sources = folder / "sources"  # a copy, as pip leaves what it builds beside them
    left_out = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", sources / "src", ignore=left_out)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, sources)
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", folder, sources], check=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([*pip, "install", "--constraint", constraints, wheel], check=True)
    return python


def start_times(
    commands: Sequence[Sequence[str]], number: int, environment: Mapping[str, str]
) -> list[list[float]]:
    """Seconds of each command, started in turns."""
    found: list[list[float]] = [[] for _ in commands]
    for _ in range(number):
        for command, seconds in zip(commands, found, strict=True):
            began = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True, env=environment)
            seconds.append(time.perf_counter() - began)
    return found


def report_sizes(rows: Rows, found: Sequence[Size]) -> None:
    table = Table(
        rows,
        "sizes",
        Column("package", "package"),
        Column("files", "MB", ".1f"),
        Column("source", "without .pyc", ".1f"),
    )
    for one in [*found, Size("all", "", *(sum(one[at] for one in found) for at in (2, 3)))]:
        name = f"{one.package} {one.version}".strip()
        table.add(package=name, files=one.files / 1e6, source=(one.files - one.compiled) / 1e6)
    print(f"\nnot counted: {', '.join(TOOLS)}\n")


def report_starts(rows: Rows, python: Path, number: int, environment: Mapping[str, str]) -> None:
    commands = {
        "python -c pass": [str(python), "-c", "pass"],
        "ledeline --version": [str(python), "-m", "ledeline", "--version"],
        "ledeline generate": [str(python), "-m", "ledeline", "generate", LEDE],
    }
    times = start_times(list(commands.values()), number, environment)
    table = Table(
        rows,
        "starts",
        Column("command", "command"),
        Column("median", "ms, median", ".0f"),
        Column("least", "least", ".0f"),
        Column("ratio", "times `python -c pass`", ".1f"),
    )
    for name, seconds in zip(commands, times, strict=True):
        median = statistics.median(seconds)
        table.add(
            command=name,
            median=1000 * median,
            least=1000 * min(seconds),
            ratio=median / statistics.median(times[0]),
        )


def main() -> None:
    if "--list" in sys.argv:
        print(json.dumps(sizes("ledeline")))
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--number", type=int, default=30, help="starts of each command")
    parser.add_argument("--constraints", type=Path, default=ROOT / "constraints.txt")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    is_quick = quick.offer(parser, number=1)
    given: Any = parser.parse_args()
    print(f"{described()}\n")
    rows = Rows(given.json, described())
    if is_quick:
        report_sizes(rows, sizes("ledeline"))
        report_starts(rows, Path(sys.executable), given.number, os.environ)
        return
    with tempfile.TemporaryDirectory() as folder:
        python = install(Path(folder), given.constraints)
        report_sizes(rows, sizes_in(python))
        report_starts(rows, python, given.number, ALONE)


if __name__ == "__main__":
    main()
