"""How fast a system trains, next to the same system as one would write it first.

    python bench/train.py [--batch N] [--source-length N] [--headline-length N] [--turns N]

At the sizes of the paper; on the GPU if there is one, with products in bfloat16, else on the CPU. A
step is forward, backward, clipping and Adam. Three do it in turn, so that a slow moment of the
machine hits them alike, and each has done it once before:

- plain eager: a decoder of nn.LSTMCell, one step after the other, with the output layer, the loss
  and the SPM in each; it is written below. The encoder is nn.LSTM, as ours;
- ours, autograd: ledeline, with the gradients of the decoder's steps left to autograd;
- ours.

First their losses are compared: the same weights must give the same. In each turn a large product
of matrices is timed, too. "Of the rate" is the time that the products of a training step would take
at the rate of that one, over the time of the whole step. "Peak" is the most memory in a step beyond
what was there before it, so without weights and Adam's moments.

Then one step of the search, of EncDec+sGate+SPM and of the same weights without the SPM.
"""

import argparse
import contextlib
import ctypes
import math
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_

import quick
import tiny
from ledeline.data.dataset import Batch
from ledeline.model.addons.sgate import SelectiveGateConfig
from ledeline.model.addons.spm import SourcePredictionConfig
from ledeline.model.build import build
from ledeline.model.pairs import Pairs
from ledeline.model.system_config import SystemConfig
from ledeline.model.systems.encdec import EncDec, EncDecConfig
from ledeline.search.step_model import map_tensors
from ledeline.text.subwords import BOS, SPECIALS
from machine import described

SOURCES, HYPOTHESES = 32, 20  # of the search
CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"


class Sizes(NamedTuple):
    """Of the systems, by default those of the paper, and of the large product."""

    vocabulary: int = 5131
    model: EncDecConfig = EncDecConfig()
    product: int = 8192 if CUDA else 3072  # rows and columns


QUICK = Sizes(50, tiny.MODEL, 64)


def main() -> None:
    options = read_options()
    sizes = QUICK if options.quick else Sizes()
    print(described())
    where = torch.cuda.get_device_name() if CUDA else f"{torch.get_num_threads()} threads"
    print(f"torch {torch.__version__}, {where}")
    for add_ons in (False, True):
        train(options, sizes, add_ons)
    search(options, sizes)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--source-length", type=int, default=44)
    parser.add_argument("--headline-length", type=int, default=13, help="without <eos>")
    parser.add_argument("--turns", type=int, default=5)
    quick.offer(parser, batch=8, source_length=6, headline_length=3, turns=1)
    return parser.parse_args()


def system(sizes: Sizes, *, gate: bool, spm: bool) -> EncDec:
    addons = [SelectiveGateConfig()] * gate + [SourcePredictionConfig()] * spm
    return build(SystemConfig.of(sizes.model, *addons), sizes.vocabulary)


def random_ids(sizes: Sizes, *shape: int) -> Tensor:
    dice = torch.Generator().manual_seed(1)
    return torch.randint(len(SPECIALS), sizes.vocabulary, shape, generator=dice)


# --- training -----------------------------------------------------------------------------------


def train(options: argparse.Namespace, sizes: Sizes, add_ons: bool) -> None:
    ours = system(sizes, gate=add_ons, spm=add_ons).to(DEVICE)
    autograd = system(sizes, gate=add_ons, spm=add_ons).to(DEVICE)
    autograd.decoder.autograd_only = True
    textbook = Textbook(ours).to(DEVICE)
    shapes = options.source_length, options.headline_length
    sources, headlines = (random_ids(sizes, options.batch, length).tolist() for length in shapes)
    pairs = ours.pairs(Batch.of(list(zip(sources, headlines, strict=True))))
    models = {"plain eager": textbook, "ours, autograd": autograd, "ours": ours}
    compare({name: loss(model.eval(), pairs).item() for name, model in models.items()})
    runs = {name: training_step(model.train(), pairs) for name, model in models.items()}
    seconds = measure(runs | {"product": product(sizes)}, options.turns)
    peaks = {name: peak(run) for name, run in runs.items()}
    rate = 2 * sizes.product**3 / statistics.median(seconds.pop("product"))
    lengths = f"{options.batch} pairs of {shapes[0]} and {shapes[1]} sub-words"
    work = num_operations(ours, pairs)
    print(
        f"\n{ours.config.name}: {lengths}, {pairs.targets.shape[1]} steps of the decoder; ", end=""
    )
    print(f"{work / 1e9:,.1f} GFLOP a step, the large product at {rate / 1e9:,.1f} GFLOP/s")
    print_training(seconds, peaks, options.batch, work / rate)


def loss(model: nn.Module, pairs: Pairs) -> Tensor:
    found = model(pairs)
    return found.mean() if isinstance(found, Tensor) else found.total().mean()


def compare(losses: dict[str, float]) -> None:
    for name, value in losses.items():
        if abs(value / losses["ours"] - 1) > 1e-4:
            raise SystemExit(f"these are not the same system: {losses}, see {name}")


