"""The command as a process of its own: how it begins, ends, and what it says."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 60  # seconds until a test gives up
TOKEN = "a-token-that-nobody-guesses"
QUICK = {"texts": ["Secret rain fell."], "beam": 1, "max_length": 3}

# The command, with a model that waits for a file before each answer but the worked example's.
HELD = """
import sys, time
from pathlib import Path
from ledeline.headliner import Headliner
answers, gate = Headliner.answers, Path(sys.argv.pop(1))
def held(self, texts, *more, **others):
    if not str(texts[0]).startswith("At least 14"):
        (gate.parent / "began").touch()
        while not gate.exists():
            time.sleep(0.01)
    return answers(self, texts, *more, **others)
Headliner.answers = held
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
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._changed.notify_all()

    @property
    def said(self) -> str:
        return "\n".join(self.lines)

    def wait_for(self, pattern: str) -> "re.Match[str]":
        def found() -> "re.Match[str] | None":
            return re.search(pattern, self.said)

        with self._changed:
            assert self._changed.wait_for(
                lambda: found() is not None or self.process.poll() is not None, PATIENCE
            ), self.said
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
        return int(self.wait_for(r"listens on http://127\.0\.0\.1:(\d+)")[1])

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
def command(*arguments: object, script: str | None = None, **environment: str) -> Iterator[Process]:
    start = ["-m", "ledeline"] if script is None else ["-c", script]
    plain = {"OMP_NUM_THREADS": "1", "LEDELINE_TOKEN": "", "PYTHONUNBUFFERED": "1"}
    words = [sys.executable, "-W", "error", *start, *map(str, arguments)]
    process = Process(words, {**plain, **environment})
    try:
        yield process
    finally:
        process.close()


@pytest.fixture
def serving(model_folder: Path) -> Callable[..., Any]:
    """`ledeline serve` with the small model, at any port."""

    def start(*arguments: object, **environment: str) -> Any:
        return command("serve", "--model", model_folder, "--port", 0, *arguments, **environment)

    return start


def test_it_says_where_it_listens_answers_and_ends(serving) -> None:
    with serving() as server:
        assert server.ask("/ready") == (200, {"status": "ready"})
        status, found = server.ask("/v1/headlines", QUICK)
        assert status == 200
        assert found["headlines"][0]["source"] == "Secret rain fell."
        assert server.ask("/v1/headlines", {**QUICK, "beam": 99})[0] == 422
        assert server.ask("/nothing?about=rain")[0] == 404
        server.process.send_signal(signal.SIGINT)
        assert server.end() == 0
        assert server.lines[0] == f"ledeline: listens on http://127.0.0.1:{server.port}"
        assert server.lines[-1] == "ledeline: SIGINT: finishes what is running"
        requests = server.lines[1:-1]
        ways = [re.sub(r'^.* 127\.0\.0\.1:\d+ - "(.*) HTTP/1.1" ', r"\1 ", one) for one in requests]
        assert ways == [
            "GET /ready 200",
            "POST /v1/headlines 200",
            "POST /v1/headlines 422",
            "GET /nothing?about=rain 404",
        ]
        assert "Secret" not in server.said


def test_without_an_access_log_it_says_nothing_of_requests(serving) -> None:
    with serving("--server.access_log=false") as server:
        assert server.ask("/health")[0] == 200
        server.process.send_signal(signal.SIGTERM)
        assert server.end() == 0
        assert len(server.lines) == 2


def test_a_stop_answers_what_runs_and_sends_away_what_waits(
    model_folder: Path, tmp_path: Path
) -> None:
    gate, began = tmp_path / "gate", tmp_path / "began"
    address = ("serve", "--model", model_folder, "--port", 0)
    with command(gate, *address, script=HELD) as server:
        answers: dict[str, tuple[int, Any]] = {}

        def ask(name: str) -> threading.Thread:
            def asking() -> None:
                answers[name] = server.ask("/v1/headlines", {**QUICK, "texts": [name]})

            thread = threading.Thread(target=asking)
            thread.start()
            return thread

        assert server.port
        running = ask("running")
        _until(began.exists)
        waiting = ask("waiting")
        _until(lambda: "ledeline_texts_waiting 1.0" in _metrics(server.port))
        server.process.send_signal(signal.SIGTERM)
        waiting.join(PATIENCE)  # at once, while the other still runs
        assert answers == {"waiting": (503, {"detail": "the server is shutting down"})}
        gate.touch()
        running.join(PATIENCE)
        assert answers["running"][0] == 200
        assert answers["running"][1]["headlines"][0]["source"] == "running"
        assert server.end() == 0
        assert "Traceback" not in server.said
        assert "ledeline: SIGTERM: finishes what is running" in server.lines


