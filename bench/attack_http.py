"""HTTP as bench/attack.py speaks it: requests made before, and answers read as they come."""

import asyncio
import json
import re
import socket
from typing import Any, Final, NamedTuple

SERVER: Final = "127.0.0.1"
LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
RETRY: Final = re.compile(rb"\r\nretry-after: *(\d+)", re.IGNORECASE)
LARGEST: Final = 2**16  # bytes of a head
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Answer(NamedTuple):
    """What a server said."""

    status: int
    head: bytes
    body: bytes

    @property
    def detail(self) -> str:
        """Why it refused."""
        try:
            return str(json.loads(self.body)["detail"])
        except (ValueError, KeyError, TypeError):
            return self.body[:200].decode("utf-8", "replace")

    @property
    def retry_after(self) -> float:
        """In how many seconds it wants to be asked again."""
        found = RETRY.search(self.head)
        return float(found[1]) if found else 0.0


def got(path: str) -> bytes:
    """A request for a page, on a connection of its own."""
    return f"GET {path} HTTP/1.1\r\nHost: {SERVER}\r\nConnection: close\r\n\r\n".encode()


def post_head(length: int) -> bytes:
    """The head of a request for headlines whose body has so many bytes."""
    fields = f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    return f"POST /v1/headlines HTTP/1.1\r\nHost: {SERVER}\r\n{fields}".encode()


def posted(body: dict[str, Any] | bytes) -> bytes:
    """A request for headlines."""
    sent = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
    return post_head(len(sent)) + sent


async def connected(port: int, source: str | None = None, window: int | None = None) -> Connection:
    """A connection from an address of this machine; `window`: few bytes of answers are taken."""
    own = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        own.setblocking(False)
        if window is not None:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        if source is not None:
            own.bind((source, 0))
        await asyncio.get_running_loop().sock_connect(own, (SERVER, port))
        return await asyncio.open_connection(sock=own, limit=LARGEST)
    except BaseException:
        own.close()
        raise


async def answered(reader: asyncio.StreamReader) -> Answer:
    """The next answer of a connection."""
    head = await reader.readuntil(b"\r\n\r\n")
    found = LENGTH.search(head)
    body = await (reader.readexactly(int(found[1])) if found else reader.read())
    return Answer(int(head.split(b" ", 2)[1]), head, body)


async def asked(port: int, request: bytes, source: str | None = None) -> Answer:
    """Ask once, on a connection of its own."""
    reader, writer = await connected(port, source)
    try:
        writer.write(request)
        return await answered(reader)
    finally:
        writer.transport.abort()


BROKEN: Final = (OSError, EOFError, asyncio.LimitOverrunError)  # ways in which a connection ends
