"""The part of the news that wire agencies wrote, for `wire/*` of bench/experiment.py.

    python bench/wire.py NEWS OUTPUT

NEWS and OUTPUT are folders; OUTPUT gets those rows of train.parquet, valid.parquet and test.parquet
whose column source is an agency.
"""

import argparse
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import quick
import tiny
from ledeline.core.atomic import atomic_write

AGENCIES = ("apnews.com", "bloomberg.com")  # and all that begin with:
BEGINNING = "reuters"


def is_wire(source: str | None) -> bool:
    """Whether a source of the news is a wire agency."""
    return source is not None and (source.startswith(BEGINNING) or source in AGENCIES)


def main() -> None:
    """Write the three tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("news", type=Path)
    parser.add_argument("output", type=Path)
    quick.offer(parser, news=tiny.news, output=lambda: tiny.folder() / "wire")
    arguments = parser.parse_args()
    for name in ("train", "valid", "test"):
        table = pq.read_table(arguments.news / f"{name}.parquet")
        part = table.filter(pa.array(map(is_wire, table["source"].to_pylist())))
        with atomic_write(arguments.output / f"{name}.parquet") as path:
            pq.write_table(part, path, compression="zstd")
        print(f"{name}: {part.num_rows:,} of {table.num_rows:,}")


if __name__ == "__main__":
    main()
