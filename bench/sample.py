"""A random part of the news, for systems that are trained on a CPU (bench/compared.py).

    python bench/sample.py NEWS OUTPUT

NEWS and OUTPUT are folders; OUTPUT gets so many random rows of train.parquet, in their order, and
the first rows of valid.parquet and test.parquet.
"""

import argparse
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import quick
import tiny
from ledeline.core.atomic import atomic_write


def main() -> None:
    """Write the three tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("news", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--train", type=int, default=120_000, help="random rows")
    parser.add_argument("--valid", type=int, default=1_000, help="first rows")
    parser.add_argument("--test", type=int, default=2_000, help="first rows")
    parser.add_argument("--seed", type=int, default=1)
    quick.offer(parser, news=tiny.news, output=lambda: tiny.folder() / "sample", train=8, test=4)
    arguments = parser.parse_args()
    for name in ("train", "valid", "test"):
        table = pq.read_table(arguments.news / f"{name}.parquet")
        number = min(getattr(arguments, name), table.num_rows)
        rows = np.arange(number)
        if name == "train":
            rng = np.random.default_rng(arguments.seed)
            rows = np.sort(rng.choice(table.num_rows, number, replace=False))
        with atomic_write(arguments.output / f"{name}.parquet") as path:
            pq.write_table(table.take(rows), path, compression="zstd")
        print(f"{name}: {number:,} of {table.num_rows:,}")


if __name__ == "__main__":
    main()
