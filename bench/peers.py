"""How fast two public toolkits generate headlines on a CPU: OpenNMT-py and Eole.

    python bench/peers.py --peer eole [--beam N] [--length N] [--batch N] [--threads N] [--turns N]

Each runs in an environment of its own, build/peers/NAME, made on the first run: the torch that
constraints.txt names, the toolkit without what it asks for, and the few packages that generating
needs. Another bench calls `measure`. To take turns with the peers it calls it several times with
one turn each; start, building and a first pass over all sources never count.

The model has random weights and the paper's sizes: 5,131 types, embeddings of 200, 2 layers in the
encoder, 2 in the decoder with input feeding, 400 wide, "general" attention. Each toolkit builds it,
saves it and loads it into its own inference engine. The differences to ours:

- the two directions of their encoders are 200 wide and joined; ours are 400 wide and summed, so our
  encoder does more;
- Eole does not tell its encoder where a short source of a batch ends;
- neither has the sGate or the SPM.

Both run in float32, sort the sources by length themselves, keep the best headline alone and have no
length penalty, which saves a pass over the scores. Eole adds no position encodings, which its RNNs
have by default. Their other ways do not work for this model on a CPU: 8 bits are an error in Eole
0.6.4 and, by its source, do nothing in OpenNMT-py 3.5.1, and Eole cannot compile an RNN. bfloat16
was not tried.

All headlines are N words long: the end is forbidden before, and there they are cut. The worker
checks it. Latency is the time of one source alone, the preparation of its batch included, as a
service would see it.

--quick takes the toolkits that are installed, and a stand-in that only waits.
"""

import argparse
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import quick
from machine import described
from toolkits import ALL, NUM_SPECIALS, PEERS, STAND_IN, VOCABULARY, Generate

ROOT = Path(__file__).resolve().parent.parent
FOLDER, MARK = ROOT / "build" / "peers", ".installed"
CONSTRAINTS = ROOT / "constraints.txt"
TAIL = 3000  # characters of what a failed program said


class PeerError(Exception):
    """A peer could not be installed or measured."""


def main() -> None:
    options = read_options()
    if options.worker:
        with contextlib.redirect_stdout(sys.stderr):  # the toolkits may print
            result = work(options)
        print(json.dumps(result))
        return
    dice = random.Random(1)
    lengths = [round(dice.triangular(20, 60, 37)) for _ in range(options.sources)]
    sources = [[dice.randrange(NUM_SPECIALS, VOCABULARY) for _ in range(n)] for n in lengths]
    names = ("beam", "length", "batch", "threads", "turns", "alone")
    settings = {name: getattr(options, name) for name in names}
    peers = [options.peer] if options.peer else [*installed(), STAND_IN]
    try:
        results = [measure(peer, sources, **settings) for peer in peers]
    except PeerError as error:
        sys.exit(str(error))
    print(described())
    print(f"torch {results[0]['torch']}, {results[0]['threads']} threads")
    print(f"{len(sources)} sources of {min(lengths)} to {max(lengths)} words, ", end="")
    print(f"{statistics.mean(lengths):.1f} in the mean, in batches of {options.batch}; ", end="")
    print(f"beam {options.beam}, headlines of {options.length} words\n")
    for result in results:
        print_table(result)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--peer", choices=PEERS, help="measure it on synthetic sources")
    what.add_argument("--worker", choices=ALL, help="what measure runs, with Python of the peer")
    parser.add_argument("--input", type=Path, help="of the worker: ids, one source in a line")
    parser.add_argument("--sources", type=int, default=200, help="how many synthetic ones")
    parser.add_argument("--beam", type=int, default=20)
    parser.add_argument("--length", type=int, default=18, help="words of each headline")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--alone", type=int, default=20, help="how many sources for the latency")
    what.required = not quick.offer(parser, sources=4, beam=2, batch=2, threads=1, turns=1, alone=2)
    options = parser.parse_args()
    if options.worker and not options.input:
        parser.error("--worker needs --input")
    return options


def print_table(result: dict[str, Any]) -> None:
    columns = {"sentences/s": result["sentences_per_second"], "one alone, ms": result["latency_ms"]}
    columns = {name: values for name, values in columns.items() if values}
    print(" " * 18, end="")
    for name in columns:
        print(f"{f'{name}, median':>24}{'lowest':>9}{'highest':>9}", end="")
    print(f"\n{result['peer']:18}", end="")
    for values in columns.values():
        print(f"{statistics.median(values):24.1f}{min(values):9.1f}{max(values):9.1f}", end="")
    print()


def installed() -> Iterator[str]:
    """The peers that are there; of the others it is said that they are left out."""
    for peer in PEERS:
        if is_installed(FOLDER, peer):
            yield peer
        else:
            print(f"{peer} is left out, for it is not installed; --peer {peer} installs it")


