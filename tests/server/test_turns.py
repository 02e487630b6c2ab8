"""Callers take turns in the event loop."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from typing import Any

import pytest

pytest.importorskip("uvicorn")

from ledeline.server.turns import Turns

pytestmark = pytest.mark.usefixtures("one_thread")

ONE = {"texts": ["Rain fell."], "beam": 1, "max_length": 3}
GET = b"GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n"


def run(test: Callable[[Turns, list[str]], Awaitable[Any]]) -> list[str]:
    seen: list[str] = []

    async def main() -> None:
        async with asyncio.timeout(60):
            await test(Turns(), seen)

    asyncio.run(main())
    return seen


def test_who_sends_little_never_waits() -> None:
    async def test(turns: Turns, seen: list[str]) -> None:
        for number in range(20):
            assert turns.take("a", lambda number=number: seen.append(str(number)), first=False)
            await asyncio.sleep(0.002)

    assert run(test) == [str(number) for number in range(20)]


def test_who_sends_much_waits_and_others_do_not() -> None:
    async def test(turns: Turns, seen: list[str]) -> None:
        taken = [turns.take("much", lambda: seen.append("much"), first=False) for _ in range(100)]
        assert taken.count(True) == 4
        assert turns.take("little", lambda: seen.append("little"), first=False)
        assert seen == ["much"] * 4 + ["little"]
        while len(seen) < 50:
            await asyncio.sleep(0)
        assert turns.take("other", lambda: seen.append("other"), first=False)
        while len(seen) < 102:
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        assert turns.take("much", lambda: seen.append("much"), first=False)

    seen = run(test)
    assert seen.count("much") == 101
    assert 49 <= seen.index("other") < 60


def test_what_waits_goes_before_what_comes() -> None:
    async def test(turns: Turns, seen: list[str]) -> None:
        for number in range(30):
            turns.take("a", lambda number=number: seen.append(str(number)), first=False)
            if number % 7 == 0:
                await asyncio.sleep(0)
        while len(seen) < 30:
            await asyncio.sleep(0)

    assert run(test) == [str(number) for number in range(30)]


def test_new_connections_go_first_but_not_alone() -> None:
    async def test(turns: Turns, seen: list[str]) -> None:
        for _ in range(4):
            turns.take("a", lambda: None, first=False)
        for _ in range(9):
            turns.take("a", lambda: seen.append("later"), first=False)
        for _ in range(6):
            turns.take("a", lambda: seen.append("new"), first=True)
        while len(seen) < 15:
            await asyncio.sleep(0)

    new = ["later", "new", "new", "new"]
    assert run(test) == [*new, *new, *["later"] * 7]


# --- over sockets -------------------------------------------------------------------------------


class Flood:
    """Callers that ask again as soon as they are answered."""

    def __init__(self, port: int, path: bytes, number: int) -> None:
        self._stop = threading.Event()
        self.num_answers = 0
        self._threads = [
            threading.Thread(target=self._run, args=(port, GET % path, number // 4))
            for _ in range(4)
        ]

    def _run(self, port: int, request: bytes, number: int) -> None:
        with ExitStack() as stack, suppress(ConnectionError):
            callers = [
                stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
                for _ in range(number)
            ]
            while not self._stop.is_set():
                for one in callers:
                    one.sendall(request)
                for one in callers:
                    while (piece := one.recv(65536)) and not piece.endswith(b"}"):
                        pass
                    self.num_answers += 1

    def __enter__(self) -> "Flood":
        for one in self._threads:
            one.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._stop.set()
        for one in self._threads:
            one.join()


def test_a_flood_is_answered_and_so_is_another(serve, until) -> None:
    with serve() as server, Flood(server.port, b"health", 100) as flood:
        until(lambda: flood.num_answers > 200)
        for _ in range(3):
            assert server.headlines(ONE).status == 200
        assert server.ask("/ready").status == 200


@pytest.mark.parametrize("ends", [False, True])
def test_requests_behind_each_other_are_all_answered_in_order(serve, ends: bool) -> None:
    with serve() as server, ExitStack() as stack:
        callers = [stack.enter_context(server.open()) for _ in range(10)]
        for one in callers:
            one.sendall((GET % b"health" + GET % b"nothing") * 20)
            if ends:
                one.shutdown(socket.SHUT_WR)
            else:
                one.sendall((GET % b"ready").replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        for one in callers:
            found = b"".join(iter(lambda one=one: one.recv(65536), b""))
            found = found.replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"")
            statuses = [part[:3] for part in found.split(b"HTTP/1.1 ")[1:]]
            assert statuses == [b"200", b"404"] * 20 + ([] if ends else [b"200"])
