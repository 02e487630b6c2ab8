"""The command `ledeline serve` as a process of its own."""

import http.client
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

PATIENCE = 60  # seconds until a test gives up
QUICK = {"texts": ["Secret rain fell."], "beam": 1, "max_length": 3}

# The command, with a model that waits for a file before each answer but the example of the page.
HELD = """
import sys, time
from pathlib import Path
from ledeline.inference.headliner import Headliner
begin, gate = Headliner.begin, Path(sys.argv.pop(1))
def held(self, ledes, *options):
    generation = begin(self, ledes, *options)
    advance = generation.advance
    def wait():
        (gate.parent / "began").touch()
        while not gate.exists():
            time.sleep(0.01)
        advance()
    if not ledes[0].text.startswith("At least 14"):
        generation.advance = wait
    return generation
Headliner.begin = held
from ledeline.cli import main
sys.argv[0] = "ledeline"
main()
"""


class Process:
    """The command, and what it says."""

    def __init__(self, arguments: list[str], environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            arguments,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            env={**os.environ, **environment},
        )
        self.lines: list[str] = []
        self._ended = False
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    @property
    def said(self) -> str:
        return "\n".join(self.lines)

    def wait_for(self, pattern: str) -> "re.Match[str]":
        def found() -> "re.Match[str] | None":
            return re.search(pattern, self.said)

        with self._changed:
            assert self._changed.wait_for(lambda: found() is not None or self._ended, PATIENCE), (
                self.said
            )
            match = found()
            assert match, self.said
            return match

    def ask(self, path: str, asked: Any = None, **headers: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            body = None if asked is None else json.dumps(asked)
            fields = {"Content-Type": "application/json", **headers}
            connection.request("GET" if body is None else "POST", path, body, fields)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    @property
    def port(self) -> int:
        return int(self.wait_for(r"listening on http://127\.0\.0\.1:(\d+)")[1])

    def end(self) -> int:
        """The exit status."""
        status = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return status

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.end()
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextmanager
def command(
    *arguments: object, script: str | None = None, open_files: int = 0, **environment: str
) -> Iterator[Process]:
    """The command with arguments, or a script; with a limit of open files if there is one."""
    start = ["-m", "ledeline"] if script is None else ["-c", script]
    plain = {"OMP_NUM_THREADS": "1", "LEDELINE_TOKEN": "", "PYTHONUNBUFFERED": "1"}
    words = [sys.executable, "-W", "error", *start, *map(str, arguments)]
    if open_files:
        words = ["sh", "-c", f'ulimit -n {open_files}; exec "$@"', "sh", *words]
    process = Process(words, {**plain, **environment})
    try:
        yield process
    finally:
        process.close()


def until(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(PATIENCE * 100):
        if condition():
            return
        pause.wait(0.01)
    pytest.fail("it did not happen")


def metrics(port: int) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()
    finally:
        connection.close()
