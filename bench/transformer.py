"""What Transformers of several shapes cost: a training step, a search, headlines on a CPU.

    python bench/transformer.py steps            # a training step of 40,000 source tokens
    python bench/transformer.py search --ledes LEDES
    python bench/transformer.py write --ledes LEDES

- `steps`: a step is forward, backward, clipping and Adam, from pairs on the device. "Of the rate"
  is the time that its products would take at the rate of a product of large matrices in bfloat16,
  measured in the same run, over that of the step. Operations are counted by torch while a step runs
  in plain PyTorch: a multiply-add is 2. `plain` has no kernel of our own, `fast` has all; they take
  turns.
- `search`: all ledes on one device, from text to headlines, with beams of 5 and 20.
- `write`: headlines a second, and the time of one alone, beside the bundled model; in turns.

Weights are random, and outputs are forced to 18 sub-words, so that all write the same amount. Speed
does not depend on what the weights are. Search and `write` are in float32 but for the bundled
model, which has an engine that also has int8.
"""

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.utils.flop_counter import FlopCounterMode

import quick
import tiny
from addons_runs import table
from ledeline.config import SearchConfig
from ledeline.core.errors import CorpusError, EngineWarning, LedelineError
from ledeline.data.dataset import Batch
from ledeline.inference.engine_bundle import EngineSystem
from ledeline.inference.headliner import Headliner, Options
from ledeline.inference.threads import num_threads
from ledeline.model.addons.spm import SourcePredictionConfig
from ledeline.model.build import build
from ledeline.model.format.model_folder import ModelBundle
from ledeline.model.gpu.dispatch import kernel_mode
from ledeline.model.initialization import XavierInit
from ledeline.model.system import System
from ledeline.model.system_config import SystemConfig
from ledeline.model.systems.transformer import TransformerConfig
from ledeline.text.tokenizer import Tokenizer
from machine import CPU_PRECISIONS, accelerator, described

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
LENGTH = 18  # of headlines, in sub-words
BUNDLED = "bundled EncDec+sGate+SPM"


class Shape(NamedTuple):
    """The sizes of a Transformer."""

    encoder: int
    decoder: int
    size: int
    heads: int = 8

    @property
    def label(self) -> str:
        """As 6+6, 512."""
        return f"{self.encoder}+{self.decoder}, {self.size}"

    def config(self) -> TransformerConfig:
        """Its section."""
        return TransformerConfig(
            embedding_size=self.size,
            hidden_size=4 * self.size,
            encoder_layers=self.encoder,
            decoder_layers=self.decoder,
            heads=self.heads,
            dropout=0.1,
        )


SHAPES = [Shape(6, 6, 512), Shape(8, 2, 512), Shape(10, 2, 512), Shape(6, 2, 256, 4)]
ADDONS = {"": (), "+SPM": (SourcePredictionConfig(),)}


def made(shape: Shape, vocabulary: int, *addons: Any) -> System:
    return build(SystemConfig.of(shape.config(), *addons), vocabulary, 1, XavierInit())


def seconds(work: Callable[..., object], *arguments: Any, **named: Any) -> float:
    began = time.perf_counter()
    work(*arguments, **named)
    wait()
    return time.perf_counter() - began


def wait() -> None:
    if CUDA:
        torch.cuda.synchronize()


# --- training -------------------------------------------------------------------------------------


def product_rate(side: int) -> float:
    """Operations a second of a product of square matrices in bfloat16."""
    one, other = (torch.randn(side, side, device=DEVICE, dtype=torch.bfloat16) for _ in "ab")
    for _ in range(3):
        one @ other
    wait()
    return 2 * side**3 / statistics.median(seconds(torch.mm, one, other) for _ in range(10))


