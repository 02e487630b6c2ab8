"""The command as a process of its own: how it begins, ends, and what it says."""

import re
import signal
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ledeline.cli import app
from serve_process import HELD, PATIENCE, QUICK, command, metrics, until

TOKEN = "a-token-that-nobody-guesses"


def test_it_says_where_it_listens_answers_and_ends(serving) -> None:
    with serving(LEDELINE_TOKEN=TOKEN) as server:
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        assert server.ask("/ready") == (200, {"status": "ready"})
        status, found = server.ask("/v1/headlines", QUICK, **bearer)
        assert status == 200
        assert found["headlines"][0]["source"] == "Secret rain fell."
        assert server.ask("/v1/headlines", {**QUICK, "beam": 99}, **bearer)[0] == 422
        assert server.ask("/v1/headlines", QUICK)[0] == 401
        assert server.ask("/nothing?about=rain")[0] == 404
        server.process.send_signal(signal.SIGINT)
        assert server.end() == 0
        assert server.lines[0] == f"ledeline: listening on http://127.0.0.1:{server.port}"
        assert server.lines[-1] == "ledeline: SIGINT: finishing what is running"
        requests = server.lines[1:-1]
        ways = [re.sub(r"^.* 127\.0\.0\.1 (.*) \d+\.\d{3}$", r"\1", one) for one in requests]
        assert sorted(ways) == [
            "GET (no such path) 404",
            "GET /ready 200",
            "POST /v1/headlines 200",
            "POST /v1/headlines 401",
            "POST /v1/headlines 422",
        ]
        assert "rain" not in server.said
        assert "Secret" not in server.said
        assert TOKEN not in server.said


def test_a_token_file_goes_before_the_environment(serving, tmp_path: Path) -> None:
    token, file = tmp_path / "token", tmp_path / "serve.toml"
    token.write_text(TOKEN + "\n")
    file.write_text(f'[server]\ntoken_file = "{token}"\naccess_log = false\n')
    other = "another-token-that-is-not-looked-at"
    with serving(file, LEDELINE_TOKEN=other) as server:
        for sent, status in ((TOKEN, 200), (other, 401), ("wrong", 401)):
            found = server.ask("/v1/headlines", QUICK, Authorization=f"Bearer {sent}")
            assert found[0] == status
        server.process.send_signal(signal.SIGTERM)
        assert server.end() == 0
        assert server.lines == [
            f"ledeline: listening on http://127.0.0.1:{server.port}",
            "ledeline: SIGTERM: finishing what is running",
        ]


def test_a_stop_answers_what_runs_and_sends_away_what_waits(
    model_folder: Path, tmp_path: Path
) -> None:
    gate, began = tmp_path / "gate", tmp_path / "began"
    address = ("serve", "--model", model_folder, "--port", 0, "--server.shutdown_seconds=50")
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
        until(began.exists)
        waiting = ask("waiting")
        until(lambda: "ledeline_texts_waiting 1.0" in metrics(server.port))
        server.process.send_signal(signal.SIGTERM)
        waiting.join(PATIENCE)  # at once, while the other still runs
        assert answers == {"waiting": (503, {"detail": "the server is shutting down"})}
        gate.touch()
        running.join(PATIENCE)
        assert answers["running"][0] == 200
        assert answers["running"][1]["headlines"][0]["source"] == "running"
        assert server.end() == 0
        assert "Traceback" not in server.said
        assert "ledeline: SIGTERM: finishing what is running" in server.lines


# --- what cannot be -----------------------------------------------------------------------------


def test_a_port_that_is_taken(model_folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with command("serve", "--model", model_folder, "--port", port) as process:
            assert process.end() == 2
            why = "address already in use"
            assert process.lines == [f"ledeline: cannot listen on 127.0.0.1:{port}: {why}"]


def refused(*arguments: object, **environment: str) -> str:
    """The one sentence of a command that was given something it cannot use."""
    plain = {"LEDELINE_TOKEN": ""}
    words = ["serve", *map(str, arguments)]
    found = CliRunner().invoke(app, words, env={**plain, **environment})
    assert found.exit_code == 2, found.output
    (sentence,) = found.stderr.splitlines()
    assert found.stdout == ""
    assert sentence.startswith("ledeline: ")
    return sentence.removeprefix("ledeline: ")


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    assert "nothing is not a model folder" in refused("--model", tmp_path / "nothing")


WRONG = [
    ("server.prot", 1, "server.prot = 1: no such key; did you mean server.port?"),
    ("limits.beam", 0, "limits.beam = 0: must be at least 1"),
    ("server.port", 70000, "server.port = 70000: must be at most 65535"),
    ("server.host", '""', 'server.host = "": must not be empty'),
    ("server.prefix", '"desk"', 'server.prefix = "desk": must begin with /'),
    ("limits.seconds", 0, "limits.seconds = 0.0: must be above 0"),
    ("batching.window_ms", -1, "batching.window_ms = -1.0: must be at least 0"),
]


@pytest.mark.parametrize(("key", "value", "sentence"), WRONG)
def test_settings_that_cannot_be(tmp_path: Path, key: str, value: object, sentence: str) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(f"{key} = {value}\n")
    assert refused(file) == f"{file}: {sentence}"
    file.write_text("")
    assert refused(file, f"--{key}={value}") == f"command line: {sentence}"


@pytest.mark.parametrize(("key", "value", "sentence"), WRONG)
def test_they_need_no_file(key: str, value: object, sentence: str) -> None:
    assert refused(f"--{key}={value}") == f"command line: {sentence}"


def test_an_address_without_a_file() -> None:
    found = refused("--server.origin=https://desk.example")
    assert 'server.origin = "https://desk.example": no such key' in found


def test_a_file_that_is_not_there() -> None:
    why = "cannot read the configuration: No such file or directory"
    assert refused("nothing.toml") == f"nothing.toml: {why}"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "the token cannot be read: No such file"),
        (b"", "a token has at least 16 ASCII characters"),
        (b"too-short", "a token has at least 16 ASCII characters"),
        (b"two-lines-of-it\nare-no-token-at-all", "a token has at least 16 ASCII characters"),
        (b"\xff" * 20, "a token has ASCII characters only"),
    ],
)
def test_a_token_file_that_has_none(tmp_path: Path, content: bytes | None, complaint: str) -> None:
    token, file = tmp_path / "token", tmp_path / "serve.toml"
    file.write_text(f'server.token_file = "{token}"')
    if content is not None:
        token.write_bytes(content)
    found = refused(file, LEDELINE_TOKEN=TOKEN)
    assert found.startswith(f"{token}: {complaint}")
    assert "too-short" not in found
    assert "two-lines" not in found


def test_a_token_in_the_environment_that_is_none() -> None:
    found = refused(LEDELINE_TOKEN="tiny")
    assert found.startswith("LEDELINE_TOKEN: a token has at least 16")
    assert "tiny" not in found
