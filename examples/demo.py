"""Write headlines for five ledes with the bundled model; show what was dropped and the time."""

import time
from itertools import groupby

from ledeline import Headliner
from ledeline.inference.headline import Alignment
from ledeline.inference.sample_ledes import LEDES


def dropped(alignment: Alignment) -> str:
    """The words of the lede that the headline drops, with dots in place of the others."""
    places = range(len(alignment.source))
    runs = groupby(places, alignment.dropped.__contains__)
    out = ["".join(alignment.source[place] for place in run) for is_out, run in runs if is_out]
    return " ... ".join(map(str.strip, out))


def main() -> None:
    """Write a headline for each lede."""
    began = time.perf_counter()
    headliner = Headliner.load()
    print(f"The model was loaded in {time.perf_counter() - began:.1f} s.")
    for lede in LEDES:
        began = time.perf_counter()
        headline = headliner(lede, explain=True)
        seconds = time.perf_counter() - began
        print(f"\n{lede}\n\n    {headline}")
        for warning in headline.warnings:
            print(f"    warning: {warning}")
        if headline.alignment is not None:
            print(f"    dropped: {dropped(headline.alignment)}")
        print(f"    {1000 * seconds:.0f} ms")


if __name__ == "__main__":
    main()