class Learner:
    """A system that takes the same step over and over."""

    def __init__(self, model: System, options: argparse.Namespace) -> None:
        self.model = model.to(DEVICE).train()
        self.model.label_smoothing = 0.1
        number = max(1, options.tokens // options.source)
        numbers = torch.Generator().manual_seed(1)
        ids = torch.randint(4, options.vocabulary, (number, options.source), generator=numbers)
        rows = [(row, row[: options.headline - 1]) for row in ids.tolist()]
        self.pairs = self.model.pairs(Batch.of(rows))
        rate = torch.tensor(1e-4, device=DEVICE) if CUDA else 1e-4
        self._optimizer = torch.optim.Adam(
            self.model.parameters(), rate, fused=True, capturable=CUDA
        )
        self._bfloat16 = options.bfloat16

    def learn(self, num_steps: int) -> None:
        """Take some steps."""
        for _ in range(num_steps):
            self.step()

    def step(self) -> None:
        """Forward, backward, clipping, Adam."""
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=self._bfloat16):
            losses = self.model(self.pairs)
        losses.total().sum().div(len(self.pairs.sources)).backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self._optimizer.step()
        self._optimizer.zero_grad()

    def operations(self) -> int:
        """Those of a step, as torch counts them."""
        with kernel_mode("plain"), FlopCounterMode(display=False) as counter:
            self.step()
        return int(counter.get_total_flops())


def steps(options: argparse.Namespace) -> None:
    rate = product_rate(options.side)
    print(f"a product of {options.side} x {options.side}: {rate / 1e12:.1f} TFLOP/s, bfloat16\n")
    rows = []
    for shape in options.shapes:
        for name, addons in ADDONS.items():
            learner = Learner(made(shape, options.vocabulary, *addons), options)
            operations = learner.operations()
            took: dict[str, list[float]] = {mode: [] for mode in ("plain", "fused")}
            for turn in range(options.turns + 1):
                for mode, times in took.items():
                    with kernel_mode(mode):  # type: ignore[arg-type]
                        spent = seconds(learner.learn, options.repeat)
                    if turn:  # the first one compiles
                        times.append(spent / options.repeat)
            for mode, times in took.items():
                middle = statistics.median(times)
                part = operations / rate / middle
                rows.append(
                    [
                        shape.label + name,
                        {"plain": "plain", "fused": "fast"}[mode],
                        f"{1e3 * middle:,.1f}",
                        f"{operations / 1e12:.2f}",
                        f"{operations / middle / 1e12:,.1f}",
                        f"{part:.3f}",
                        f"{len(learner.pairs.sources) / middle:,.0f}",
                    ]
                )
    heads = ["layers, size", "kernels", "ms", "TFLOP", "TFLOP/s", "of the rate", "pairs/s"]
    print("\n".join(table(heads, rows, 2)))


# --- headlines ------------------------------------------------------------------------------------


def forced(beam: int) -> Options:
    return Options(
        search=SearchConfig(beam=beam, min_length=LENGTH, max_length=LENGTH, block_ngrams=0),
        check=False,
        constrain=False,
    )


def texts_of(options: argparse.Namespace) -> list[str]:
    lines = options.ledes.read_text("utf-8").splitlines()
    if not lines:
        raise CorpusError(f"{options.ledes} has no ledes; name a file with one in each line")
    return list(islice(cycle(lines), options.number))


def headliners(options: argparse.Namespace, device: str) -> Iterator[tuple[str, Headliner]]:
    """The bundled model in each precision, and a Transformer of each shape."""
    precisions = CPU_PRECISIONS if device == "cpu" else ["float32", "float16"]
    for precision in precisions:
        loaded = Headliner.load(options.model, precision=precision, device=device)
        yield f"{BUNDLED}, {precision}", loaded
    tokenizer = Tokenizer.load(options.model)
    for shape in options.shapes:
        model = made(shape, tokenizer.vocabulary_size).to(device).eval()
        for precision in precisions if device == "cpu" else ["float32"]:
            loaded = Headliner([ModelBundle(model, tokenizer)], precision)
            yield f"Transformer {shape.label}, {precision}", loaded


