"""Headlines on a CPU: speed beside two public toolkits, what int8 costs, start-up and memory.

- `speed`: sentences a second and the latency of one alone, of a system of the paper's size with
  beam 20, outputs forced to 18 sub-words and not checked; ours from text to headlines, in int8 by
  each kind of CPU that this one can stand for, the toolkits' (see peers.py) on the same sub-words.
  All take a turn, one after another, then again; ratios are of the same turn.
- `limits`: what the engine reached, beside what the machine could: multiply-adds a second, and
  bytes of weights a second beside the rate at which memory is read.
- `beams`: headlines a second of a stream, by the size of the beam, as long as they come.
- `quality`: ROUGE of float32 and int8 on the same pairs.
- `start`: from the command to its first headline, in a process of its own each time, beside a
  process of Python that does nothing.
- `memory`: the most memory that `ledeline generate` needs for files of several sizes, and that of
  `ledeline serve` after some requests.

`--kinds` names kinds of CPU (docs/runtime.md); without it `speed` takes all but `portable`, the
others the fastest alone.
"""

import argparse
import os
import statistics
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import torch

import quick
import tiny
from clock import ratio, seconds, spread
from ledeline import rouge
from ledeline.config import SearchConfig
from ledeline.config.search import Precision
from ledeline.corpus.tables import read_table
from ledeline.data.dataset import padded
from ledeline.inference.engine_bundle import EngineBundle, read_engine_bundle
from ledeline.inference.headliner import Headliner, Options
from ledeline.inference.threads import VARIABLE as THREADS
from ledeline.model.format.model_folder import load_model
from ledeline.runtime.cpu import KINDS, VARIABLE, kinds
from ledeline.search import search
from ledeline.text.tokenizer import Tokenizer
from machine import described
from peers import PeerError, measure
from processes import memory_tables, start_table
from toolkits import PEERS, STAND_IN

LENGTH, BATCH = 18, 32
FORCED = SearchConfig(beam=20, min_length=LENGTH, max_length=LENGTH)
Pairs = list[tuple[str, str]]


def pairs_of(options: argparse.Namespace, number: int) -> Pairs:
    """The first pairs of a table."""
    rows = read_table(options.pairs, lede="lede", headline="headline", date=None)
    return [(row.lede, row.headline) for row in islice(rows, number)]


