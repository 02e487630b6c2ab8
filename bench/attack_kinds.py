"""The attacks of bench/attack.py: each goes on until it is cancelled, and then hangs up.

Requests are made before, and a refused attacker waits a moment: it shares the machine's few cores
with the server, and its own work must not be what the innocent caller waits for.
"""

import asyncio
import json
import socket
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from attack_http import BROKEN, SERVER, Answer, answered, connected, post_head, posted
from ledeline.inference.sample_ledes import LEDES

REFUSED: Final = 0.1  # seconds that an attacker waits after a refusal or a broken connection
SENT: Final = 0.05  # seconds between the last byte and the hanging up, so that work begins
MOST_RETRY: Final = 2.0  # seconds of Retry-After that callers of an overload obey at most
BEGINNING: Final = memoryview(b" " * 900_000)
UNKNOWN_KEYS: Final = 90_000
WINDOW: Final = 4096  # bytes that a caller who never reads has room for


@dataclass
class Target:
    """A server to attack, and what became of the requests."""

    port: int
    source: str | None
    bodies: dict[str, dict[str, Any]]
    scale: float = 1.0  # of the number of connections
    statuses: Counter[str] = field(default_factory=Counter)
    delivered: int = 0  # texts in answers
    last: bool = False  # whether callers should send nothing more, for a gentle end

    def number(self, connections: int) -> int:
        """How many connections instead of so many."""
        return max(2, round(connections * self.scale)) if connections > 1 else 1


class Attack(NamedTuple):
    """One of them."""

    name: str
    run: Callable[[Target], Coroutine[Any, Any, None]]
    body: str = ""  # the name of the body that it sends
    settings: tuple[str, ...] = ()  # of the server
    descriptors: int | None = None  # files that the server may open
    gentle: bool = False  # callers wait for their last answer
    honest: bool = False  # they are many, but want what they ask for; texts are counted
    begun: str = ""  # the status that an attacker must have had before a stop means anything