# --- for other benches --------------------------------------------------------------------------


def measure(
    peer: str,
    sources: Sequence[Sequence[int]],
    *,
    beam: int,
    length: int,
    batch: int,
    threads: int,
    turns: int,
    alone: int = 20,
    folder: Path = FOLDER,
) -> dict[str, Any]:
    """Let a peer generate headlines of all sources `turns` times, and of `alone` single ones.

    The result has "peer", "sentences_per_second" (of each turn), "latency_ms" (of each source
    alone), "output_lengths" (the shortest and the longest), "torch" and "threads".
    """
    for number, source in enumerate(sources):
        if not source or min(source) < NUM_SPECIALS or max(source) >= VOCABULARY:
            raise PeerError(
                f"source {number} is empty or has an id outside {NUM_SPECIALS} to {VOCABULARY - 1}"
            )
    python = make_environment(folder, peer)
    settings = {"beam": beam, "length": length, "batch": batch, "threads": threads}
    settings |= {"turns": turns, "alone": alone}
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / "sources.txt"
        file.write_text("".join(" ".join(map(str, source)) + "\n" for source in sources))
        command = [python, "-W", "ignore", Path(__file__), "--worker", peer, "--input", file]
        command += [f"--{name}={value}" for name, value in settings.items()]
        said = run(f"the worker of {peer}", command, OMP_NUM_THREADS=str(threads))
    try:
        return dict(json.loads(said))
    except ValueError:
        raise PeerError(f"the worker of {peer} gave no result but: {said[-TAIL:]}") from None


def make_environment(folder: Path, peer: str) -> Path:
    """The Python of a peer, in `folder / peer`; installs it there if it is missing or another."""
    if peer == STAND_IN:
        return Path(sys.executable)
    if peer not in PEERS:
        raise PeerError(f"there is no peer {peer}, only {', '.join(PEERS)}")
    place, known = folder.resolve() / peer, PEERS[peer]
    python = place / "bin" / "python"
    if is_installed(folder, peer):
        return python
    print(f"installing {known.title} in {place}", file=sys.stderr)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(f"making {place}", [sys.executable, "-m", "venv", "--clear", place])
    needs = ["--constraint", CONSTRAINTS, "torch", *known.needs]
    run(f"installing what {known.title} needs", [*pip, *needs])
    run(f"installing {known.title}", [*pip, "--no-deps", known.requirement])
    (place / MARK).write_text(wanted(peer))
    return python


def is_installed(folder: Path, peer: str) -> bool:
    """Whether a peer is there as it is wanted now."""
    mark = folder / peer / MARK
    return mark.exists() and mark.read_text() == wanted(peer)


def wanted(peer: str) -> str:
    """What is to be installed for a peer."""
    known = PEERS[peer]
    return "\n".join([known.requirement, *known.needs, CONSTRAINTS.read_text()])


def run(what: str, command: Sequence[str | Path], **variables: str) -> str:
    """What a command prints."""
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | variables
    )
    if done.returncode:
        said = done.stderr.strip()[-TAIL:]
        raise PeerError(f"{what} failed with status {done.returncode}, and said:\n{said}")
    return done.stdout


# --- the worker ---------------------------------------------------------------------------------


def work(options: argparse.Namespace) -> dict[str, Any]:
    lines = options.input.read_text().splitlines()
    sources = [" ".join(f"t{number}" for number in line.split()) for line in lines]
    some = sources[:: max(1, len(sources) // max(1, options.alone))][: options.alone]
    lengths: set[int] = set()

    def timed(generate: Generate, sources: list[str]) -> float:
        begin = time.perf_counter()
        headlines = generate(sources)
        seconds = time.perf_counter() - begin
        assert len(headlines) == len(sources), (len(headlines), len(sources))
        lengths.update(len(headline.split()) for headline in headlines)
        return seconds

    with tempfile.TemporaryDirectory() as folder:
        generate = ALL[options.worker].load(Path(folder), options)
        timed(generate, sources)  # the first time warms up
        seconds = [timed(generate, sources) for _ in range(options.turns)]
        alone = [timed(generate, [source]) for source in some[:1] + some][1:]
    if lengths != {options.length}:
        raise SystemExit(f"headlines have {sorted(lengths)} words instead of {options.length}")
    return {
        "peer": ALL[options.worker].title,
        "sentences_per_second": [len(sources) / each for each in seconds],
        "latency_ms": [1000 * each for each in alone],
        "output_lengths": [min(lengths), max(lengths)],
        "torch": version("torch"),
        "threads": options.threads,
    }


if __name__ == "__main__":
    main()
