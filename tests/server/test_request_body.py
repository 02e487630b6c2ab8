"""Bodies that are dear to parse, numbers that are whole, and what is kept of a body."""

import asyncio
import gc
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

pytest.importorskip("uvicorn")

from ledeline.server import request_body
from ledeline.server.connection_pool import ByteBudget
from ledeline.server.middleware import LimitedBody
from ledeline.server.request_body import _plain
from ledeline.server.settings import LimitsConfig

pytestmark = pytest.mark.usefixtures("one_thread")

KIND = {"Content-Type": "application/json"}
MEGABYTE = 1_000_000


def filled(begin: str, unit: str, end: str) -> bytes:
    number = (MEGABYTE - len(begin) - len(end)) // (len(unit) + 1)
    return (begin + ",".join([unit] * number) + end).encode()


DEAR: dict[str, tuple[bytes, str]] = {
    "60,000 unknown names": (
        json.dumps({"texts": ["a"], **{f"x{n}": 1 for n in range(60_000)}}).encode(),
        "x0: there is no such field",
    ),
    "unknown names and no texts": (
        json.dumps({f"x{n}": 1 for n in range(60_000)}).encode(),
        "texts: is missing",
    ),
    "lists": (filled('{"texts": [', "[]", "]}"), "texts: has 33"),
    "objects": (filled('{"texts": [', "{}", "]}"), "texts: has 33"),
    "numbers": (filled('{"texts": [', "1e9", "]}"), "texts: has 24"),
    "lists as a beam": (
        filled('{"texts": ["a"], "beam": [', "[]", "]}"),
        "beam: must be a whole number",
    ),
    "half a character among lists": (
        filled('{"texts": ["\\ud800",', "[]", "]}"),
        "the body: is not valid Unicode",
    ),
    "a name again and again": (filled("{", '"texts": 1', "}"), "texts: must be a list"),
}


@pytest.fixture(scope="module")
def server(serve) -> Iterator[Any]:
    with serve() as running:
        yield running


