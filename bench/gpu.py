"""What training costs on a GPU, next to eager PyTorch of the same systems.

    python bench/gpu.py [PART ...] [--systems NAME,NAME] [--dataset FOLDER] [--json FILE]

PARTs, by default all, `epoch` where there is a dataset. A failure of one does not stop the others.

- `ceilings`: a product of large matrices in bfloat16; a copy within the device, reading and writing
  counted.
- `agree`: the losses of all ways at the same weights, without dropout; of plain and fast also the
  gradients and the loss after three steps. More than 1e-4 apart in float32 is a failure.
- `steps`: a step is forward, backward, clipping and fused Adam, here of 256 pairs of 44 sub-words
  and 14 (13 and <eos>). The ways take turns, so that a slow moment hits them alike:
  - eager: the system as one would write it first (`Textbook` of bench/train.py) under autocast;
  - plain: ours without a kernel of its own; then the same captured as a CUDA graph;
  - fast: ours as `ledeline train` has it, fused kernels and captured.
- `sizes`: fast with other batches and source lengths.
- `epoch`: bench/gpu_epoch.py, each system in a process of its own.

"Of the rate": the time that the products of a step would take at the first ceiling, over that of
the step. A multiply-add is 2 operations, and forward and both gradients are 3 products: 6 B times

    2I 4H (D + H + 2H (L-1)) + J 4H (D + 2H + 2H (L-1))      encoder and decoder of L layers
    + (I+1) H^2 [sGate] + I H^2 + J (2 I H + 2 H^2)          gate, keys, attention
    + J H V (1 + [SPM])                                      heads

"Of the copy": the same of bytes at the second ceiling. They are 32 for each parameter (weight and
both moments read and written, the gradient written and read), 6 for each logit of each head
(bfloat16, written once, read twice), and 4 for each value kept for the way back (read once), of
which there are

    B (I (D + 13 H L) + J (D + 6 H L + 2 H + I))             gates, cells, states; context, z, alpha

Tokens are those of source and headline, <eos> included, without the SPM's <pad>. Memory is what
PyTorch reserved at most, beyond what the others have, data and Adam's moments included.

Where there is no GPU, --quick does it all on the CPU, with graphs that only call.
"""

import argparse
import gc
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

import quick
import tiny
from gpu_epoch import epoch
from gpu_ways import MAIN_SYSTEMS, SYSTEMS, WAYS, Made, Shape, agree, fast
from ledeline.model.pairs import Pairs
from ledeline.model.systems.encdec import EncDec
from ledeline.train.cuda_graphs import Work
from machine import accelerator, described
from rows import Column, Rows, Table
from train import CUDA, DEVICE, QUICK, Sizes, num_operations, product

SECONDS_A_TURN = 0.1  # of each way; at least one step
MORE_SHAPES = [Shape(batch) for batch in (64, 256, 1024)] + [Shape(256, i) for i in (16, 32, 64)]