def _until(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(PATIENCE * 100):
        if condition():
            return
        pause.wait(0.01)
    pytest.fail("it did not happen")


def _metrics(port: int) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()
    finally:
        connection.close()


# --- what cannot be -----------------------------------------------------------------------------


def refused(process: Process) -> str:
    """The one sentence of a command that was given something it cannot use."""
    assert process.end() == 2
    assert len(process.lines) == 1, process.said
    (sentence,) = process.lines
    assert sentence.startswith("ledeline: ")
    return sentence.removeprefix("ledeline: ")


def test_a_port_that_is_taken(model_folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with command("serve", "--model", model_folder, "--port", port) as process:
            found = refused(process)
    assert found == f"cannot listen on 127.0.0.1:{port}: address already in use"


def test_an_address_that_is_not_of_this_machine(serving) -> None:
    with serving("--host", "192.0.2.1") as process:
        assert refused(process).startswith("cannot listen on 192.0.2.1:0: ")


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    with command("serve", "--model", tmp_path / "nothing", "--port", 0) as process:
        assert "nothing is not a model folder" in refused(process)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            "--server.prot=1",
            "command line: server.prot = 1: no such key; did you mean server.port?",
        ),
        ("--limits.beam=0", "command line: limits.beam = 0: must be at least 1"),
        ("--server.port=70000", "command line: server.port = 70000: must be at most 65535"),
        ("--server.prefix=desk", 'command line: server.prefix = "desk": must begin with /'),
        ("--limits.seconds=0", "command line: limits.seconds = 0.0: must be above 0"),
        ("nothing.toml", "nothing.toml: cannot read the configuration: No such file or directory"),
    ],
)
def test_settings_that_cannot_be(given: str, sentence: str) -> None:
    with command("serve", given) as process:
        assert refused(process) == sentence


# --- the token ----------------------------------------------------------------------------------


class TestToken:
    @pytest.mark.parametrize("place", ["file", "variable"])
    def test_it_is_asked_for_and_never_told(self, serving, tmp_path: Path, place: str) -> None:
        file = tmp_path / "token"
        file.write_text(TOKEN + "\n")
        if place == "file":
            other = "another-token-that-is-not-looked-at"
            start = serving(f"--server.token_file={file}", LEDELINE_TOKEN=other)
        else:
            start = serving(LEDELINE_TOKEN=TOKEN)
        with start as server:
            assert server.ask("/health")[0] == 200
            assert server.ask("/v1/headlines", QUICK)[0] == 401
            assert server.ask("/v1/headlines", QUICK, Authorization="Bearer wrong")[0] == 401
            assert server.ask("/v1/headlines", QUICK, Authorization=f"Bearer {TOKEN}")[0] == 200
            server.process.send_signal(signal.SIGTERM)
            assert server.end() == 0
            assert TOKEN not in server.said

    @pytest.mark.parametrize(
        ("content", "complaint"),
        [
            (None, "the token cannot be read: No such file"),
            (b"", "a token has at least 16 ASCII characters"),
            (b"too-short", "a token has at least 16 ASCII characters"),
            (b"two-lines-of-it\nare-no-token-at-all", "a token has at least 16 ASCII characters"),
            (b"\xff" * 20, "a token has letters, digits and ASCII signs only"),
        ],
    )
    def test_a_file_that_has_none(
        self, tmp_path: Path, content: bytes | None, complaint: str
    ) -> None:
        from ledeline.errors import ConfigError
        from ledeline.server.settings import find_token

        file = tmp_path / "token"
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(ConfigError) as error:
            find_token(file)
        assert str(error.value).startswith(f"{file}: {complaint}")
        assert (content or b"?").decode("latin-1") not in str(error.value) or not content

    def test_the_command_tells_it_in_one_sentence(self, serving, tmp_path: Path) -> None:
        (tmp_path / "token").write_text("too-short")
        with serving(f"--server.token_file={tmp_path / 'token'}") as process:
            found = refused(process)
        assert "at least 16 ASCII characters" in found
        assert "too-short" not in found

    def test_a_variable_that_has_none(self, serving) -> None:
        with serving(LEDELINE_TOKEN="short") as process:
            found = refused(process)
        assert found.startswith("LEDELINE_TOKEN: a token has at least 16")
        assert "short;" not in found
