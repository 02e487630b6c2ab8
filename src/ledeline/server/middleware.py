"""What stands before every route: headers, counting, the token, the size and time of a body."""

import asyncio
import hmac
import json
import logging
import time
import traceback
from contextlib import suppress
from typing import Final

from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ledeline.server.metrics import Metrics
from ledeline.server.settings import Limits

PRIVATE: Final = ("/v1/", "/metrics")  # what a token is asked for
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
_SENT: Final = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
_CLOSE: Final = {"connection": "close"}  # the rest of the body may still be coming
_DISCARDED: Final = 2**24  # bytes of a body that are read to be thrown away, at most

_log = logging.getLogger(__name__)


class Envelope:
    """The outermost application: every answer gets its headers here, and is counted."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count how it was answered."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def out(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = message.get("headers", [])
                there = {name for name, _ in own}
                message["headers"] = [*own, *(one for one in _SENT if one[0] not in there)]
            await send(message)

        try:
            await self._app(scope, receive, out)
        finally:
            route = scope.get("route")
            path = getattr(route, "path", "other")
            self._metrics.request(path, status or 499, time.perf_counter() - began)


class Gate:
    """Nothing comes in but through it: with the token, and with a body as it may be."""

    def __init__(self, app: ASGIApp, *, limits: Limits, token: str | None) -> None:
        self._app, self._limits = app, limits
        self._token = None if token is None else token.encode()
        self._too_large = f"the body has more than {limits.body_bytes} bytes, which is the limit"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def out(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._pass(scope, receive, out)
        except Exception as error:
            _report(error)
            if begun:
                raise
            await refuse(send, 500, "something went wrong here; the server's log has more")

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        may, fits = self._may(scope), self._fits(scope)
        if may and fits:
            await self._app(scope, self._bounded(receive), send)
            return
        if _header(scope, b"expect") is None:  # else the caller waits for the answer
            await _discard(receive, self._limits.seconds)
        if may:
            await refuse(send, 413, self._too_large)
        else:
            sentence = "a token is needed: send it as Authorization: Bearer TOKEN"
            await refuse(send, 401, sentence, {"www-authenticate": "Bearer"})

    def _fits(self, scope: Scope) -> bool:
        """Whether the body is as small as it must be, where its size is told."""
        said = _header(scope, b"content-length") or b""
        return not said.isdigit() or int(said[:20]) <= self._limits.body_bytes

    def _may(self, scope: Scope) -> bool:
        """Whether a caller sends the token; how long it takes does not tell how much is right."""
        path = scope["path"].removeprefix(scope.get("root_path", ""))  # as the router sees it
        if self._token is None or not path.startswith(PRIVATE):
            return True
        if scope["method"] == "OPTIONS":  # a browser asks what it may send, without the token
            return True
        sent = _header(scope, b"authorization") or b""
        kind, _, token = sent.partition(b" ")
        return kind.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token)

    def _bounded(self, receive: Receive) -> Receive:
        """A body that is neither larger than it may be nor longer on its way."""
        size, whole = 0, False
        ends = time.monotonic() + self._limits.seconds

        async def bounded() -> Message:
            nonlocal size, whole
            if whole:
                return await receive()  # nothing but the end of the connection
            try:
                async with asyncio.timeout(ends - time.monotonic()):
                    message = await receive()
            except TimeoutError:
                sentence = f"the body was not there after {self._limits.seconds:g} s"
                raise HTTPException(408, sentence, _CLOSE) from None
            size += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if size > self._limits.body_bytes:
                if not whole:
                    await _discard(receive, ends - time.monotonic())
                raise HTTPException(413, self._too_large, _CLOSE)
            return message

        return bounded


async def _discard(receive: Receive, seconds: float) -> None:
    """Read on, for a while: many callers look for no answer before they have sent all."""
    size, more = 0, True
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while more and size < _DISCARDED:
                message = await receive()
                size += len(message.get("body", b""))
                more = message.get("more_body", False)


def _report(error: Exception) -> None:
    """Log what went wrong and where; not the message of it, which may have a text in it."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    _log.error("%s, in\n%s", type(error).__name__, frames)


async def refuse(
    send: Send, status: int, sentence: str, headers: dict[str, str] | None = None
) -> None:
    """Answer with a sentence, and end the connection."""
    body = json.dumps({"detail": sentence}).encode()
    fields = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        **_CLOSE,
        **(headers or {}),
    }
    raw = [(name.encode(), value.encode()) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


def _header(scope: Scope, name: bytes) -> bytes | None:
    for key, value in scope["headers"]:
        if key == name:
            found: bytes = value
            return found
    return None