async def crowd(target: Target, number: int, one: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """So many at once, each again and again."""

    async def again() -> None:
        while not target.last:
            try:
                await one()
            except BROKEN:
                target.statuses["broken"] += 1
                await asyncio.sleep(REFUSED)

    await asyncio.gather(*[again() for _ in range(target.number(number))])


async def conversed(
    target: Target, request: bytes, texts: int, pause: Callable[[Answer], float]
) -> None:
    """Send a request over and over on one connection, as long as it stays."""
    reader, writer = await connected(target.port, target.source)
    try:
        while not target.last:
            writer.write(request)
            answer = await answered(reader)
            target.statuses[str(answer.status)] += 1
            if answer.status == 200:
                target.delivered += texts
            else:
                await asyncio.sleep(pause(answer))
            if b"\r\nconnection: close" in answer.head.lower():
                return
    finally:
        writer.transport.abort()


def over_and_over(name: str, connections: int) -> Callable[[Target], Coroutine[Any, Any, None]]:
    """Callers that send a body, read the answer, and send it again."""

    async def attack(target: Target) -> None:
        body = target.bodies[name]
        request, texts = posted(body), len(body["texts"])
        await crowd(
            target, connections, lambda: conversed(target, request, texts, lambda _: REFUSED)
        )

    return attack


def hung_up(name: str, connections: int) -> Callable[[Target], Coroutine[Any, Any, None]]:
    """Callers that send a body and hang up."""

    async def attack(target: Target) -> None:
        request = posted(target.bodies[name])

        async def one() -> None:
            _, writer = await connected(target.port, target.source)
            try:
                writer.write(request)
                await writer.drain()
                await asyncio.sleep(SENT)
                target.statuses["hung up"] += 1
            finally:
                writer.transport.abort()
            await asyncio.sleep(REFUSED)

        await crowd(target, connections, one)

    return attack


def overload(name: str) -> Callable[[Target], Coroutine[Any, Any, None]]:
    """Three hundred honest callers with long texts, who come back when the server says so."""

    def pause(answer: Answer) -> float:
        return min(max(answer.retry_after, REFUSED), MOST_RETRY)

    async def attack(target: Target) -> None:
        body = target.bodies[name]
        request, texts = posted(body), len(body["texts"])
        await crowd(target, 300, lambda: conversed(target, request, texts, pause))

    return attack


def idle(connections: int) -> Callable[[Target], Coroutine[Any, Any, None]]:
    """Connections that say nothing, and are opened again when they are closed."""

    async def attack(target: Target) -> None:
        async def one() -> None:
            reader, writer = await connected(target.port, target.source)
            began = time.monotonic()
            try:
                target.statuses["opened"] += 1
                await reader.read(1)
            finally:
                writer.transport.abort()
            if time.monotonic() < began + 1:
                await asyncio.sleep(5 * REFUSED)

        await crowd(target, connections, one)

    return attack


async def slow_bodies(target: Target) -> None:
    """A thousand bodies of which all but the end is there, and the end comes byte by byte."""
    head, loop = post_head(len(BEGINNING) + 50_000), asyncio.get_running_loop()
    gate = asyncio.Semaphore(1)  # beginnings come one after the other, a gigabit a second

    async def one() -> None:
        own = socket.socket()  # sent from one buffer for all, so that we stay small
        try:
            own.setblocking(False)
            if target.source is not None:
                own.bind((target.source, 0))
            await loop.sock_connect(own, (SERVER, target.port))
            async with gate:
                await loop.sock_sendall(own, head)
                async with asyncio.timeout(10):
                    await loop.sock_sendall(own, BEGINNING)
                await asyncio.sleep(8 * len(BEGINNING) / 1e9)
            target.statuses["begun"] += 1
            while not target.last:
                await asyncio.sleep(1)
                await loop.sock_sendall(own, b" ")
        except TimeoutError:
            target.statuses["not read"] += 1
        finally:
            own.close()

    await crowd(target, 1000, one)


async def unread(target: Target) -> None:
    """Large answers that nobody reads."""
    request = posted(target.bodies["unread"])

    async def one() -> None:
        reader, writer = await connected(target.port, target.source, WINDOW)
        try:
            writer.write(request)
            await writer.drain()
            target.statuses["asked"] += 1
            head = await reader.readuntil(b"\r\n\r\n")
            target.statuses[head.split(b" ", 2)[1].decode()] += 1
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            ends = asyncio.get_running_loop().time() + 3600
            while asyncio.get_running_loop().time() < ends and b" 200 " in head[:16]:
                await asyncio.sleep(1)
                writer.write(b"\r\n")  # tells us when the server has given up
                await writer.drain()
            await asyncio.sleep(REFUSED)
        finally:
            writer.transport.abort()

    await crowd(target, 20, one)


async def unknown_keys(target: Target) -> None:
    """Bodies with very many fields that there are not."""
    number = round(UNKNOWN_KEYS * min(1.0, target.scale * 10))
    body = json.dumps({"texts": ["Rain fell."]})[:-1] + "".join(
        f',"{key:x}":1' for key in range(number)
    )
    request = posted(body.encode() + b"}")
    await crowd(target, 4, lambda: conversed(target, request, 1, lambda _: REFUSED))


ATTACKS: Final = (
    Attack("dearest", over_and_over("dearest", 1), "dearest"),
    Attack("dearest, hung up", hung_up("dearest", 4), "dearest"),
    Attack("dearest, many", over_and_over("dearest", 16), "dearest"),
    Attack("small body", hung_up("small body", 4), "small body"),
    Attack("long texts", over_and_over("long texts", 4), "long texts"),
    Attack("heat maps", over_and_over("heat maps", 4), "heat maps"),
    *(
        Attack(name, overload(name), name, gentle=True, honest=True)
        for name in ("overload, 1 text", "overload, 4 texts")
    ),
    Attack("connections", idle(1100)),
    Attack("slow bodies", slow_bodies),
    Attack("unread", unread, "unread", begun="200"),
    Attack("unknown keys", unknown_keys),
    Attack(
        "dearest, deadline",
        over_and_over("dearest", 1),
        "dearest",
        settings=("--limits.seconds=2",),
        gentle=True,
    ),
    Attack("few descriptors", idle(150), descriptors=64),
)


# --- bodies -------------------------------------------------------------------------------------


def long_text(characters: int) -> str:
    """The sample ledes again and again."""
    ledes = " ".join(LEDES)
    return (ledes * (characters // len(ledes) + 1))[:characters].strip()


def wished_bodies(texts: int, characters: int, length: int) -> dict[str, dict[str, Any]]:
    """What the attacks would send if nothing were refused; at most so much of each."""
    text = long_text(characters)
    half = text[:2500]  # of which as many sub-words are read
    dear = {"beam": 50, "min_length": length}
    return {
        "dearest": {"texts": [text] * texts, **dear},
        "small body": {"texts": ["Rain fell on Peru."] * texts, **dear},
        "long texts": {"texts": [text] * texts, "beam": 5},
        "heat maps": {"texts": [text], "heat_map": True, "min_length": length},
        "overload, 1 text": {"texts": [half], "beam": 20},
        "overload, 4 texts": {"texts": [half] * 4, "beam": 20},
        # Signs that have four bytes in a body and twelve in an answer.
        "unread": {
            "texts": ["\U0001f600" * (characters * 49 // 50)] * min(texts, 48),
            "heat_map": True,
            "beam": 1,
            "max_length": 8,
        },
    }


# What is made smaller, in this order, until a server takes them.
KNOBS: Final = {
    "dearest": ("min_length", "texts", "beam"),
    "small body": ("min_length", "beam", "texts"),
    "long texts": ("texts",),
    "heat maps": ("min_length", "beam"),
    "overload, 1 text": ("beam",),
    "overload, 4 texts": ("beam",),
    "unread": ("max_length", "texts"),
}
