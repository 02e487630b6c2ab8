"""Headlines over HTTP: a server under load, beside the same texts without one.

    python bench/load.py --model MODEL --ledes LEDES [--callers 1 8 32 128] [--seconds 20]
    python bench/load.py --model MODEL --ledes LEDES --memory 20000

`ledeline serve` runs in a process of its own, and so do its callers (load_client.py), on the same
machine: each sends a text, waits for the answer, sends the next. Beside it, in each turn before and
after the callers, while nothing else runs: `Headliner.stream` on the same texts in this process.
Every answer is compared with the headline that came from there, field by field.

With `--memory`: so many requests, and what memory the server has after each thousand.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.request import urlopen

import quick
import tiny
from ledeline.inference.headliner import Headliner
from ledeline.inference.threads import num_threads
from ledeline.server.schemas import headline_as_dict
from load_client import busy
from machine import described
from rows import Column, Rows, Table

CLIENT: Final = Path(__file__).with_name("load_client.py")
WARM_UP: Final = 3.0  # seconds of each number of callers that do not count
EARLY: Final = 2000  # requests after which memory should stay where it is
SAMPLE: Final = 1000
MOST: Final = 100_000  # requests of each number of callers
# What a server is told beside its model: callers are never sent away.
ROOM: Final = (
    "--limits.waiting=100000",
    "--limits.seconds=600",
    "--server.shutdown_seconds=600",
    "--server.access_log=false",
)
SECONDS_AT_MOST: Final = 600.0
PEACE: Final = 0.15  # cores that others may have

SPEED: Final = (
    Column("turn", "turn", "d"),
    Column("callers", "callers", ""),
    Column("rate", "headlines/s", ".1f"),
    Column("of_offline", "of offline", ".2f"),
    Column("p50", "p50, ms", ".0f"),
    Column("p95", "p95, ms", ".0f"),
    Column("p99", "p99, ms", ".0f"),
    Column("batch", "texts a batch", ".1f"),
    Column("searching", "batches at work", ".2f"),
    Column("server", "server, cores", ".2f"),
    Column("client", "callers, cores", ".2f"),
    Column("others", "others, cores", ".2f"),
    Column("answers", "answers", ",d"),
    Column("differences", "differences", "d"),
)
MEMORY: Final = (Column("requests", "requests", ",d"), Column("resident", "memory, MiB", ".1f"))
Answer = dict[str, Any]


class Server(NamedTuple):
    """One that listens."""

    host: str
    port: int
    process: int


@contextmanager
def served(options: argparse.Namespace) -> Iterator[Server]:
    """A server while it is needed; any port will do."""
    command = [sys.executable, "-m", "ledeline", "serve", *ROOM, *options.serve]
    command += ["--model", str(options.model), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline().strip()
            found = re.search(r"http://(.+):(\d+)$", said)
            if not found:
                raise SystemExit(f"the server does not start: {said}")
            with urlopen(f"{found[0]}/ready", timeout=60):
                pass  # it takes texts
            yield Server(found[1], int(found[2]), process.pid)
        finally:
            process.terminate()
            process.wait(60)


def called(server: Server, texts: Sequence[str], **job: Any) -> dict[str, Any]:
    """What the callers found."""
    about = {"host": server.host, "port": server.port, "server": server.process, "texts": texts}
    shown = subprocess.run(
        [sys.executable, str(CLIENT)],
        input=json.dumps({**about, **job}),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=2 * SECONDS_AT_MOST,
    )
    return dict(json.loads(shown.stdout))


# --- speed --------------------------------------------------------------------------------------


class Offline:
    """The same texts in this process."""

    def __init__(self, options: argparse.Namespace, texts: Sequence[str]) -> None:
        self._texts, self._beam = texts, options.beam
        self._headliner = Headliner.load(options.model)
        self._headliner.generate_batch(texts[:64])
        self.answers: list[Answer] = []

    def figures(self) -> dict[str, float]:
        """Headlines a second, and the cores that others had; the answers are kept."""
        start, own, machine = time.perf_counter(), time.process_time(), busy()
        found = list(self._headliner.stream(self._texts, beam=self._beam))
        took = time.perf_counter() - start
        others = busy() - machine - (time.process_time() - own)
        headlines = [headline_as_dict(one, heat_map=False) for one in found]
        self.answers = json.loads(json.dumps(headlines))  # as they come over the wire
        return {"rate": len(found) / took, "others": others / took}

    def differences(self, answers: Sequence[tuple[int, Answer]]) -> int:
        """How many answers of a server are not as they are here."""
        return sum(one != {"headlines": [self.answers[text]]} for text, one in answers)


def speed(options: argparse.Namespace, server: Server, texts: Sequence[str], rows: Rows) -> None:
    offline, table = Offline(options, texts), None
    for turn in range(1, options.turns + 1):
        before = in_peace(offline.figures, options)
        found = [
            in_peace(lambda n=callers: loaded(options, server, texts, offline, n), options)
            for callers in options.callers
        ]
        after = in_peace(offline.figures, options)
        table = table or Table(rows, "speed", *SPEED)
        table.add(turn=turn, callers="offline, before", **before)
        for callers, figures in zip(options.callers, found, strict=True):
            share = figures["rate"] / statistics.mean([before["rate"], after["rate"]])
            table.add(turn=turn, callers=str(callers), of_offline=share, **figures)
        table.add(turn=turn, callers="offline, after", **after)


def in_peace(measure: Callable[[], dict[str, Any]], options: argparse.Namespace) -> dict[str, Any]:
    """What is measured while others leave the machine alone; the best of some tries if not."""
    tries: list[dict[str, Any]] = []
    while len(tries) < options.tries and (not tries or tries[-1]["others"] > PEACE):
        tries.append(measure())
    return min(tries, key=lambda one: one["others"])


def loaded(
    options: argparse.Namespace,
    server: Server,
    texts: Sequence[str],
    offline: Offline,
    callers: int,
) -> dict[str, Any]:
    job = {"callers": callers, "beam": options.beam, "most": options.most}
    job |= {"warm_up": options.warm_up, "seconds": options.seconds}
    return summary(called(server, texts, **job), offline)


def summary(found: dict[str, Any], offline: Offline) -> dict[str, Any]:
    counted, late = found["counted"], sorted(1000 * value for value in found["latencies"])
    wall = counted["time"]
    return {
        "rate": len(late) / found["took"],
        **{
            f"p{share}": late[min(len(late) - 1, len(late) * share // 100)]
            for share in (50, 95, 99)
        },
        "batch": counted["texts"] / counted["batches"],
        "searching": counted["search"] / wall,
        "server": counted["server"] / wall,
        "client": counted["client"] / wall,
        "others": (counted["machine"] - counted["server"] - counted["client"]) / wall,
        "answers": len(found["answers"]),
        "differences": offline.differences(found["answers"]),
    }


# --- memory -------------------------------------------------------------------------------------


def memory(options: argparse.Namespace, server: Server, texts: Sequence[str], rows: Rows) -> None:
    job = {"callers": max(options.callers), "beam": options.beam, "most": options.memory}
    job |= {"warm_up": 0.0, "seconds": SECONDS_AT_MOST, "sample": options.sample}
    began = time.perf_counter()
    found = called(server, texts, **job)["resident"]
    took = time.perf_counter() - began
    print(f"{max(options.callers)} callers, beam {options.beam}, {took:.0f} s\n")
    table = Table(rows, "memory", *MEMORY)
    for requests, size in found:
        table.add(requests=requests, resident=size / 2**20)
    later = [(requests, size) for requests, size in found if requests >= options.early]
    growth = 100 * (later[-1][1] / later[0][1] - 1)
    slope = statistics.linear_regression(*zip(*later, strict=True)).slope
    figures = {"growth": growth, "slope": slope}
    rows.add("memory, growth", figures)
    print(
        f"\nfrom {later[0][0]:,} requests to {later[-1][0]:,}: {growth:+.2f} %, "
        f"{slope * 1000 / 1024:+.1f} KiB a thousand requests"
    )


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True, help="a model folder")
    parser.add_argument("--ledes", type=Path, required=True, help="a file with a lede in each line")
    parser.add_argument(
        "--number", type=int, default=1000, help="ledes of it; then they come again"
    )
    parser.add_argument("--callers", type=int, nargs="+", default=[1, 8, 32, 128])
    parser.add_argument("--seconds", type=float, default=20.0, help="of each number of callers")
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--tries", type=int, default=3, help="of a measurement that others disturb")
    parser.add_argument("--beam", type=int, default=20)
    parser.add_argument("--memory", type=int, help="so many requests, for the server's memory")
    parser.add_argument(
        "--serve", nargs="*", default=[], help="settings of the server, section.key=value"
    )
    parser.add_argument("--json", type=Path, help="write all rows there")
    parser.set_defaults(warm_up=WARM_UP, most=MOST, sample=SAMPLE, early=EARLY)
    sizes = {"number": 4, "callers": [1, 2], "warm_up": 0.0, "tries": 1, "beam": 1}
    requests = {"most": 6, "memory": 6, "sample": 2, "early": 4}
    quick.offer(parser, model=tiny.model, ledes=tiny.ledes, **sizes, **requests)
    options = parser.parse_args()
    options.serve = [f"--{one}" for one in options.serve]
    return options


def main() -> None:
    options = read_options()
    about = f"{described()}, {num_threads()} threads"
    print(f"{about}\n", flush=True)
    with options.ledes.open(encoding="utf-8") as file:
        texts = [line.rstrip("\n") for line in islice(file, options.number)]
    parts = [speed, memory] if options.quick else [memory if options.memory else speed]
    rows = Rows(options.json, about)
    with served(options) as server:
        for part in parts:
            part(options, server, texts, rows)


if __name__ == "__main__":
    main()
