"""Who a caller is: its token, or its address, also behind a proxy; and what is logged of it."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("uvicorn")

from ledeline.server.logs import ACCESS_LOG, RepeatFilter, handle_loop_error
from ledeline.server.middleware import AccessMiddleware
from ledeline.server.settings import LimitsConfig, ServerConfig

pytestmark = pytest.mark.usefixtures("one_thread")

TOKENS = ("the-token-of-the-desk", "the-token-of-the-wire")
ONE = {"texts": ["Rain fell."], "beam": 1, "max_length": 3}


# --- tokens and addresses -----------------------------------------------------------------------


def caller_of(
    client: tuple[str, int] | None, sent: str | None = None, tokens: tuple[str, ...] = ()
) -> str | None:
    """Who calls, as the application is told; None if it is not asked."""
    seen: list[str] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        seen.append(scope["state"]["caller"])

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(_message: Any) -> None:
        pass

    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": "/v1/model",
        "client": client,
        "headers": [] if sent is None else [(b"authorization", f"Bearer {sent}".encode())],
    }
    middleware = AccessMiddleware(app, limits=LimitsConfig(), tokens=tokens)
    asyncio.run(middleware(scope, receive, send))
    return seen[0] if seen else None


@pytest.mark.parametrize(
    ("client", "caller"),
    [
        (("10.1.2.3", 5), "10.1.2.3"),
        (("2001:db8:1:2:3::4", 5), "2001:db8:1:2::/64"),
        (("desk", 5), "unknown"),
        (None, "unknown"),
    ],
)
def test_without_a_token_it_is_the_address(client: Any, caller: str) -> None:
    assert caller_of(client) == caller
    assert caller_of(client, TOKENS[0]) == caller  # the server has none


def test_with_one_it_is_its_number() -> None:
    address = ("10.1.2.3", 5)
    assert caller_of(address, TOKENS[0], TOKENS) == "token 1"
    assert caller_of(address, TOKENS[1], TOKENS) == "token 2"
    assert caller_of(address, TOKENS[1], TOKENS[1:]) == "token 1"
    assert caller_of(address, TOKENS[0], TOKENS[1:]) is None
    assert caller_of(address, "", TOKENS) is None
    assert caller_of(address, None, TOKENS) is None


# --- the log ------------------------------------------------------------------------------------


class Lines(logging.Handler):
    """What the access log says."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


@pytest.fixture
def lines() -> Any:
    found, log = Lines(), logging.getLogger(ACCESS_LOG)
    level, log.level = log.level, logging.INFO
    log.addHandler(found)
    yield found
    log.removeHandler(found)
    log.level = level


@pytest.fixture
def logged(lines: Lines, serve: Any) -> Callable[..., Any]:
    """A server with an access log; `with logged(...) as server`."""
    assert lines.said == []
    return lambda **settings: serve(server=ServerConfig(**settings), log=True)


def words(lines: Lines) -> list[str]:
    """The lines without their seconds."""
    found = [line.rpartition(" ") for line in lines.said]
    assert all(float(seconds) >= 0 for _, _, seconds in found)
    return [line for line, _, _ in found]


def test_a_line_has_a_path_that_exists_and_no_query(logged, lines: Lines) -> None:
    with logged() as server:
        server.ask("/health?text=secret")
        server.ask("/page/page.css?secret")
        server.ask("/secret/of?the=desk")
        server.ask("/page/secret")
        server.ask("/v1/headlines?secret")
        server.ask("/", headers={"Host": "secret.example"})
        server.ask("/health", method="SECRET")
        server.raw(b"GET /%0d%0asecret%1b%5b31m HTTP/1.1\r\nHost: localhost\r\n\r\n")
        server.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\nUser-Agent: secret\r\n\r\n")
    said = [  # a line may be written just after the next request has come
        "127.0.0.1 GET /health 200",
        "127.0.0.1 GET /page/{name} 200",
        "127.0.0.1 GET (no such path) 404",
        "127.0.0.1 GET /page/{name} 404",
        "127.0.0.1 GET /v1/headlines 405",
        "127.0.0.1 GET / 421",
        "127.0.0.1 other /health 405",
        "127.0.0.1 GET (no such path) 404",
        "127.0.0.1 GET /health 200",
    ]
    assert sorted(words(lines)) == sorted(said)


