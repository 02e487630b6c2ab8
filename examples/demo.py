"""Five invented ledes, their headlines, what was dropped, and the time taken.

Politics, markets, sport, science and disaster, by the model that comes with ledeline. Any other
file of ledes, one a line, may be named instead.
"""

import sys
import time
from pathlib import Path

from ledeline import Headliner

LEDES = Path(__file__).with_name("ledes.txt")


def main() -> None:
    """Write the headlines of a file of ledes."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else LEDES
    ledes = path.read_text(encoding="utf-8").splitlines()
    began = time.perf_counter()
    headliner = Headliner.load()
    print(f"The model was there after {time.perf_counter() - began:.1f} s.")
    for lede in ledes:
        began = time.perf_counter()
        headline = headliner(lede, explain=True)
        seconds = time.perf_counter() - began
        alignment = headline.alignment
        print(f"\n{lede}\n\n    {headline.text}")
        for warning in headline.warnings:
            print(f"    careful: {warning}")
        if alignment is not None:
            dropped = [alignment.source[place].strip() for place in alignment.dropped]
            print(f"    dropped: {' '.join(dropped)}")
        print(f"    {1000 * seconds:.0f} ms")


if __name__ == "__main__":
    main()
