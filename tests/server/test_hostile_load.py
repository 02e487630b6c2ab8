"""A server that is asked for more than it can do; the long attacks are in bench/attack.py.

Steps of the search are slowed down here, so that a dear request takes long whatever the machine.
How long something takes is not looked at, but how many steps were taken meanwhile.
"""

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest

from ledeline.inference.generation import Generation
from ledeline.server.settings import LimitsConfig, ServerConfig

pytestmark = pytest.mark.usefixtures("one_thread")

FEWEST = 450  # steps of a dear text
LONG = "Rain fell in Peru. " * 250
INNOCENT = "Snow fell."
ONE = {"texts": [INNOCENT], "beam": 1, "max_length": 3}
DEAR = {"texts": [LONG], "beam": 1, "min_length": FEWEST}
PRICE = re.compile(r"the request costs (\d+), and (\d+) is the limit; ")
OTHER_ADDRESS = "127.0.0.2"
AMPLE = LimitsConfig(price=10**9, seconds=600.0)  # where neither price nor time shall be the reason


class Steps:
    """All steps that were taken: the first text of each."""

    def __init__(self) -> None:
        self.pause = 0.0  # seconds
        self.taken: list[str] = []

    def __len__(self) -> int:
        return len(self.taken)

    def of_others(self, since: int) -> int:
        return sum(one != INNOCENT for one in self.taken[since:])

    def rest(self) -> int:
        """Their number once there are no more."""
        number = -1
        while number != len(self):
            number = len(self)
            time.sleep(0.2 + 2 * self.pause)
        return number


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Steps are counted, and slow in a server of `slow`."""
    found, advance = Steps(), Generation.advance

    def slowly(self: Generation) -> None:
        found.taken.append(self._sources[0].text or "")
        time.sleep(found.pause)
        advance(self)

    monkeypatch.setattr(Generation, "advance", slowly)
    return found


@pytest.fixture
def slow(serve: Callable[..., Any], steps: Steps) -> Callable[..., Any]:
    """As `serve`, with a pause before each step."""

    @contextmanager
    def serving(pause: float = 0.02, **settings: Any) -> Iterator[Any]:
        with serve(**settings) as server:
            steps.taken.clear()  # those for the example on the page
            steps.pause = pause
            yield server

    return serving


def request(asked: Any) -> bytes:
    body = asked if isinstance(asked, bytes) else json.dumps(asked).encode()
    fields = f"Content-Type: application/json\r\nContent-Length: {len(body)}"
    return f"POST /v1/headlines HTTP/1.1\r\nHost: 127.0.0.1\r\n{fields}\r\n\r\n".encode() + body


@contextmanager
def sent(server: Any, asked: Any, address: str | None = None) -> Iterator[socket.socket]:
    """A request on its way, which is hung up at the end."""
    source = None if address is None else (address, 0)
    to = ("127.0.0.1", server.port)
    with socket.create_connection(to, timeout=60, source_address=source) as caller:
        caller.sendall(request(asked))
        yield caller


def has_other_address() -> bool:
    with socket.socket() as one:
        try:
            one.bind((OTHER_ADDRESS, 0))
        except OSError:
            return False
    return True


ADDRESSES = [
    None,
    pytest.param(
        OTHER_ADDRESS,
        marks=pytest.mark.skipif(not has_other_address(), reason="there is one address only"),
    ),
]


# --- work ends when nobody waits ------------------------------------------------------------------


class TestWorkEnds:
    @pytest.mark.parametrize("texts", [1, 20])
    def test_when_the_caller_hangs_up(self, slow, until, steps: Steps, texts: int) -> None:
        with slow(limits=AMPLE) as server:
            with sent(server, {**DEAR, "texts": [LONG] * texts}):
                until(lambda: len(steps) > 5)
                assert sum(server.load) == texts
            until(lambda: server.load == (0, 0))
            assert steps.rest() < FEWEST
            assert server.headlines(ONE).status == 200

    def test_when_its_time_is_over(self, slow, until, steps: Steps) -> None:
        with slow(limits=LimitsConfig(price=10**9, seconds=3.0)) as server:
            found = server.headlines(DEAR)
            assert found.status == 504
            assert found.detail
            until(lambda: server.load == (0, 0))
            assert 0 < steps.rest() < FEWEST
            assert server.headlines(ONE).status == 200

    def test_when_the_server_stops(self, slow, until, steps: Steps) -> None:
        with ExitStack() as stack:
            with slow(0.1, limits=AMPLE, server=ServerConfig(shutdown_seconds=1)) as server:
                stack.enter_context(sent(server, DEAR))
                until(lambda: len(steps) > 1)
            assert len(steps) < FEWEST

    def test_of_one_caller_while_another_waits(self, slow, until, answer_from, steps) -> None:
        with slow(0.001, limits=AMPLE) as server, sent(server, DEAR) as waiting:
            until(lambda: len(steps) > 5)
            with sent(server, DEAR):
                until(lambda: sum(server.load) == 2)
            until(lambda: sum(server.load) < 2)
            found = answer_from(waiting)
            assert found.status == 200
            assert len(found.json["headlines"]) == 1

    def test_of_many_that_come_and_go(self, slow, until, steps: Steps) -> None:
        dear = {**DEAR, "texts": [LONG] * 8}
        with slow(0.002, limits=AMPLE) as server:
            for _ in range(8):
                with ExitStack() as stack:
                    for _ in range(4):
                        stack.enter_context(sent(server, dear))
                    assert server.headlines(ONE).status == 200
            until(lambda: server.load == (0, 0))
            assert steps.rest() < 8 * FEWEST


# --- an innocent caller ---------------------------------------------------------------------------


class TestInnocentCaller:
    @pytest.mark.parametrize("address", ADDRESSES)
    def test_waits_for_few_steps_of_others(self, slow, until, steps: Steps, address) -> None:
        with (
            slow(limits=AMPLE) as server,
            sent(server, {**DEAR, "texts": [LONG] * 10}, address),
        ):
            until(lambda: len(steps) > 5)
            for _ in range(3):
                before = len(steps)
                assert server.headlines(ONE).status == 200
                others = steps.of_others(before)
                assert others <= 2 * (len(steps) - before - others) + 10
            assert sum(server.load) == 10

    @pytest.mark.parametrize("address", ADDRESSES)
    def test_waits_for_few_steps_of_many_requests(self, slow, until, steps, address) -> None:
        with slow(0.005, limits=AMPLE) as server, ExitStack() as stack:
            for _ in range(8):
                stack.enter_context(sent(server, {**DEAR, "texts": [LONG] * 5}, address))
            until(lambda: len(steps) > 5)
            before = len(steps)
            assert server.headlines(ONE).status == 200
            others = steps.of_others(before)
            assert others <= 2 * (len(steps) - before - others) + 20

    def test_is_answered_beside_answers_that_nobody_reads(self, serve, until) -> None:
        large = {**DEAR, "texts": [LONG[:1000]] * 4, "min_length": 100, "heat_map": True}
        with (
            serve(limits=AMPLE, server=ServerConfig(shutdown_seconds=1)) as server,
            ExitStack() as stack,
        ):
            for _ in range(3):
                caller = stack.enter_context(socket.socket())
                caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
                caller.connect(("127.0.0.1", server.port))
                caller.sendall(request(large))
            assert server.headlines(ONE).status == 200
            until(lambda: server.load == (0, 0))
            assert server.headlines(ONE).status == 200


def test_health_is_answered_where_no_more_requests_are(slow, until, steps: Steps) -> None:
    with slow(limits=AMPLE, server=ServerConfig(connections=3)) as server, ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(sent(server, DEAR))
        until(lambda: sum(server.load) == 3)
        assert server.headlines(ONE).status == 503
        for page in ("/health", "/ready", "/metrics"):
            assert server.ask(page).status == 200


# --- what costs too much --------------------------------------------------------------------------


TOO_DEAR: dict[str, dict[str, Any]] = {
    "64 long texts": {"texts": [LONG] * 64, "beam": 50, "min_length": 512},
    "long texts, beam 5": {"texts": [LONG] * 64, "beam": 5},
    "a heat map of each": {"texts": [LONG] * 20, "heat_map": True, "beam": 5},
}


class TestPrice:
    @pytest.mark.parametrize("name", TOO_DEAR)
    def test_too_dear(self, slow, steps: Steps, name: str) -> None:
        with slow() as server:
            found = server.headlines(TOO_DEAR[name])
            assert found.status == 422
            price, limit = map(int, PRICE.match(found.detail).groups())
            assert price > limit == LimitsConfig().price
            assert len(steps) == 0

    def test_a_small_body_with_a_long_headline(self, slow, steps: Steps) -> None:
        small = {"texts": [INNOCENT] * 64, "beam": 50, "min_length": 512}
        with slow() as server:
            found = server.headlines(small)
            assert found.status == 422
            assert "min_length" in found.detail
            assert len(steps) == 0

    def test_the_limit_is_a_setting(self, serve) -> None:
        with serve(limits=LimitsConfig(price=1)) as server:
            found = server.headlines(ONE)
            assert found.status == 422
            assert PRICE.match(found.detail)[2] == "1"


# --- too many callers -----------------------------------------------------------------------------


def texts_searched(server: Any) -> float:
    page = server.ask("/metrics").body.decode()
    return float(re.search(r"^ledeline_batch_texts_sum (\S+)$", page, re.M)[1])


def test_an_overload_is_refused_before_it_is_searched(slow, until, steps: Steps) -> None:
    asked = {"texts": [LONG[:400]], "beam": 1, "min_length": 30, "max_length": 30}
    statuses: list[int] = []
    retries: list[str | None] = []

    def call() -> None:
        for _ in range(3):
            found = server.headlines(asked)
            statuses.append(found.status)
            if found.status == 503:
                retries.append(found.headers.get("retry-after"))
                time.sleep(0.1)

    with slow(0.01, limits=LimitsConfig(seconds=2.0, waiting=64)) as server:
        for _ in range(5):
            assert server.headlines(asked).status == 200  # from which it knows how long they take
        before = texts_searched(server)
        threads = [threading.Thread(target=call) for _ in range(60)]
        for one in threads:
            one.start()
        for one in threads:
            one.join(60)
        until(lambda: server.load == (0, 0))
        searched = texts_searched(server) - before
        assert len(statuses) == 180
        assert set(statuses) <= {200, 503, 504}
        assert all(retries)
        assert statuses.count(200) >= 0.5 * searched > 0
        assert server.headlines(ONE).status == 200


def test_90_000_unknown_keys(serve) -> None:
    keys = "".join(f',"{key:x}":1' for key in range(90_000)).encode()
    body = json.dumps(ONE).encode()[:-1] + keys + b"}"
    with serve() as server, ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(sent(server, body))
        assert server.ask("/health").status == 200
        found = server.raw(request(body))
        assert (found.status, found.detail) == (422, "0: there is no such field")
        assert server.headlines(ONE).status == 200


def test_idle_connections_come_and_go(serve, until) -> None:
    with serve(server=ServerConfig(keep_alive_seconds=1)) as server:
        with ExitStack() as stack:
            idle = [stack.enter_context(server.open()) for _ in range(150)]
            for _ in range(20):
                assert server.headlines(ONE).status == 200
            assert server.ask("/health").status == 200
            for one in idle:
                with suppress(ConnectionResetError):
                    assert one.recv(1) == b""
        assert server.headlines(ONE).status == 200