def loaded(model: Path, precision: Precision, kind: str) -> Headliner:
    """A headliner whose engine is of a kind."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = kind
    try:
        return Headliner.load(model, precision=precision, device="cpu")
    finally:
        os.environ.pop(VARIABLE)
        if before is not None:
            os.environ[VARIABLE] = before


def asked(options: argparse.Namespace, *default: str) -> list[str]:
    """The kinds of CPU to measure, the fastest last."""
    return [kind for kind in kinds() if kind in (options.kinds or default)]


# --- speed --------------------------------------------------------------------------------------


class Ours:
    """From text to headlines."""

    def __init__(self, model: Path, precision: Precision, kind: str, texts: Sequence[str]) -> None:
        self.name, self._texts = f"ledeline, {precision}, {kind}", texts
        self._headliner = loaded(model, precision, kind)
        self._options = Options(search=FORCED, batch_size=BATCH, check=False)
        self._headliner.generate_batch(texts[:BATCH], self._options)

    def rate(self) -> float:
        """Sentences a second."""
        answer = self._headliner.generate_batch
        return len(self._texts) / seconds(lambda: answer(self._texts, self._options))

    def latencies(self, number: int) -> list[float]:
        """Seconds of some sentences, each alone."""
        one = self._headliner
        return [
            seconds(lambda t=text: one(t, options=self._options)) for text in self._texts[:number]
        ]


class Plain:
    """The module that is trained, searched as it is."""

    name = "ledeline, as trained"

    def __init__(self, model: Path, sources: Sequence[Sequence[int]]) -> None:
        self._model, self._sources = load_model(model).model, sorted(sources, key=len)
        self._search(sources[:2])

    def _search(self, sources: Sequence[Sequence[int]]) -> None:
        search(self._model, *padded(sources), FORCED)

    def rate(self) -> float:
        """Sentences a second."""
        starts = range(0, len(self._sources), BATCH)
        took = [seconds(lambda s=s: self._search(self._sources[s : s + BATCH])) for s in starts]
        return len(self._sources) / sum(took)

    def latencies(self, number: int) -> list[float]:
        """Seconds of some sentences, each alone."""
        some = self._sources[:: max(1, len(self._sources) // number)][:number]
        return [seconds(lambda s=source: self._search([s])) for source in some]


class Peer:
    """A toolkit in a process of its own."""

    def __init__(self, peer: str, sources: Sequence[Sequence[int]], threads: int) -> None:
        self.name, self._peer, self._sources, self._threads = peer, peer, sources, threads

    def _measured(self, alone: int) -> dict[str, list[float]]:
        result = measure(
            self._peer,
            self._sources,
            beam=20,
            length=LENGTH,
            batch=BATCH,
            threads=self._threads,
            turns=1,
            alone=alone,
        )
        self.name = result["peer"]
        return result

    def rate(self) -> float:
        """Sentences a second."""
        return self._measured(0)["sentences_per_second"][0]

    def latencies(self, number: int) -> list[float]:
        """Seconds of some sentences, each alone."""
        return [value / 1000 for value in self._measured(number)["latency_ms"]]


def speed(options: argparse.Namespace) -> None:
    texts = [lede for lede, _ in pairs_of(options, options.number)]
    tokenizer = Tokenizer.load(options.model)
    sources = [tokenizer.encode(tokenizer.words(text)) for text in texts]
    own = asked(options, *KINDS[1:]) or list(kinds())
    runners: list[Ours | Plain | Peer] = [
        *(Ours(options.model, "int8", kind, texts) for kind in own),
        Ours(options.model, "float32", own[-1], texts),
        Plain(options.model, sources),
    ]
    if not options.no_peers:
        largest = 5130  # of the toolkits' vocabulary
        runners += [
            Peer(peer, [[min(id_, largest) for id_ in row] for row in sources], options.threads)
            for peer in ([STAND_IN] if options.quick else PEERS)
        ]
    rates, alone = take_turns(runners, options)
    lengths = [len(source) for source in sources]
    print(
        f"{len(texts)} ledes of {statistics.mean(lengths):.1f} sub-words, {options.turns} turns\n"
    )
    print(
        "| | sentences/s, median | lowest | highest | of the best peer "
        "| alone, ms, median | lowest | highest | of the best peer |"
    )
    print(f"| --- |{' ---: |' * 8}")
    peers = [n for n, one in enumerate(runners) if isinstance(one, Peer) and n in rates]
    fastest = max(peers, key=lambda n: statistics.median(rates[n]), default=None)
    quickest = min(peers, key=lambda n: statistics.median(alone[n]), default=None)
    for number, values in rates.items():
        late = [1000 * value for value in alone[number]]
        cells = [
            *(f"{each:.1f}" for each in spread(values)),
            ratio(values, rates.get(fastest)),
            *(f"{each:.1f}" for each in spread(late)),
            ratio(alone[number], alone.get(quickest)),
        ]
        print(f"| {' | '.join([runners[number].name, *cells])} |")


Turns = dict[int, list[float]]  # of each runner by its number


def take_turns(
    runners: "Sequence[Ours | Plain | Peer]", options: argparse.Namespace
) -> tuple[Turns, Turns]:
    """The rate of each turn, and seconds of single sentences in the first and the last one."""
    rates: Turns = {}
    alone: Turns = {}
    for turn in range(options.turns):
        for number, runner in enumerate(runners):
            try:
                rates.setdefault(number, []).append(runner.rate())
                if turn in (0, options.turns - 1):
                    alone.setdefault(number, []).extend(runner.latencies(options.alone))
            except PeerError as error:
                rates.pop(number, None)
                print(f"{runner.name}: {error}", file=sys.stderr)
    return rates, alone


# --- limits -------------------------------------------------------------------------------------


def limits(options: argparse.Namespace) -> None:
    texts = [lede for lede, _ in pairs_of(options, options.number)]
    bundle = read_engine_bundle(options.model)
    if bundle is None:
        raise SystemExit(f"{options.model} is of no system of the engine")
    step, position = num_weights(bundle, "decoder.", "output."), num_weights(bundle, "encoder.")
    length = statistics.mean(len(bundle.tokenizer.encode(bundle.tokenizer.words(t))) for t in texts)
    products = step * FORCED.beam_size * (LENGTH + 1) + position * length  # of a headline
    memory = reading_rate(options.bytes)
    print(
        f"A step reads {step / 1e6:.1f} M weights; a headline takes {products / 1e9:.2f} G "
        f"multiply-adds. One thread reads memory at {memory / 1e9:.1f} GB/s.\n"
    )
    print(
        "| | G multiply-adds/s a thread | alone: G multiply-adds/s | GB/s of weights "
        "| of memory's rate |"
    )
    print("| --- | ---: | ---: | ---: | ---: |")
    own = asked(options, *KINDS[1:]) or list(kinds())
    for precision, kind in [*(("int8", kind) for kind in own), ("float32", own[-1])]:
        runner = Ours(options.model, precision, kind, texts)  # type: ignore[arg-type]
        rate = statistics.median(runner.rate() for _ in range(options.turns))
        alone = statistics.median(runner.latencies(options.alone))
        size = 1 if precision == "int8" else 4
        read = (step * (LENGTH + 1) + position) * size / alone
        both = [products * rate / options.threads, products / alone]
        cells = [*(f"{one / 1e9:.1f}" for one in (*both, read)), f"{read / memory:.2f}"]
        print(f"| {runner.name} | {' | '.join(cells)} |", flush=True)


def num_weights(bundle: EngineBundle, *prefixes: str) -> int:
    """How many weights of products the layers have; tables of words take no product."""
    return sum(
        one.shape[0] * one.shape[1]
        for name, one in bundle.model.tensors.items()
        if name.startswith(prefixes) and len(one.shape) == 2
        if not name.endswith(("embedding.weight", "bilinear", ".scale"))
    )


def reading_rate(size: int) -> float:
    """Bytes a second that a thread reads, the best of some times over more than all caches hold."""
    values = torch.ones(size // 8, dtype=torch.int64)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    best = min(seconds(values.sum) for _ in range(5))
    torch.set_num_threads(threads)
    return size / best


# --- beams --------------------------------------------------------------------------------------


def beams(options: argparse.Namespace) -> None:
    texts = [lede for lede, _ in pairs_of(options, options.number)]
    headliner = Headliner.load(options.model, device="cpu")
    rates: dict[int, list[float]] = {beam: [] for beam in (1, 5, 10, 20)}
    for beam in rates:
        headliner.generate_batch(texts[:BATCH], Options(search=SearchConfig(beam=beam)))
    for _ in range(options.turns):
        for beam, values in rates.items():
            took = seconds(lambda beam=beam: list(headliner.stream(texts, beam=beam)))
            values.append(len(texts) / took)
    print(f"{len(texts)} ledes, {headliner.precision}, {options.turns} turns\n")
    print("| beam | headlines/s, median | lowest | highest |\n| ---: | ---: | ---: | ---: |")
    for beam, values in rates.items():
        print(f"| {beam} | " + " | ".join(f"{each:.0f}" for each in spread(values)) + " |")


# --- quality ------------------------------------------------------------------------------------


def quality(options: argparse.Namespace) -> None:
    """By score alone, and as the model writes by default, if that is checked."""
    pairs = pairs_of(options, options.number)
    tokenizer = Tokenizer.load(options.model)
    references = [tokenizer.join(tokenizer.headline_words(head)) for _, head in pairs]
    settings = rouge.Settings(stem=False)
    ways = [("by score", Options(search=SearchConfig(beam=options.beam), check=False))]
    own = asked(options, kinds()[-1])
    precisions = [("float32", own[-1]), *(("int8", kind) for kind in own)]
    loaded_ones = [loaded(options.model, precision, kind) for precision, kind in precisions]  # type: ignore[arg-type]
    if loaded_ones[0].models[0].check:
        ways.append(("checked", replace(ways[0][1], check=None)))
    for way, wanted in ways:
        texts = [
            [one.text for one in headliner.stream((lede for lede, _ in pairs), options=wanted)]
            for headliner in loaded_ones
        ]
        same = sum(len(set(each)) == 1 for each in zip(*texts, strict=True))
        print(
            f"{len(pairs)} pairs, beam {options.beam}, {way}; {same} headlines are the same in all"
        )
        print("\n| | R-1 | R-2 | R-L |\n| --- | ---: | ---: | ---: |")
        for (precision, kind), found in zip(precisions, texts, strict=True):
            mean = rouge.mean(rouge.score_all(found, references, settings))
            each = (mean.rouge1, mean.rouge2, mean.rouge_l)
            values = " | ".join(f"{100 * one.f1:.2f}" for one in each)
            print(f"| {precision}, {kind} | {values} |")
        print()


# --- processes ----------------------------------------------------------------------------------


def start(options: argparse.Namespace) -> None:
    start_table(options, pairs_of(options, 1)[0][0])


def memory(options: argparse.Namespace) -> None:
    memory_tables(options, [lede for lede, _ in pairs_of(options, 10_000)])


PARTS = {
    "speed": speed,
    "limits": limits,
    "beams": beams,
    "quality": quality,
    "start": start,
    "memory": memory,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = f"some of {', '.join(PARTS)}; by default all"
    parser.add_argument("parts", nargs="*", metavar="PART", help=parts)
    parser.add_argument("--model", type=Path, required=True, help="a model folder")
    parser.add_argument("--pairs", type=Path, required=True, help="a table of ledes and headlines")
    parser.add_argument("--number", type=int, default=200, help="pairs of the table")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--alone", type=int, default=20, help="sentences one by one")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--beam", type=int, default=20)
    parser.add_argument("--lines", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--kinds", nargs="+", choices=kinds(), help="of CPUs")
    parser.add_argument("--requests", type=int, default=2_000, help="to the server")
    parser.set_defaults(before=1, folder=Path("build/memory"), callers=8, bytes=2**29)
    sizes = {"number": 8, "before": 0, "turns": 1, "alone": 2, "threads": 1, "beam": 2}
    sizes |= {"requests": 4, "callers": 2, "bytes": 2**20}
    given = {"model": tiny.model, "pairs": tiny.table, "folder": tiny.folder, "lines": [16]}
    quick.offer(parser, **given, **sizes)
    options = parser.parse_args()
    for part in {*options.parts} - {*PARTS}:
        parser.error(f"there is no part {part}")
    torch.set_num_threads(options.threads)
    os.environ[THREADS] = str(options.threads)  # of the engine, and of what is started
    print(f"{described()}, torch {torch.__version__}, {options.threads} threads")
    for part in options.parts or PARTS:
        print(f"\n## {part}\n")
        PARTS[part](options)


if __name__ == "__main__":
    main()
