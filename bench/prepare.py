"""Time and peak memory of `ledeline prepare`, and the time to open what it made.

    python bench/prepare.py configs/news-paper.toml [--section.key=value ...]

The dataset goes to a temporary folder. The command runs in a process of its own, as a user's does,
and the peak is what the kernel counts for it.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import quick
import tiny
from ledeline.data.batches import Batches
from ledeline.data.dataset import Dataset
from machine import described


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    default = Path(__file__).parent.parent / "configs/newsroom.toml"
    parser.add_argument("config", nargs="?", default=default, help="as of `ledeline prepare`")
    quick.offer(parser, config=tiny.preparation_file)
    options, overrides = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "dataset"
        command = [sys.executable, "-m", "ledeline", "prepare", options.config, *overrides]
        start = time.perf_counter()
        subprocess.run([*command, f"--dataset.output={output}"], check=True)
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20  # KiB -> GiB
        size = sum(path.stat().st_size for path in output.iterdir()) / 2**20
        opening = min(timed(lambda: Dataset(output)) for _ in range(5))
        print(f"\n{described()}")
        print(f"prepare   {seconds:7.1f} s   peak {peak:.2f} GiB   {size:.0f} MiB on disk")
        print(f"open      {opening * 1000:7.1f} ms")
        print(f"verify    {timed(Dataset(output).verify) * 1000:7.1f} ms")
        print(f"batches   {batch_rate(Dataset(output)):,.0f} pairs/s (equal lengths, size 256)")


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def batch_rate(dataset: Dataset) -> float:
    batches = Batches(dataset["train"], size=256, seed=1)
    start = time.perf_counter()
    pairs = sum(batch.num_pairs for batch in batches.epoch(0))
    return pairs / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
