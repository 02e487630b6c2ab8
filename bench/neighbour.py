"""What one busy neighbour costs, where waiting threads of OpenMP sleep and where they spin.

    python bench/neighbour.py

Headlines one at a time, by the model in the box unless another is named: quiet, and beside a
process that keeps one core busy. ledeline has threads sleep; torch, imported before it, has them
spin.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import quick
from machine import described

LEDES = (
    "Tokyo stocks rose on Tuesday as exporters gained on a weaker yen, while banks slipped after "
    "the central bank kept its rates where they were.",
    "The government said on Monday that it would spend three billion euros on new railways over "
    "the next ten years, its largest plan so far.",
)
BUSY = "while True: pass"
POLICIES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")


def headlines(model: str, number: int) -> list[list[float]]:
    """Seconds of each headline, one after the other: quiet, then beside a busy neighbour."""
    from ledeline import Headliner

    headliner = Headliner.load(model, device="cpu")
    headliner(LEDES[0])
    found = []
    for busy in (False, True):
        with neighbour(busy):
            works = [partial(headliner, LEDES[place % 2]) for place in range(number)]
            found.append([seconds(work) for work in works])
    return found


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


@contextmanager
def neighbour(wanted: bool) -> Iterator[None]:
    """A process that keeps a core busy, if it is wanted."""
    process = subprocess.Popen([sys.executable, "-c", BUSY]) if wanted else None
    try:
        yield
    finally:
        if process is not None:
            process.kill()
            process.wait()


def measured(policy: str, model: str, number: int) -> list[list[float]]:
    """`headlines` in a process of its own, in which nobody has said what waiting threads do."""
    environment = {name: value for name, value in os.environ.items() if name not in POLICIES}
    worker = ["--worker", policy, "--model", model, "--number", str(number)]
    command = [sys.executable, Path(__file__), *worker]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return [[1000 * one for one in times] for times in json.loads(done.stdout)]


def main() -> None:
    """Print the table, or be a worker."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default="shipped", help="a folder, if not the one in the box")
    parser.add_argument("--number", type=int, default=100, help="headlines of each kind")
    parser.add_argument("--worker", choices=["sleep", "spin"], help=argparse.SUPPRESS)
    quick.offer(parser, number=3, model=tiny_model)
    arguments = parser.parse_args()
    if arguments.worker:
        if arguments.worker == "spin":
            import torch  # noqa: F401 - before ledeline
        print(json.dumps(headlines(arguments.model, arguments.number)))
        return
    print(described(), "\n")
    print("| waiting threads | quiet, ms: median | worst | one busy neighbour: median | worst |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for policy in ("sleep", "spin"):
        both = measured(policy, arguments.model, arguments.number)
        cells = [figure(times) for times in both for figure in (statistics.median, max)]
        print(f"| {policy} |", " | ".join(f"{one:.1f}" for one in cells), "|")


def tiny_model() -> str:
    import tiny

    return str(tiny.model())


if __name__ == "__main__":
    main()
