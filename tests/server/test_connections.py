"""Connections over real sockets: too many, half-closed, given up, and not read from."""

import asyncio
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest

pytest.importorskip("uvicorn")

from fastapi import FastAPI, Request, Response

from ledeline.server.process import Server, uvicorn_config
from ledeline.server.settings import ServerConfig

pytestmark = pytest.mark.usefixtures("one_thread")

ONE = {"texts": ["Rain fell."], "beam": 1, "max_length": 3}
PATIENCE = 60


def request(asked: Any = ONE, version: str = "1.1", *fields: str) -> bytes:
    body = json.dumps(asked).encode()
    lines = (
        f"POST /v1/headlines HTTP/{version}",
        "Host: localhost",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *fields,
    )
    return "\r\n".join((*lines, "", "")).encode() + body


# --- too many -----------------------------------------------------------------------------------


class TestTooMany:
    @pytest.mark.parametrize("sent", [b"", b"POST /v1/he", request()[:-1]])
    def test_callers_that_do_not_ask_keep_nobody_out(self, serve, until, sent: bytes) -> None:
        with serve(server=ServerConfig(connections=4, keep_alive_seconds=600)) as server:
            pool = server.server.config.pool
            with ExitStack() as stack:
                idle = [stack.enter_context(server.open()) for _ in range(100)]
                for one in idle:
                    with suppress(BrokenPipeError, ConnectionResetError):
                        one.sendall(sent)
                until(lambda: len(pool) == 4 + 64)
                for _ in range(5):
                    assert server.headlines(ONE).status == 200
                    assert server.ask("/health").status == 200
                with suppress(ConnectionResetError):
                    assert idle[0].recv(1) == b""  # the first to come was the first to go
                assert len(pool) <= 4 + 64
            until(lambda: len(pool) == 0)

    def test_work_beyond_the_limit_is_refused_but_probes_are_not(self, serve, until) -> None:
        with serve(server=ServerConfig(connections=2)) as server:
            server.headliner.go.clear()
            asking = [server.asking(ONE) for _ in range(2)]
            until(lambda: sum(server.load) == 2)
            for _ in range(3):
                found = server.headlines(ONE)
                assert found.status == 503
                assert "try again later" in found.detail
                assert int(found.headers["retry-after"]) >= 1
                assert found.headers["x-content-type-options"] == "nosniff"
            assert server.ask("/").status == 503
            for path in ("/health", "/ready", "/metrics"):
                for method in ("GET", "HEAD"):
                    found = server.ask(path, method=method)
                    assert found.status == 200
                    assert bool(found.body) == (method == "GET")
            server.headliner.go.set()
            assert [one.answer.status for one in asking] == [200, 200]
            assert server.headlines(ONE).status == 200

    def test_a_body_that_is_complete_too_late(self, serve, until, answer_from) -> None:
        with serve(server=ServerConfig(connections=1)) as server, server.open() as slow:
            slow.sendall(request()[:-1])
            until(lambda: len(server.server.server_state.tasks) == 1)
            server.headliner.go.clear()
            first = server.asking(ONE)
            until(lambda: sum(server.load) == 1)
            slow.sendall(request()[-1:])
            assert answer_from(slow).status == 503
            server.headliner.go.set()
            assert first.answer.status == 200

    def test_large_bodies_share_what_there_is(self, serve, monkeypatch, until) -> None:
        monkeypatch.setattr("ledeline.server.middleware._SHARED_BODY_BYTES", 100_000)
        large = json.dumps(ONE).encode().ljust(60_000)
        begun = request({})[: -len("{}")].replace(b"Length: 2", b"Length: 60000")
        kind = {"Content-Type": "application/json"}
        with serve() as server, server.open() as slow:
            slow.sendall(begun + large[:-1])
            until(lambda: server.ask("/v1/headlines", body=large, headers=kind).status == 200)
            with server.open() as other:
                other.sendall(begun + large[:-1])
                until(lambda: server.ask("/v1/headlines", body=large, headers=kind).status == 503)
                assert server.headlines(ONE).status == 200  # a small one needs nothing of it
            until(lambda: server.ask("/v1/headlines", body=large, headers=kind).status == 200)
            slow.sendall(large[-1:])
            assert slow.recv(12) == b"HTTP/1.1 200"


# --- an application that is only there for its connections ------------------------------------