def training_step(model: nn.Module, pairs: Pairs, **of_adam: float) -> Callable[[], None]:
    optimizer = torch.optim.Adam(model.parameters(), **of_adam)

    def step() -> None:
        with torch.autocast(DEVICE, torch.bfloat16, enabled=CUDA):
            total = loss(model, pairs)
        optimizer.zero_grad()
        total.backward()
        clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()

    return step


def product(sizes: Sizes) -> Callable[[], object]:
    dtype = torch.bfloat16 if CUDA else torch.float32
    left, right = torch.randn(2, sizes.product, sizes.product, device=DEVICE, dtype=dtype)
    found = torch.empty_like(left)
    return lambda: torch.mm(left, right, out=found)


def num_operations(model: EncDec, pairs: Pairs) -> int:
    """Additions and multiplications of the products in a step, those of the way back included."""
    sizes = model.config.system
    d, h, layers = sizes.embedding_size, sizes.hidden_size, sizes.layers
    v, (b, i), (_, j) = model.vocabulary, pairs.sources.shape, pairs.targets.shape
    encoder = i * 2 * 4 * h * (d + h + (layers - 1) * 2 * h)
    gate = (i + 1) * h * h if "sgate" in model.addons else 0
    decoder = j * 4 * h * (d + 2 * h + (layers - 1) * 2 * h)
    attention = i * h * h + j * (2 * i * h + 2 * h * h)
    heads = j * h * v * len(model.loss_names)
    return 3 * 2 * b * (encoder + gate + decoder + attention + heads)


# --- measuring ----------------------------------------------------------------------------------


