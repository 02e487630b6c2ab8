"""Which connection makes room for another, and which answers are given up."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

pytest.importorskip("uvicorn")

from ledeline.server import connection_pool
from ledeline.server.addresses import caller_network, ip_address, is_this_machine
from ledeline.server.connection_pool import ByteBudget, ConnectionPool


class Fake:
    """A connection that knows whether it was closed."""

    def __init__(self, network: str = "a", unsent_bytes: int = 0) -> None:
        self.network, self.unsent_bytes = network, unsent_bytes
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True


def admitted(pool: ConnectionPool, *networks: str) -> list[Fake]:
    found = [Fake(network) for network in networks]
    assert all(pool.admit(one) for one in found)
    return found


def closed(connections: list[Fake]) -> list[int]:
    return [place for place, one in enumerate(connections) if one.aborted]


class TestRoom:
    def test_the_longest_waiting_goes_first(self) -> None:
        pool = ConnectionPool(2, 1)
        found = admitted(pool, "a", "a", "a", "a")
        assert closed(found) == [0]
        found += admitted(pool, "a")
        assert closed(found) == [0, 1]
        assert len(pool) == 3

    def test_the_caller_with_most_goes_first(self) -> None:
        pool = ConnectionPool(4, 0)
        found = admitted(pool, "innocent", "a", "a", "b", "b", "a", "a")
        assert closed(found) == [1, 2, 3]

    def test_one_that_works_stays(self) -> None:
        pool = ConnectionPool(1, 1)
        found = admitted(pool, "a", "a")
        pool.work(found[0])
        found += admitted(pool, "a")
        assert closed(found) == [1]
        pool.work(found[2])
        assert not pool.admit(Fake())
        assert not found[2].aborted
        pool.wait(found[0])
        found += admitted(pool, "a")
        assert closed(found) == [0, 1]

    def test_who_has_answered_waits_from_then_on(self) -> None:
        pool = ConnectionPool(2, 0)
        found = admitted(pool, "a", "a")
        pool.work(found[0])
        pool.wait(found[0])
        found += admitted(pool, "a")
        assert closed(found) == [1]

    def test_one_that_has_ended_makes_room(self) -> None:
        pool = ConnectionPool(1, 0)
        (first,) = admitted(pool, "a")
        pool.work(first)
        pool.discard(first)
        pool.work(first)  # too late
        assert (len(pool), pool.num_working) == (0, 0)
        assert admitted(pool, "a")
        assert not first.aborted

    def test_only_others_count_as_work(self) -> None:
        pool = ConnectionPool(1, 5)
        found = admitted(pool, "a", "b", "c")
        pool.work(found[0])
        assert not pool.is_full_for(found[0])
        assert pool.is_full_for(found[1])


def run(test: Callable[[], Awaitable[Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_pool, "_CHECK_SECONDS", 0.01)

    async def main() -> None:
        async with asyncio.timeout(60):
            await test()

    asyncio.run(main())


class TestUnsent:
    def test_an_answer_that_nobody_takes_is_given_up(self, monkeypatch) -> None:
        async def test() -> None:
            pool = ConnectionPool(3, stall_seconds=0.05)
            found = admitted(pool, "a", "a")
            found[0].unsent_bytes = 10
            for one in found:
                pool.send(one)
                pool.wait(one)
            while not found[0].aborted:
                await asyncio.sleep(0.01)
            assert not found[1].aborted
            assert len(pool) == 1

        run(test, monkeypatch)

    def test_one_that_is_taken_slowly_is_not_but_for_its_whole_time(self, monkeypatch) -> None:
        async def test() -> None:
            pool = ConnectionPool(3, stall_seconds=0.5, send_seconds=1.0)
            (one,) = admitted(pool, "a")
            one.unsent_bytes = 10**6
            pool.send(one)
            loop, began = asyncio.get_running_loop(), asyncio.get_running_loop().time()
            while not one.aborted:
                one.unsent_bytes -= 1
                await asyncio.sleep(0.01)
            assert loop.time() - began >= 1.0

        run(test, monkeypatch)

    def test_one_that_was_taken_waits_again(self, monkeypatch) -> None:
        async def test() -> None:
            pool = ConnectionPool(1, 0, stall_seconds=0.1)
            (one,) = admitted(pool, "a")
            one.unsent_bytes = 10
            pool.send(one)
            pool.wait(one)
            one.unsent_bytes = 0
            await asyncio.sleep(0.3)
            assert not one.aborted
            assert admitted(pool, "a")
            assert one.aborted  # as the one that waited longest

        run(test, monkeypatch)

    def test_all_of_them_together_are_limited(self, monkeypatch) -> None:
        async def test() -> None:
            pool = ConnectionPool(9, max_unsent_bytes=100)
            found = admitted(pool, "a", "a", "a")
            for one in found[:2]:
                one.unsent_bytes = 50
                pool.send(one)
            assert closed(found) == []
            found[0].unsent_bytes = 49  # it takes some, so the other has stood still for longer
            await asyncio.sleep(0.1)
            found[2].unsent_bytes = 40
            pool.send(found[2])
            assert closed(found) == [1]

        run(test, monkeypatch)

    def test_they_make_room_if_nobody_waits(self, monkeypatch) -> None:
        async def test() -> None:
            pool = ConnectionPool(2, 0)
            found = admitted(pool, "a", "a")
            pool.work(found[0])
            found[1].unsent_bytes = 10
            pool.send(found[1])
            pool.wait(found[1])
            found += admitted(pool, "a")
            assert closed(found) == [1]

        run(test, monkeypatch)


def test_a_budget_is_shared_and_given_back() -> None:
    budget = ByteBudget(10)
    assert budget.take(6)
    assert not budget.take(5)
    assert budget.take(4)
    assert not budget.take(1)
    budget.give_back(6)
    assert budget.take(6)


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("10.1.2.3", "10.1.2.3"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("desk", "unknown"),
        ("999.1.1.1", "unknown"),
        ("", "unknown"),
        (None, "unknown"),
    ],
)
def test_what_stands_for_a_caller(address: str | None, network: str) -> None:
    assert caller_network(address) == network


def test_a_zone_is_no_place_for_a_text() -> None:
    assert str(ip_address("fe80::1%\x1b[31m")) == "fe80::1"


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("127.0.0.1", True),
        ("127.8.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.4", False),
        ("desk.example", False),
    ],
)
def test_whom_an_address_lets_in(host: str, ours: bool) -> None:
    assert is_this_machine(host) is ours