class Plain:
    """What the application saw."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.gone: list[float] = []
        self.go = threading.Event()
        self.port = 0
        self.server: Server

    def open(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    @property
    def num_open(self) -> int:
        return len(self.server.server_state.connections)


def plain_app(seen: Plain) -> FastAPI:
    app = FastAPI()

    @app.get("/large")
    async def large(size: int = 50_000_000) -> Response:
        return Response(b"x" * size)

    @app.get("/held")
    async def held(request: Request) -> Response:
        seen.began.set()
        while not seen.go.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(0.01):
                    while (await request.receive())["type"] != "http.disconnect":
                        pass
                    seen.gone.append(time.monotonic())
                    break
        return Response(b"done")

    return app


@contextmanager
def plain(**settings: Any) -> Iterator[Plain]:
    seen, said = Plain(), []
    app = plain_app(seen)
    seen.server = Server(uvicorn_config(app, ServerConfig(port=0, **settings)), app, said.append)
    thread = threading.Thread(target=lambda: asyncio.run(seen.server.serve()))
    thread.start()
    try:
        wait_until(lambda: bool(said))
        seen.port = int(said[0].rpartition(":")[2])
        yield seen
    finally:
        seen.go.set()
        seen.server.should_exit = True
        thread.join(PATIENCE)
        assert not thread.is_alive()


def wait_until(condition: Any) -> None:
    ends = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < ends, "it did not happen"
        time.sleep(0.005)


def get(path: str, version: str = "1.1") -> bytes:
    return f"GET {path} HTTP/{version}\r\nHost: localhost\r\n\r\n".encode()


def everything(caller: socket.socket) -> bytes:
    return b"".join(iter(lambda: caller.recv(65536), b""))


def hang_up(caller: socket.socket, *, reset: bool) -> None:
    if reset:
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    caller.close()


class TestEnds:
    def test_one_that_sends_no_more_is_answered(self) -> None:
        with plain() as server, server.open() as caller:
            caller.sendall(get("/held"))
            assert server.began.wait(PATIENCE)
            caller.shutdown(socket.SHUT_WR)
            assert caller.recv(12) == b"HTTP/1.1 100"
            time.sleep(0.3)  # several looks at it
            server.go.set()
            found = everything(caller)
            assert b"HTTP/1.1 200 OK" in found
            assert found.endswith(b"done")
            assert not server.gone

    def test_one_that_sent_no_more_before_it_was_looked_at(self) -> None:
        with plain() as server, server.open() as caller:
            caller.sendall(get("/large?size=5") + get("/large?size=6"))
            caller.shutdown(socket.SHUT_WR)
            found = everything(caller)
            assert found.count(b"HTTP/1.1 200 OK") == 2
            assert found.endswith(b"xxxxxx")

    def test_pythons_client_skips_the_interim_answer(self) -> None:
        import http.client

        with plain() as server:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
            connection.request("GET", "/held")
            assert server.began.wait(PATIENCE)
            connection.sock.shutdown(socket.SHUT_WR)
            time.sleep(0.1)
            server.go.set()
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (200, b"done")
            connection.close()

    @pytest.mark.parametrize("reset", [False, True])
    @pytest.mark.parametrize("more", [b"", get("/health"), b"G"])
    @pytest.mark.parametrize("version", ["1.0", "1.1"])
    def test_one_that_hangs_up_is_noticed(self, version: str, more: bytes, reset: bool) -> None:
        with plain() as server:
            caller = server.open()
            caller.sendall(get("/held", version) + more)
            assert server.began.wait(PATIENCE)
            time.sleep(0.05)
            left = time.monotonic()
            hang_up(caller, reset=reset)
            wait_until(lambda: bool(server.gone))
            assert server.gone[0] - left < 10  # it takes some 30 ms; the answer would never come

    def test_one_that_hangs_up_after_a_while(self) -> None:
        with plain() as server:
            caller = server.open()
            caller.sendall(get("/held"))
            assert server.began.wait(PATIENCE)
            caller.shutdown(socket.SHUT_WR)
            assert caller.recv(1000).startswith(b"HTTP/1.1 100")
            time.sleep(0.2)
            assert not server.gone
            caller.close()
            wait_until(lambda: bool(server.gone))

    def test_one_that_ends_in_the_midst_of_a_request_is_left(self) -> None:
        with plain() as server, server.open() as caller:
            caller.sendall(get("/held")[:-3])
            caller.shutdown(socket.SHUT_WR)
            assert everything(caller) == b""
            wait_until(lambda: server.num_open == 0)


class TestUnread:
    def test_an_answer_that_nobody_reads_is_given_up(self) -> None:
        with plain(send_seconds=1) as server, server.open() as deaf, server.open() as other:
            deaf.sendall(get("/large"))
            other.sendall(get("/held"))
            wait_until(lambda: server.num_open == 2)
            wait_until(lambda: server.num_open == 1)
            server.go.set()
            assert other.recv(15) == b"HTTP/1.1 200 OK"

    def test_one_that_is_read_in_time_is_whole(self) -> None:
        with plain() as server, server.open() as caller:
            caller.sendall(get("/large").replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            time.sleep(0.5)
            assert everything(caller).count(b"x") >= 50_000_000

    def test_it_does_not_delay_the_stop(self) -> None:
        with plain(shutdown_seconds=1) as server, server.open() as deaf:
            deaf.sendall(get("/large"))
            wait_until(lambda: any(one.unsent_bytes for one in list_of(server)))
            began = time.monotonic()
            server.server.should_exit = True
            wait_until(lambda: server.num_open == 0)
            assert time.monotonic() - began < 30  # it would be given up after 30 s anyway


def list_of(server: Plain) -> list[Any]:
    return list(server.server.server_state.connections)


def test_what_is_not_http_while_an_answer_is_written_ends_quietly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    chunked = b"POST /none HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    with plain() as server:
        for _ in range(3):
            with server.open() as caller:
                caller.sendall(chunked)
                assert caller.recv(12) == b"HTTP/1.1 404"
                with suppress(BrokenPipeError, ConnectionResetError):
                    caller.sendall(b"not a chunk\r\n" * 3)
                    everything(caller)
        wait_until(lambda: server.num_open == 0)
    assert "Traceback" not in caplog.text
    assert not [one for one in caplog.records if one.exc_info]