def measure(runs: dict[str, Callable[[], object]], turns: int) -> dict[str, list[float]]:
    """Seconds of every turn."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(turns + 1):
        for name, run in runs.items():
            begin = time.perf_counter()
            run()
            if CUDA:
                torch.cuda.synchronize()
            if turn:  # the first one warms up
                seconds[name].append(time.perf_counter() - begin)
    return seconds


def peak(run: Callable[[], object]) -> float:
    """The most bytes in a run beyond what was there before it; on a CPU only Linux tells."""
    if CUDA:
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run()
        return torch.cuda.max_memory_allocated() - before
    if not sys.platform.startswith("linux"):
        return math.nan
    with contextlib.suppress(AttributeError):  # a C library that keeps nothing back
        ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    high_before = high_water()
    run()
    return high_water() - high_before


def high_water() -> float:
    """The most bytes of this process since its mark was last reset."""
    lines = (line.split() for line in Path("/proc/self/status").read_text().splitlines())
    return next(int(line[1]) * 1024.0 for line in lines if line[0] == "VmHWM:")


def print_training(
    seconds: dict[str, list[float]], peaks: dict[str, float], batch: int, least: float
) -> None:
    print(f"{'':16}{'pairs/s, median':>16}{'lowest':>9}{'highest':>9}{'times plain':>16}", end="")
    print(f"{'of the rate':>13}{'peak, GiB':>11}")
    plain = seconds["plain eager"]
    for name, values in seconds.items():
        median = statistics.median(values)
        ratio = statistics.median(first / own for first, own in zip(plain, values, strict=True))
        speeds = [batch / value for value in (median, max(values), min(values))]
        print(f"{name:16}{speeds[0]:16,.1f}{speeds[1]:9,.1f}{speeds[2]:9,.1f}{ratio:16.2f}", end="")
        print(f"{least / median:13.2f}{peaks[name] / 2**30:11.2f}")


# --- the search ---------------------------------------------------------------------------------


@torch.inference_mode()
def search(options: argparse.Namespace, sizes: Sizes) -> None:
    trained = system(sizes, gate=True, spm=True).to(DEVICE).eval()
    without = system(sizes, gate=True, spm=False).to(DEVICE).eval()
    without.load_state_dict(trained.state_dict(), strict=False)
    sources = random_ids(sizes, SOURCES, options.source_length).to(DEVICE)
    words = random_ids(sizes, SOURCES, HYPOTHESES).to(DEVICE)
    runs = {
        "with the SPM": searching_step(trained, sources, words),
        "without": searching_step(without, sources, words),
    }
    seconds = measure(runs, 10 * options.turns)
    print(f"\none step of the search, {SOURCES} sources x {HYPOTHESES} hypotheses")
    print(f"{'':16}{'ms, median':>16}{'lowest':>9}{'highest':>9}{'of without':>16}")
    for name, values in seconds.items():
        ratio = statistics.median(a / b for a, b in zip(values, seconds["without"], strict=True))
        low, high, middle = (1000 * f(values) for f in (min, max, statistics.median))
        print(f"{name:16}{middle:16.2f}{low:9.2f}{high:9.2f}{ratio:16.3f}")


def searching_step(model: EncDec, sources: Tensor, words: Tensor) -> Callable[[], object]:
    start, memory = model.encode(sources)
    state = map_tensors(start, lambda one: one.repeat(1, HYPOTHESES, 1))  # (B, 1, H) -> (B, K, H)
    return lambda: model.step(words, state, memory)


# --- the textbook's system ----------------------------------------------------------------------


class Textbook(nn.Module):
    """The equations of the paper in their order, with the parts that torch has."""

    def __init__(self, ours: EncDec) -> None:
        super().__init__()
        sizes, v = ours.config.system, ours.vocabulary
        d, h, layers = sizes.embedding_size, sizes.hidden_size, sizes.layers
        widths = [d] + [h] * (layers - 1)
        self.config, self.rate = ours.config, sizes.dropout
        self.source_embedding, self.embedding = nn.Embedding(v, d), nn.Embedding(v, d)
        self.encoder = nn.ModuleList(
            nn.LSTM(width, h, batch_first=True, bidirectional=True) for width in widths
        )
        self.of_state, self.of_sentence = nn.Linear(h, h, bias=False), nn.Linear(h, h)
        self.cells = nn.ModuleList(nn.LSTMCell(width, h) for width in [d + h] + [h] * (layers - 1))
        self.bilinear, self.mix = nn.Linear(h, h, bias=False), nn.Linear(2 * h, h, bias=False)
        self.output, self.source_output = nn.Linear(h, v), nn.Linear(h, v)
        self.take(ours)

    @torch.no_grad()
    def take(self, ours: EncDec) -> None:
        """The same weights as ours."""
        decoder = ours.decoder
        self.source_embedding.load_state_dict(ours.encoder.embedding.state_dict())
        self.embedding.load_state_dict(decoder.embedding.state_dict())
        self.encoder.load_state_dict(ours.encoder.layers.state_dict())
        for cell, layer in zip(self.cells, [decoder.first, *decoder.upper], strict=True):
            weight, bias = layer.state_dict().values()
            below, own = weight[:, : -len(bias) // 4], weight[:, -len(bias) // 4 :]
            biases = {"bias_ih": bias, "bias_hh": torch.zeros_like(bias)}
            cell.load_state_dict({"weight_ih": below, "weight_hh": own, **biases})
        self.bilinear.weight.copy_(decoder.attention.bilinear)
        self.mix.load_state_dict(decoder.attention.mix.state_dict())
        self.output.load_state_dict(ours.output.state_dict())
        if "sgate" in ours.addons:
            self.of_state.load_state_dict(ours.gate.of_state.state_dict())
            self.of_sentence.load_state_dict(ours.gate.of_sentence.state_dict())
        if "spm" in ours.addons:
            self.source_output.load_state_dict(ours.spm.output.state_dict())

    def forward(self, pairs: Pairs) -> Tensor:
        """The loss of each pair, (B,); all sources have one length."""
        states, hidden, cell = self.encode(pairs.sources)
        z = torch.zeros_like(hidden[0])
        words = torch.full_like(pairs.targets[:, 0], BOS)
        total: Tensor | float = 0.0
        x = functional.one_hot(pairs.sources, self.output.out_features).sum(1)
        difference = -x.float()  # of q~ and x~
        for targets in pairs.targets.unbind(1):
            z = self.step(words, z, states, hidden, cell)
            dropped = self.dropout(z)
            logits = self.output(dropped)
            total = total + functional.cross_entropy(logits, targets, reduction="none")
            if "spm" in self.config.addons:
                difference = difference + self.source_output(dropped).softmax(-1)
            words = targets
        if "spm" in self.config.addons:
            total = total + difference.square().sum(1) / self.config.addons["spm"].c
        return torch.as_tensor(total)

    def encode(self, sources: Tensor) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """The states (B, I, H), and what each layer of the decoder starts from."""
        states, hidden, cell = self.source_embedding(sources), [], []
        for layer in self.encoder:
            both, (h, c) = layer(self.dropout(states))
            forward, backward = both.chunk(2, -1)
            states = forward + backward
            hidden.append(h.sum(0))
            cell.append(c.sum(0))
        if "sgate" in self.config.addons:
            sentence = self.of_sentence(hidden[-1]).unsqueeze(1)
            states = states * torch.sigmoid(self.of_state(states) + sentence)
        return states, hidden, cell

    def step(
        self, words: Tensor, z: Tensor, states: Tensor, hidden: list[Tensor], cell: list[Tensor]
    ) -> Tensor:
        """The next z_j (B, H); hidden states and cells are replaced in their lists."""
        value = torch.cat([self.dropout(self.embedding(words)), z], -1)
        for number, layer in enumerate(self.cells):
            hidden[number], cell[number] = layer(value, (hidden[number], cell[number]))
            value = self.dropout(hidden[number])
        query = hidden[-1]
        scores = torch.bmm(self.bilinear(query).unsqueeze(1), states.transpose(1, 2))  # (B, 1, I)
        context = torch.bmm(scores.softmax(-1), states).squeeze(1)
        return torch.tanh(self.mix(torch.cat([context, query], -1)))

    def dropout(self, values: Tensor) -> Tensor:
        """Dropout in training."""
        return functional.dropout(values, self.rate, self.training)


if __name__ == "__main__":
    main()
