"""One headline at a time, beside another checkout of ledeline.

    git worktree add /tmp/before v0.1.0    (and build its kernels there)
    python bench/versions.py --before /tmp/before

Two processes, one for each checkout, write the headline of the same lede in turn. The table has the
median of the ratios with a 95 % interval, and the same for the earlier checkout beside itself: that
is the noise.
"""

import argparse
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

import quick
from machine import described
from neighbour import tiny_model

ROOT = Path(__file__).resolve().parent.parent
WARM_UP = 10  # ledes before anything is counted
RESAMPLES = 500


class Checkout:
    """A process that writes headlines with the code of one checkout."""

    def __init__(self, root: Path, model: str, *, explain: bool) -> None:
        words = ["--worker", str(root), "--model", model, *(["--explain"] if explain else [])]
        command = [sys.executable, __file__, *words]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self.seconds("Rain fell in Oslo on Monday.")

    def seconds(self, lede: str) -> float:
        """The time that a headline takes."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(lede, file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def end(self) -> None:
        """Stop the process."""
        self._process.terminate()
        self._process.wait()


def work(root: Path, model: str, explain: bool) -> None:
    """Write a headline for each line, and say how long it took."""
    sys.path.insert(0, str(root / "src"))
    from ledeline import Headliner

    headliner = Headliner.load(model, device="cpu")
    for line in sys.stdin:
        began = time.perf_counter()
        headliner(line.rstrip("\n"), explain=explain)
        print(time.perf_counter() - began, flush=True)


def ratios(before: Path, after: Path, model: str, ledes: list[str], explain: bool) -> list[float]:
    """The time of the second checkout by that of the first, for each lede."""
    pair = [Checkout(root, model, explain=explain) for root in (before, after)]
    found = []
    for number, lede in enumerate([*ledes[:WARM_UP], *ledes]):
        order = pair if number % 2 else pair[::-1]
        times = {one: one.seconds(lede) for one in order}
        found.append(times[pair[1]] / times[pair[0]])
    for one in pair:
        one.end()
    return found[-len(ledes) :]


def main() -> None:
    """Print the table, or be a worker."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--before", type=Path, default=ROOT, help="the other checkout; else this one"
    )
    parser.add_argument("--model", default="shipped", help="a folder that both can open")
    parser.add_argument("--ledes", type=Path, help="a lede per line; else synthetic news")
    parser.add_argument("--number", type=int, default=200, help="ledes")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--explain", action="store_true", help=argparse.SUPPRESS)
    quick.offer(parser, before=ROOT, number=3, model=tiny_model)
    options = parser.parse_args()
    if options.worker:
        work(options.worker, options.model, options.explain)
        return
    print(described(), "\n")
    print("| headline | checkouts | ratio, median | 95 % |\n| --- | --- | ---: | ---: |")
    for explain in (False, True):
        for after, name in ((ROOT, "this / before"), (options.before, "before / before")):
            found = ratios(options.before, after, options.model, read(options), explain)
            low, high = interval(found)
            kind = "explained" if explain else "alone"
            middle = statistics.median(found)
            print(f"| {kind} | {name} | {middle:.3f} | {low:.3f} to {high:.3f} |", flush=True)


def read(options: argparse.Namespace) -> list[str]:
    if options.ledes is not None:
        return options.ledes.read_text("utf-8").splitlines()[: options.number]
    from ledeline.synth.newsroom import generate

    return [story.lede for story in generate(options.number, 2)]


def interval(found: list[float]) -> tuple[float, float]:
    """The bootstrap's 95 % interval of the median."""
    draw = random.Random(1)
    drawn = (statistics.median(draw.choices(found, k=len(found))) for _ in range(RESAMPLES))
    ordered = sorted(drawn)
    return ordered[RESAMPLES // 40], ordered[-1 - RESAMPLES // 40]


if __name__ == "__main__":
    main()
