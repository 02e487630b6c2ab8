"""`ledeline generate` and `ledeline serve` as processes of their own: their start and their memory.

bench/generate.py runs it.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from urllib.request import Request, urlopen

from clock import ratio, seconds, spread

SERVED = re.compile(r"http://[^ ]+:\d+$", re.MULTILINE)


def generate_command(options: argparse.Namespace, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "ledeline", "generate", "--model", str(options.model), *arguments]


def start_table(options: argparse.Namespace, text: str) -> None:
    """From the command to its headline, beside a process that does nothing."""
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "ledeline generate": generate_command(options, text),
    }
    took: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(options.before + options.turns):
        for name, command in commands.items():
            done = seconds(lambda c=command: subprocess.run(c, check=True, capture_output=True))
            if turn >= options.before:  # the first fills the caches of the disk
                took[name].append(done)
    print("| | s, median | lowest | highest | of python -c pass |\n| --- |" + " ---: |" * 4)
    base = took["python -c pass"]
    for name, values in took.items():
        cells = [*(f"{one:.3f}" for one in spread(values)), ratio(values, base)]
        print(f"| {name} | {' | '.join(cells)} |")


def memory_tables(options: argparse.Namespace, texts: Sequence[str]) -> None:
    """The most memory of `ledeline generate`, and that of a server."""
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
    if Path("/proc/self/status").exists():
        print(f"\n| ledeline serve, {options.requests:,} requests | MiB |\n| --- | ---: |")
        for name, size in served_memory(options, texts).items():
            print(f"| {name} | {size:.0f} |")


def served_memory(options: argparse.Namespace, texts: Sequence[str]) -> dict[str, float]:
    """MiB of a server: before the first text, at rest after some requests, and at most."""
    with served(options) as (process, address):

        def ask(text: str) -> None:
            body = json.dumps({"texts": [text], "beam": options.beam}).encode()
            kind = {"Content-Type": "application/json"}
            with urlopen(Request(f"{address}/v1/headlines", body, kind), timeout=600) as answer:
                answer.read()

        before = resident(process.pid, "VmRSS")
        with ThreadPoolExecutor(options.callers) as callers:
            list(callers.map(ask, islice(cycle(texts), options.requests)))
        after, most = resident(process.pid, "VmRSS"), resident(process.pid, "VmHWM")
    return {"before the first": before, "after them": after, "at most": most}


@contextmanager
def served(options: argparse.Namespace) -> "Iterator[tuple[subprocess.Popen[str], str]]":
    """A server while it is needed, and its address."""
    command = [sys.executable, "-m", "ledeline", "serve", "--model", str(options.model)]
    command += ["--port", "0", "--server.access_log=false"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline().strip()
            found = SERVED.search(said)
            if not found:
                raise SystemExit(f"the server does not start: {said}")
            with urlopen(f"{found[0]}/ready", timeout=60):
                pass
            yield process, found[0]
        finally:
            process.terminate()
            process.wait(60)


def resident(process: int, name: str) -> float:
    """MiB of a process; VmRSS is now, VmHWM at most."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    (size,) = (line.split()[1] for line in lines if line.startswith(f"{name}:"))
    return int(size) / 1024


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
