"""Headlines on a CPU: speed beside two public toolkits, what int8 costs, start-up and memory.

- `speed`: sentences a second and the latency of one alone, of a system of the paper's size with
  beam 20, outputs forced to 18 sub-words; ours from text to headlines, the toolkits' (see peers.py)
  on the same sub-words. All take a turn, one after another, then again.
- `beams`: headlines a second of a stream, by the size of the beam, as long as they come.
- `quality`: ROUGE of float32 and int8 on the same pairs.
- `start`: from the command to its first headline, in a process of its own each time.
- `memory`: the most memory that `ledeline generate` needs for files of several sizes.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path

import torch

import quick
import tiny
from ledeline import rouge
from ledeline.config import SearchConfig
from ledeline.corpus.tables import read_table
from ledeline.data.dataset import padded
from ledeline.inference.headliner import Headliner, Options
from ledeline.model.format.model_folder import load_model
from ledeline.search import search
from machine import cpu_precisions, described
from peers import PeerError, measure
from toolkits import PEERS, STAND_IN

LENGTH, BATCH = 18, 32
FORCED = SearchConfig(beam=20, min_length=LENGTH, max_length=LENGTH)
Pairs = list[tuple[str, str]]


def pairs_of(options: argparse.Namespace, number: int) -> Pairs:
    """The first pairs of a table."""
    rows = read_table(options.pairs, lede="lede", headline="headline", date=None)
    return [(row.lede, row.headline) for row in islice(rows, number)]


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


# --- speed --------------------------------------------------------------------------------------


class Ours:
    """From text to headlines."""

    def __init__(self, model: Path, precision: str, texts: Sequence[str]) -> None:
        self.name, self._texts = f"ledeline, {precision}", texts
        self._headliner = Headliner.load(model, precision=precision, device="cpu")
        self._options = Options(search=FORCED, batch_size=BATCH)
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
    loaded = load_model(options.model)
    tokenizer = loaded.tokenizer
    sources = [tokenizer.encode(tokenizer.words(text)) for text in texts]
    runners: list[Ours | Plain | Peer] = [
        *(Ours(options.model, precision, texts) for precision in cpu_precisions()),
        Plain(options.model, sources),
    ]
    if not options.no_peers:
        largest = 5130  # of the toolkits' vocabulary
        runners += [
            Peer(peer, [[min(id_, largest) for id_ in row] for row in sources], options.threads)
            for peer in ([STAND_IN] if options.quick else PEERS)
        ]
    rates: dict[int, list[float]] = {}
    alone: dict[int, list[float]] = {}
    for turn in range(options.turns):
        for number, runner in enumerate(runners):
            try:
                rates.setdefault(number, []).append(runner.rate())
                if turn in (0, options.turns - 1):
                    alone.setdefault(number, []).extend(runner.latencies(options.alone))
            except PeerError as error:
                print(f"{runner.name}: {error}", file=sys.stderr)
    lengths = [len(source) for source in sources]
    print(
        f"{len(texts)} ledes of {statistics.mean(lengths):.1f} sub-words, {options.turns} turns\n"
    )
    print("| | sentences/s, median | lowest | highest | alone, ms, median | lowest | highest |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for number, values in rates.items():
        late = [1000 * value for value in alone[number]]
        print(
            f"| {runners[number].name} | "
            + " | ".join(f"{each:.1f}" for each in (*spread(values), *spread(late)))
            + " |"
        )


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    return statistics.median(values), min(values), max(values)


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
    pairs, scores, texts = pairs_of(options, options.number), {}, {}
    for precision in cpu_precisions():
        headliner = Headliner.load(options.model, precision=precision, device="cpu")
        wanted = Options(search=SearchConfig(beam=options.beam))
        tokenizer = load_model(options.model).tokenizer
        references = [tokenizer.join(tokenizer.headline_words(head)) for _, head in pairs]
        found = list(headliner.stream((lede for lede, _ in pairs), options=wanted))
        texts[precision] = [headline.text for headline in found]
        settings = rouge.Settings(stem=False)
        scores[precision] = rouge.mean(rouge.score_all(texts[precision], references, settings))
    same = sum(len(set(each)) == 1 for each in zip(*texts.values(), strict=True))
    alike = f"; {same} headlines are the same" if len(texts) > 1 else ""
    print(f"{len(pairs)} pairs, beam {options.beam}{alike}\n")
    print("| | R-1 | R-2 | R-L |\n| --- | ---: | ---: | ---: |")
    for precision, mean in scores.items():
        values = " | ".join(
            f"{100 * one.f1:.2f}" for one in (mean.rouge1, mean.rouge2, mean.rouge_l)
        )
        print(f"| {precision} | {values} |")


# --- start and memory ---------------------------------------------------------------------------


def generate_command(options: argparse.Namespace, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "ledeline", "generate", "--model", str(options.model), *arguments]


def start(options: argparse.Namespace) -> None:
    ((text, _),) = pairs_of(options, 1)
    command = generate_command(options, text)
    took = [
        seconds(lambda: subprocess.run(command, check=True, capture_output=True))
        for _ in range(options.before + options.turns)
    ][options.before :]  # the first fills the caches of the disk
    print(f"command to end: {statistics.median(took):.2f} s ({min(took):.2f} to {max(took):.2f})")


def memory(options: argparse.Namespace) -> None:
    texts = [lede for lede, _ in pairs_of(options, 10_000)]
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    print("| lines | peak memory, MiB | time, s | lines/s |\n| ---: | ---: | ---: | ---: |")
    for number in options.lines:
        given, written = folder / f"{number}.txt", folder / f"{number}.headlines.txt"
        given.write_text("".join(f"{text}\n" for text in islice(cycle(texts), number)))
        written.unlink(missing_ok=True)
        arguments = ["--input", given, "--output", written, "--beam", options.beam]
        took, peak = run_apart(generate_command(options, *map(str, arguments)))
        assert sum(1 for _ in lines_of(written)) == number
        print(f"| {number:,} | {peak / 2**20:.0f} | {took:.0f} | {number / took:.0f} |", flush=True)


def lines_of(path: Path) -> Iterator[str]:
    with path.open() as file:
        yield from file


def run_apart(command: list[str]) -> tuple[float, int]:
    """Time and the most memory of a command, of which a small process tells."""
    code = (
        "import json, resource, subprocess, sys, time; start = time.perf_counter();"
        "quiet = subprocess.DEVNULL;"
        "subprocess.run(sys.argv[1:], check=True, stdout=quiet, stderr=quiet);"
        "peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss;"
        "print(json.dumps([time.perf_counter() - start, peak]))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code, *command], check=True, stdout=subprocess.PIPE, text=True
    )
    took, peak = json.loads(shown.stdout)
    return took, peak * (1 if sys.platform == "darwin" else 1024)


PARTS = {"speed": speed, "beams": beams, "quality": quality, "start": start, "memory": memory}


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
    parser.set_defaults(before=1, folder=Path("build/memory"))
    sizes = {"number": 8, "before": 0, "turns": 1, "alone": 2, "threads": 1, "beam": 2}
    given = {"model": tiny.model, "pairs": tiny.table, "folder": tiny.folder, "lines": [16]}
    quick.offer(parser, **given, **sizes)
    options = parser.parse_args()
    for part in {*options.parts} - {*PARTS}:
        parser.error(f"there is no part {part}")
    torch.set_num_threads(options.threads)
    print(f"{described()}, torch {torch.__version__}, {options.threads} threads")
    for part in options.parts or PARTS:
        print(f"\n## {part}\n")
        PARTS[part](options)


if __name__ == "__main__":
    main()