def search(options: argparse.Namespace) -> None:
    texts, rows = texts_of(options), []
    for name, one in headliners(options, DEVICE.type):
        for beam in (5, 20):
            one.generate_batch(texts[:64], forced(beam))
            took = [seconds(one.generate_batch, texts, forced(beam)) for _ in range(2)]
            rows.append([name, str(beam), f"{min(took):.2f}", f"{len(texts) / min(took):,.0f}"])
    print(f"{len(texts):,} ledes\n")
    print("\n".join(table(["system", "beam", "s", "ledes/s"], rows, 1)))


def num_parameters(headliner: Headliner) -> int:
    """How many weights a model has, whatever runs it."""
    model = headliner.models[0].model
    if isinstance(model, EngineSystem):
        return model.num_parameters
    return sum(one.numel() for one in model.parameters())


def write(options: argparse.Namespace) -> None:
    texts = texts_of(options)
    contenders = dict(headliners(options, "cpu"))
    rates: dict[tuple[str, int], list[float]] = {}
    alone: dict[tuple[str, int], list[float]] = {}
    for turn in range(options.turns + 1):
        for name, one in contenders.items():
            for beam in (5, 20):
                some = texts if turn else texts[:4]  # the first turn only warms up
                took = seconds(one.generate_batch, some, forced(beam))
                few = some[: options.alone]
                each = [seconds(one, text, options=forced(beam)) for text in few]
                if turn:
                    rates.setdefault((name, beam), []).append(len(some) / took)
                    alone.setdefault((name, beam), []).extend(each)
    base = {beam: rates[next(iter(contenders)), beam] for beam in (5, 20)}
    rows = []
    for (name, beam), found in rates.items():
        ratio = statistics.median(a / b for a, b in zip(found, base[beam], strict=True))
        size = num_parameters(contenders[name])
        cells = [name, f"{size / 1e6:.1f} M", str(beam), f"{statistics.median(found):.1f}"]
        rows.append([*cells, f"{ratio:.2f}", f"{1e3 * statistics.median(alone[name, beam]):.0f}"])
    print(f"{len(texts)} ledes, {options.turns} turns, {num_threads()} threads\n")
    heads = ["system", "parameters", "beam", "headlines/s", "of the first", "one alone, ms"]
    print("\n".join(table(heads, rows, 1)))


PARTS = {"steps": steps, "search": search, "write": write}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--ledes", type=Path, help="a file of ledes, a line each")
    parser.add_argument("--model", default="shipped", help="beside which Transformers write")
    parser.add_argument("--number", type=int, default=96, help="of ledes, over and over")
    parser.add_argument("--alone", type=int, default=5, help="ledes written alone, a turn")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=10, help="steps of a turn")
    parser.add_argument("--tokens", type=int, default=40_000, help="source tokens of a step")
    parser.add_argument("--source", type=int, default=39, help="tokens of a lede")
    parser.add_argument("--headline", type=int, default=19, help="tokens of a headline and <eos>")
    parser.add_argument("--vocabulary", type=int, default=8052)
    parser.add_argument("--side", type=int, default=8192, help="of the product that is the rate")
    parser.add_argument("--float32", dest="bfloat16", action="store_false", help="train in float32")
    parser.set_defaults(shapes=SHAPES)
    small = {"tokens": 20, "source": 5, "headline": 4, "vocabulary": 40, "side": 64, "repeat": 1}
    counts = {"number": 2, "alone": 1, "turns": 1, "bfloat16": False}
    shapes = [Shape(1, 1, 8, 2), Shape(2, 1, 8, 2)]
    quick.offer(parser, ledes=tiny.ledes, model=tiny.model, shapes=shapes, **small, **counts)
    options = parser.parse_args()
    warnings.simplefilter("ignore", EngineWarning)  # a GPU may have no engine for them
    chosen = options.parts or list(PARTS)
    for one in {*chosen} - {*PARTS}:
        parser.error(f"there is no {one}")
    if options.ledes is None and {"search", "write"} & {*chosen}:
        parser.error("search and write want --ledes")
    print(f"{described()}\n{accelerator()}\n")
    try:
        for part in chosen:
            print(f"## {part}\n", flush=True)
            PARTS[part](options)
    except (LedelineError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
