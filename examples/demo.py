"""Five ledes, their headlines, what was dropped, and the time taken.

They are written by the model that comes with ledeline. A file of other ledes, one a line, may be
named instead.
"""

import sys
import time
from pathlib import Path

from ledeline import Headliner
from ledeline.examples import LEDES


def main() -> None:
    """Write a headline for each lede."""
    ledes = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines() if sys.argv[1:] else LEDES
    began = time.perf_counter()
    headliner = Headliner.load()
    print(f"The model was loaded in {time.perf_counter() - began:.1f} s.")
    for lede in ledes:
        began = time.perf_counter()
        headline = headliner(lede, explain=True)
        seconds = time.perf_counter() - began
        print(f"\n{lede}\n\n    {headline}")
        for warning in headline.warnings:
            print(f"    careful: {warning}")
        if (alignment := headline.alignment) is not None:
            dropped = [alignment.source[place].strip() for place in alignment.dropped]
            print(f"    dropped: {' '.join(dropped)}")
        print(f"    {1000 * seconds:.0f} ms")


if __name__ == "__main__":
    main()
