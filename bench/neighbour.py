"""What one busy neighbour costs: waiting threads sleep, so a headline waits for its own work only.

    python bench/neighbour.py

Headlines one at a time and two at a time (on two threads), by the model in the box unless another
is named: quiet, and beside a process that keeps one core busy, in turns.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import quick
from ledeline.inference.headliner import Headliner
from machine import described

LEDES = (
    "Tokyo stocks rose on Tuesday as exporters gained on a weaker yen, while banks slipped after "
    "the central bank kept its rates where they were.",
    "The government said on Monday that it would spend three billion euros on new railways over "
    "the next ten years, its largest plan so far.",
)
BUSY = "while True: pass"
TURNS = 5


def seconds(headliner: Headliner, size: int, number: int) -> list[float]:
    """Seconds of each call with so many ledes."""
    found = []
    for place in range(number):
        texts = [LEDES[(place + more) % 2] for more in range(size)]
        began = time.perf_counter()
        headliner.generate_batch(texts)
        found.append(time.perf_counter() - began)
    return found


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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default="shipped", help="a folder, if not the one in the box")
    parser.add_argument("--number", type=int, default=100, help="calls of each kind")
    quick.offer(parser, number=3, model=tiny_model)
    arguments = parser.parse_args()
    headliner = Headliner.load(arguments.model, device="cpu")
    print(f"{described()}, {headliner.num_threads} threads\n")
    print("| ledes | quiet, ms: median | worst | one busy neighbour: median | worst | ratio |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for size in (1, 2):
        seconds(headliner, size, 1)
        found: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(TURNS):
            for busy in (False, True):
                with neighbour(busy):
                    found[busy] += seconds(headliner, size, max(1, arguments.number // TURNS))
        quiet, beside = (1000 * statistics.median(found[busy]) for busy in (False, True))
        worst = [1000 * max(found[busy]) for busy in (False, True)]
        print(
            f"| {size} | {quiet:.1f} | {worst[0]:.1f} | {beside:.1f} | {worst[1]:.1f} "
            f"| {beside / quiet:.2f} |"
        )


def tiny_model() -> str:
    import tiny

    return str(tiny.model())


if __name__ == "__main__":
    main()
