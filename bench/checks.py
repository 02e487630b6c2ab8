"""What checks and ranking by support cost: the bundled model with and without them, in turn.

    python bench/checks.py [--pairs valid.parquet] [--number 200]

The ledes are those of a table, or of the synthetic newsroom. "Alone" is the median of the ratios of
single headlines, "in a batch" the best of some turns over all ledes at once.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import quick
from ledeline import Headliner
from ledeline.corpus import Pair
from ledeline.corpus.tables import read_table
from ledeline.inference.options import Options
from ledeline.synth.newsroom import generate
from machine import described

WAYS = {
    "checked and ranked: the default": Options(),
    "ranked, numbers and names not constrained": Options(constrain=False),
    "checked, not ranked": Options(rank="score"),
}
PLAIN = Options(check=False)
WARM_UP = 5


def ledes(table: Path | None, number: int) -> list[str]:
    """So many ledes, spread over the table."""
    if table is None:
        return [story.lede for story in generate(number, 5)]
    rows = read_table(table, lede="lede", headline="headline", date=None)
    found = [row.lede for row in rows if isinstance(row, Pair)]
    return found[:: max(1, len(found) // number)][:number]


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(headliner: Headliner, texts: list[str], options: Options, turns: int) -> list[str]:
    """Milliseconds of a headline, and its ratio to one without checks, alone and in a batch."""

    def alone(text: str, way: Options) -> float:
        return seconds(lambda: headliner(text, options=way))

    for text in texts[:WARM_UP]:
        alone(text, options)
    pairs = [(alone(text, PLAIN), alone(text, options)) for text in texts]
    plain, checked = (
        min(seconds(lambda: headliner.generate_batch(texts, way)) for _ in range(turns))  # noqa: B023
        for way in (PLAIN, options)
    )
    ms = 1000 * statistics.median(one for _, one in pairs)
    ratio = statistics.median(one / before for before, one in pairs)
    return [f"{ms:.1f}", f"{ratio:.2f}", f"{checked / plain:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=Path, metavar="TABLE", help="a column lede")
    parser.add_argument("--number", type=int, default=200, help="ledes")
    parser.add_argument("--turns", type=int, default=3, help="of a batch")
    quick.offer(parser, number=4, turns=1)
    options = parser.parse_args()
    headliner, texts = Headliner.load(), ledes(options.pairs, options.number)
    print(described(), "", sep="\n")
    print("| | ms, alone | of an unchecked one | in a batch |\n| --- | ---: | ---: | ---: |")
    for name, way in WAYS.items():
        cells = measure(headliner, texts, way, options.turns)
        print(f"| {' | '.join([name, *cells])} |", flush=True)


if __name__ == "__main__":
    main()