@pytest.mark.parametrize("name", DEAR)
def test_dear_bodies_are_refused_with_few_errors(
    server, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, sentence = DEAR[name]
    seen, collections = [], []

    def plain(content: Any, known: Any) -> Any:
        seen.append(_plain(content, known))
        return seen[-1]

    def collected(phase: str, _about: Any) -> None:
        collections.append((phase, gc.isenabled()))

    monkeypatch.setattr(request_body, "_plain", plain)
    gc.callbacks.append(collected)
    try:
        found = server.ask("/v1/headlines", body=body, headers=KIND)
    finally:
        gc.callbacks.remove(collected)
    assert (found.status, found.detail[: len(sentence)]) == (422, sentence)
    assert len(found.body) < 500
    assert gc.isenabled()
    assert all(enabled for _, enabled in collections)
    if not seen:  # refused before
        return
    assert len(seen[0]) <= 20  # fields, so pydantic has no more errors to make
    lists = [value for value in seen[0].values() if isinstance(value, list)]
    assert not any(isinstance(one, list | dict) for value in lists for one in value)


@pytest.mark.parametrize(
    ("number", "status"),
    [("2", 200), ("2.0", 200), ("2e0", 200), ("20e-1", 200), ("2.5", 422), ("1e400", 422)]
    + [("true", 422), ('"2"', 422), ("[2.0]", 422), ("NaN", 422), ("0.0", 422), ("-0.0", 422)],
)
def test_a_whole_number_may_have_a_point(server, number: str, status: int) -> None:
    body = f'{{"texts": ["Rain."], "max_length": 3, "beam": {number}}}'.encode()
    assert server.ask("/v1/headlines", body=body, headers=KIND).status == status


@pytest.mark.parametrize("depth", [3, 150, 250, 100_000])
def test_deep_lists(server, depth: int) -> None:
    body = b'{"texts": %s"a"%s}' % (b"[" * depth, b"]" * depth)
    found = server.ask("/v1/headlines", body=body, headers=KIND)
    assert found.status == (422 if depth < 200 else 400)
    assert found.detail.startswith("texts.0: must be" if depth < 200 else "the body is not JSON")


@pytest.mark.parametrize("sent", [b"", b"%x\r\n%s\r\n" % (1_500_000, b" " * 1_500_000)])
def test_a_body_that_nobody_asked_for(server, until, caplog, sent: bytes) -> None:
    """A page asks for the end of the connection while it is sent, and would get the body."""
    head = b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    for _ in range(5):
        with server.open() as caller, suppress(ConnectionError):
            caller.sendall(head + sent)
            assert caller.recv(12) in (b"HTTP/1.1 200", b"")
        with server.open() as caller, suppress(ConnectionError):
            caller.sendall(head + sent)
    until(lambda: len(server.server.server_state.tasks) == 0)
    assert not [one for one in caplog.records if one.levelname == "ERROR"]


def test_only_what_is_known_and_one_unknown_name_are_kept() -> None:
    known = {"beam": False, "texts": False}
    found = _plain({"a": 1, "texts": ["a", [2.0], {}], "b": 2, "beam": 3.0}, known)
    assert found == {"texts": ["a", None, None], "beam": 3, "a": None}
    assert type(found["beam"]) is int
    assert _plain([{"a": 1}], known) == []
    assert _plain({}, known) == {}


def test_objects_are_kept_where_a_list_has_them() -> None:
    pair = {"lede": "a", "headline": "b"}
    many = {str(n): n for n in range(1000)}
    found = _plain({"pairs": [pair, "a", [pair], many]}, {"pairs": True})
    assert found["pairs"][:3] == [pair, None, None]
    assert len(found["pairs"][3]) == 3  # one more than a pair has, so it is refused


DEAR_PAIRS: dict[str, tuple[bytes, str]] = {
    "objects": (filled('{"pairs": [', "{}", "]}"), "pairs: has 33"),
    "strings": (filled('{"pairs": [', '""', "]}"), "pairs: has 33"),
    "a pair with 60,000 names": (
        json.dumps({"pairs": [{f"x{n}": 1 for n in range(60_000)}]}).encode(),
        "pairs.0.",
    ),
    "deep ledes": (filled('{"pairs": [', '{"lede": [[[[]]]]}', "]}"), "pairs: has 5"),
}


@pytest.mark.parametrize("name", DEAR_PAIRS)
def test_dear_pairs_are_refused(server, name: str) -> None:
    body, sentence = DEAR_PAIRS[name]
    found = server.ask("/v1/check", body=body, headers=KIND)
    assert (found.status, found.detail[: len(sentence)]) == (422, sentence)
    assert len(found.body) < 500


def test_a_body_that_was_parsed_is_forgotten(server, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    init = request_body._ParsedRequest.__init__

    def remember(self: Any, *arguments: Any) -> None:
        init(self, *arguments)
        made.append(self)

    monkeypatch.setattr(request_body._ParsedRequest, "__init__", remember)
    body = json.dumps({"texts": ["Rain."], "beam": 1, "max_length": 3}).encode().ljust(900_000)
    assert server.ask("/v1/headlines", body=body, headers=KIND).status == 200
    (asked,) = (one for one in made if one.method == "POST")
    assert len(asked._body) + len(asked._data) == 3


@pytest.mark.parametrize("budget", [100_000, 10**9])
def test_what_arrived_of_a_refused_body_is_not_kept_while_the_rest_is_awaited(budget: int) -> None:
    """Else a thousand callers who send almost a megabyte, and then dawdle, would hold a gigabyte."""
    limits = LimitsConfig(body_bytes=200_000)  # refused by the budget, or by its size
    sent, waiting = [b" " * 50_000] * 5, asyncio.Event()

    async def story() -> None:
        async def receive() -> dict[str, Any]:
            if not sent:
                waiting.set()
                await asyncio.sleep(60)
            return {"type": "http.request", "body": sent.pop(), "more_body": True}

        async def send(_: Any) -> None:
            pytest.fail("nothing is answered yet")

        shared = ByteBudget(budget)
        body = LimitedBody({"state": {}}, receive, send, limits, shared)
        reading = asyncio.create_task(body.read())
        await asyncio.wait_for(waiting.wait(), 60)
        assert body._parts == []
        assert shared.take(budget)
        reading.cancel()

    asyncio.run(story())