def test_a_caller_that_leaves_is_in_it(logged, lines: Lines, until) -> None:
    with logged() as server:
        server.headliner.go.clear()
        first = server.asking(ONE)
        until(lambda: sum(server.load) == 1)
        with server.open() as leaves:
            leaves.sendall(
                b"POST /v1/headlines HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\nContent-Length: 19\r\n\r\n"
                b'{"texts": ["Snow"]}'
            )
            until(lambda: sum(server.load) == 2)
        until(lambda: bool(lines.said))
        server.headliner.go.set()
        assert first.answer.status == 200
        with server.open() as leaves:
            leaves.sendall(b"POST /v1/headlines HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9")
            leaves.sendall(b"\r\nContent-Type: application/json\r\n\r\n{")
            until(lambda: len(server.server.server_state.tasks) == 1)
        until(lambda: len(lines.said) == 3)
        page = server.ask("/metrics").body.decode()
    gone, answered = "127.0.0.1 POST /v1/headlines 499", "127.0.0.1 POST /v1/headlines 200"
    assert words(lines)[:3] == [gone, answered, gone]
    assert 'ledeline_requests_total{path="/v1/headlines",status="499"} 2.0' in page


@pytest.mark.parametrize(
    ("proxies", "sent", "client"),
    [
        ((), "9.9.9.9", "127.0.0.1"),
        (("10.0.0.0/8",), "9.9.9.9", "127.0.0.1"),
        (("127.0.0.1",), "9.9.9.9", "9.9.9.9"),
        (("127.0.0.0/8",), "1.1.1.1, 9.9.9.9", "9.9.9.9"),
        (("127.0.0.1", "10.0.0.0/8"), "9.9.9.9, 10.1.1.1", "9.9.9.9"),
        (("127.0.0.1",), "9.9.9.9:77", "9.9.9.9"),
        (("127.0.0.1",), "[2001:db8::1]:77", "2001:db8::1"),
        (("127.0.0.1",), '"><script>', "unknown"),
        (("127.0.0.1",), "desk.example", "unknown"),
        (("127.0.0.1",), "999.9.9.9", "unknown"),
        (("127.0.0.1",), "fe80::1%\x7f", "fe80::1"),
    ],
)
def test_an_address_is_taken_from_known_proxies_only(
    logged, lines: Lines, proxies: tuple[str, ...], sent: str, client: str
) -> None:
    with logged(proxies=proxies) as server:
        assert server.ask("/health", headers={"X-Forwarded-For": sent}).status in (200, 400)
    assert words(lines) in ([f"{client} GET /health 200"], [])
    assert lines.said or "\x7f" in sent


class TestRepeats:
    def record(self, message: str, **more: Any) -> logging.LogRecord:
        made = logging.LogRecord("a", logging.WARNING, "", 1, "%s", (message,), None)
        made.__dict__.update(more)
        return made

    def test_equal_lines_are_left_out_and_counted(self) -> None:
        filtered, said = RepeatFilter(seconds=3600), []
        for number in range(25):
            for record in (self.record("same"), self.record(f"other {number}")):
                if filtered.filter(record):
                    said.append(record.getMessage())
        same = [line for line in said if line.startswith("same")]
        assert same[:9] == ["same"] * 9
        assert same[9:] == ["same (more like this are left out for a while)"]
        assert len(said) == 10 + 25
        filtered._began -= 3600
        record = self.record("next")
        assert filtered.filter(record)
        assert record.getMessage() == "next (15 earlier lines were left out)"
        assert filtered.filter(self.record("same"))

    def test_ever_new_lines_are_limited_too(self) -> None:
        filtered = RepeatFilter(seconds=3600)
        assert sum(filtered.filter(self.record(f"line {number}")) for number in range(1000)) <= 110

    def test_a_record_can_ask_for_less(self) -> None:
        filtered = RepeatFilter(seconds=3600)
        passed = [filtered.filter(self.record("same", most=1)) for _ in range(5)]
        assert passed == [True, False, False, False, False]

    def test_what_was_cancelled_is_no_error(self) -> None:
        record = self.record("Exception in ASGI application")
        error = asyncio.CancelledError()
        record.exc_info = (type(error), error, None)
        assert not RepeatFilter().filter(record)


def test_an_error_of_the_system_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.new_event_loop()
    try:
        error = OSError(24, "Too many open files")
        handle_loop_error(loop, {"message": "socket.accept()", "exception": error})
        handle_loop_error(loop, {"message": "x", "exception": OSError(104, "Connection reset")})
        assert [one.exc_info for one in caplog.records] == [None, None]
        first, second = (one.getMessage() for one in caplog.records)
        assert "Too many open files" in first
        assert second == "a connection failed: Connection reset"
        handle_loop_error(loop, {"message": "ours", "exception": ValueError("a bug")})
        assert caplog.records[-1].exc_info
    finally:
        loop.close()
