"""How the process ends, whatever its callers do; and how it fares with few files and two ports."""

import http.client
import re
import signal
import socket
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from serve_process import HELD, PATIENCE, QUICK, Process, command, until

LONGEST = 20  # seconds that a stop may take on a busy machine; it takes 2.5


@pytest.fixture
def held(model_folder: Path, tmp_path: Path):
    """A server whose search never ends, and a file that is there when one has begun."""
    address = ("serve", "--model", model_folder, "--port", 0, "--server.shutdown_seconds=1")
    with command(tmp_path / "gate", *address, script=HELD) as server:
        yield server, tmp_path / "began"


def connect(server: Process) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)


def post(body: bytes, length: int | None = None) -> bytes:
    return (
        b"POST /v1/headlines HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (length or len(body), body)
    )


def quiet(server: Process) -> bool:
    return not re.search("Traceback|Cancel|rror", server.said)


def test_a_search_that_does_not_end_is_left(held) -> None:
    server, began = held
    with connect(server) as caller, connect(server) as idle, connect(server) as slow:
        caller.sendall(post(b'{"texts": ["Rain."]}'))
        slow.sendall(post(b"{", 100))
        until(began.exists)
        left = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert server.end() == 0
        assert time.monotonic() - left < LONGEST
        for one in (idle, slow, caller):
            with suppress(ConnectionResetError):
                assert b" 500 " not in one.recv(1000)
    assert quiet(server), server.said


def test_a_second_ctrl_c_ends_it_at_once(held) -> None:
    server, began = held
    with connect(server) as caller:
        caller.sendall(post(b'{"texts": ["Rain."]}'))
        until(began.exists)
        server.process.send_signal(signal.SIGINT)
        server.wait_for("SIGINT: finishing")
        server.process.send_signal(signal.SIGINT)
        assert server.end() == 130
        with suppress(ConnectionResetError):
            assert caller.recv(1000) == b""
    assert quiet(server), server.said


# --- few files ----------------------------------------------------------------------------------


def test_few_files_are_enough(serving) -> None:
    with serving("--server.keep_alive_seconds=600", open_files=64) as server:
        with ExitStack() as stack:
            for _ in range(150):
                stack.enter_context(connect(server))
            for _ in range(3):
                assert server.ask("/health")[0] == 200
                assert server.ask("/v1/headlines", QUICK)[0] == 200
        server.process.send_signal(signal.SIGTERM)
        assert server.end() == 0
    said = [line for line in server.lines if "files" in line]
    assert len(said) == 1
    assert re.search(r"only 64 files can be open, so server.connections is \d+ instead", said[0])
    assert len(server.lines) < 15, server.said
    assert quiet(server), server.said


# --- the port for probes ------------------------------------------------------------------------


def test_probes_have_a_port_of_their_own(serving) -> None:
    with serving("--server.health_port=0") as server:
        port = int(server.wait_for(r"health at http://127\.0\.0\.1:(\d+)")[1])
        assert port != server.port

        def ask(path: str, method: str = "GET") -> int:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
            try:
                connection.request(method, path)
                return connection.getresponse().status
            finally:
                connection.close()

        for path in ("/health", "/ready", "/metrics"):
            assert [ask(path), ask(path, "HEAD")] == [200, 200]
            assert server.ask("/health")[0] == 200
        for path in ("/", "/v1/model", "/v1/headlines", "/nothing", "/health/"):
            assert ask(path) == 404
        assert ask("/v1/headlines", "POST") == 404
        server.process.send_signal(signal.SIGTERM)
        assert server.end() == 0


def test_a_port_for_probes_that_is_taken(model_folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        more = f"--server.health_port={port}"
        with command("serve", "--model", model_folder, "--port", 0, more) as process:
            assert process.end() == 2
            why = "address already in use"
            assert process.lines == [f"ledeline: cannot listen on 127.0.0.1:{port}: {why}"]