def main() -> None:
    options = read_options()
    about = f"{described()}\n{accelerator()}"
    print(about, flush=True)
    if not CUDA:
        print("no GPU: nothing is captured, and what is called fast is plain PyTorch, too")
    rows, failed = Rows(options.json, about), False
    for part in options.parts:
        print(f"\n## {part}\n", flush=True)
        began = time.perf_counter()
        try:
            failed |= PARTS[part](options, rows) is False
        except Exception:
            failed = not told(part)
        print(f"\n{part}: {time.perf_counter() - began:.1f} s", flush=True)
    sys.exit(1 if failed else 0)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--dataset", type=Path, help="for `epoch`")
    parser.add_argument("--pairs", type=int, help="of an epoch: the dataset's, over and over")
    parser.add_argument("--warm", action="store_true", help="an epoch may find kernels compiled")
    parser.add_argument("--replays", type=int, default=4, help="of each shape, behind an epoch")
    parser.add_argument("--systems", help=f"some of {','.join(SYSTEMS)}")
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--json", type=Path, help="write all rows there")
    parser.set_defaults(sizes=Sizes(), shape=Shape(), shapes=MORE_SHAPES, main_systems=MAIN_SYSTEMS)
    sizes = {"sizes": QUICK, "shape": Shape(8, 6, 4), "shapes": [Shape(4, 6, 4), Shape(8, 5, 4)]}
    sizes["main_systems"] = MAIN_SYSTEMS[1:]
    quick.offer(parser, dataset=tiny.dataset, pairs=20, replays=1, turns=1, **sizes)
    options = parser.parse_args()
    has_data = options.dataset is not None
    options.parts = options.parts or [one for one in PARTS if one != "epoch" or has_data]
    options.systems = options.systems.split(",") if options.systems else None
    for one in {*options.parts} - {*PARTS} | {*(options.systems or ())} - {*SYSTEMS}:
        parser.error(f"there is no {one}")
    if "epoch" in options.parts and not has_data:
        parser.error("epoch wants a --dataset")
    return options


# --- measuring ------------------------------------------------------------------------------------


def wait() -> None:
    if CUDA:
        torch.cuda.synchronize()


def prepared(build: Callable[[], Work]) -> tuple[Work, float | None]:
    """A way that has gone some steps, and the most GiB that it reserved so far."""
    if not CUDA:
        run = build()
        run()
        return run, None
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_reserved()
    run = build()
    for _ in range(3):
        run()
    wait()
    return run, (torch.cuda.max_memory_reserved() - before) / 2**30


def in_turns(runs: dict[str, Callable[[], object]], turns: int) -> dict[str, list[float]]:
    """Seconds of a step, for every turn; in a turn each takes as many as fit in a moment."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    repeats = dict.fromkeys(runs, 1)
    for turn in range(-2, turns):  # the first warms up, the second tells how many fit
        for name, run in runs.items():
            begin = time.perf_counter()
            for _ in range(repeats[name]):
                run()
            wait()
            took = (time.perf_counter() - begin) / repeats[name]
            if turn >= 0:
                seconds[name].append(took)
            elif turn == -1 and CUDA:
                repeats[name] = max(1, round(SECONDS_A_TURN / took))
    return seconds


class Ceilings(NamedTuple):
    """What the device can do in a second."""

    operations: float
    bytes: float


@cache
def ceilings(sizes: Sizes, turns: int) -> tuple[Ceilings, dict[str, list[float]]]:
    size = 2**30 if CUDA else 2**22
    here, there = torch.zeros(2, size, dtype=torch.uint8, device=DEVICE)
    runs = {"product": product(sizes), "copy": lambda: there.copy_(here)}
    seconds = in_turns(runs, turns)
    work = {"product": 2 * sizes.product**3, "copy": 2 * size}
    rates = {name: [work[name] / one for one in values] for name, values in seconds.items()}
    return Ceilings(*(statistics.median(values) for values in rates.values())), rates


def num_bytes(model: EncDec, pairs: Pairs) -> int:
    """What has to be read and written in a step; see the head of this file."""
    sizes, v = model.config.system, model.vocabulary
    d, h, layers = sizes.embedding_size, sizes.hidden_size, sizes.layers
    (b, i), (_, j) = pairs.sources.shape, pairs.targets.shape
    parameters = sum(one.numel() for one in model.parameters())
    kept = b * (i * (d + 13 * h * layers) + j * (d + 6 * h * layers + 2 * h + i))
    return 32 * parameters + 6 * b * j * v * len(model.loss_names) + 4 * kept


def measured(
    made: Made, seconds: list[float], memory: float | None, most: Ceilings
) -> dict[str, Any]:
    """The figures of a row."""
    median, (batch, source, headline) = statistics.median(seconds), made.shape
    pairs = made.pairs()
    return {
        "batch": batch,
        "source": source,
        "steps": pairs.targets.shape[1],
        "ms": 1000 * median,
        "lowest": 1000 * min(seconds),
        "highest": 1000 * max(seconds),
        "pairs_per_second": batch / median,
        "tokens_per_second": batch * (source + headline) / median,
        "of_the_rate": num_operations(made.model, pairs) / most.operations / median,
        "of_the_copy": num_bytes(made.model, pairs) / most.bytes / median,
        "memory": memory,
    }


FIGURES = [
    Column("ms", "ms, median", ".2f"),
    Column("lowest", "lowest", ".2f"),
    Column("highest", "highest", ".2f"),
    Column("pairs_per_second", "pairs/s", ",.0f"),
    Column("tokens_per_second", "tokens/s", ",.0f"),
    Column("of_the_rate", "of the rate", ".3f"),
    Column("of_the_copy", "of the copy", ".3f"),
    Column("memory", "reserved, GiB", ".2f"),
]


# --- the parts ------------------------------------------------------------------------------------


def show_ceilings(options: argparse.Namespace, rows: Rows) -> None:
    size, (_, rates) = options.sizes.product, ceilings(options.sizes, options.turns)
    named = [Column(one, one, ",.3f") for one in ("median", "lowest", "highest")]
    table = Table(rows, "ceilings", Column("name", ""), *named)
    for name, values in rates.items():
        kind = "bfloat16" if CUDA else "float32"
        title = {"product": f"{size}^3 {kind}, TFLOP/s", "copy": "copy, TB/s"}[name]
        three = (f(values) / 1e12 for f in (statistics.median, min, max))
        table.add(name=title, **dict(zip(("median", "lowest", "highest"), three, strict=True)))


def steps(options: argparse.Namespace, rows: Rows) -> bool:
    most, _ = ceilings(options.sizes, options.turns)
    columns = [Column("system", "system"), Column("way", ""), *FIGURES]
    table = Table(rows, "steps", *columns, Column("times", "times eager", ".2f"))
    whole = True
    for system in options.systems or SYSTEMS:
        runs: dict[str, Work] = {}
        memory: dict[str, float | None] = {}
        for name, build in WAYS.items():
            make = partial(Made, system, options.sizes, options.shape)
            try:
                runs[name], memory[name] = prepared(lambda b=build, m=make: b(m()))
            except Exception:
                whole = told(f"{system}, {name}")
        seconds = in_turns(runs, options.turns)
        made, first = make(), seconds.get("eager")
        for name, values in seconds.items():
            ratios = [a / b for a, b in zip(first, values, strict=True)] if first else []
            times = statistics.median(ratios) if ratios else None
            figures = measured(made, values, memory[name], most)
            table.add(system=system, way=name, **figures, times=times)
    return whole


def sizes(options: argparse.Namespace, rows: Rows) -> bool:
    most, _ = ceilings(options.sizes, options.turns)
    sides = [Column("batch", "batch", "d"), Column("source", "source", "d")]
    sides += [Column("steps", "decoder's steps", "d")]
    table = Table(rows, "sizes", Column("system", "system"), *sides, *FIGURES)
    whole = True
    for system in options.systems or options.main_systems:
        for shape in options.shapes:
            make = partial(Made, system, options.sizes, shape)
            try:
                run, memory = prepared(lambda m=make: fast(m()))
                seconds = in_turns({"fast": run}, options.turns)["fast"]
                table.add(system=system, **measured(make(), seconds, memory, most))
                del run
            except Exception:
                whole = told(f"{system}, {shape}")
    return whole


def told(what: str) -> bool:
    """Print what went wrong, and go on."""
    print(f"{what}: failed", flush=True)
    traceback.print_exc()
    return False


PARTS = {
    "ceilings": show_ceilings,
    "agree": agree,
    "steps": steps,
    "sizes": sizes,
    "epoch": epoch,
}

if __name__ == "__main__":
    main()
