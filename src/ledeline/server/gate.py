"""What stands before every route: headers, the token, the size and the time of a body, counting."""

import asyncio
import hmac
import json
import time
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


_CLOSE: Final = {"connection": "close"}  # the rest of the body may still be coming


class Gate:
    """The outermost application: nothing goes in or out but through it."""

    def __init__(
        self, app: ASGIApp, *, limits: Limits, token: str | None, metrics: Metrics
    ) -> None:
        self._app, self._limits, self._metrics = app, limits, metrics
        self._token = None if token is None else token.encode()
        self._too_large = f"the body has more than {limits.body_bytes} bytes, which is the limit"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def out(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                there = {name for name, _ in message.get("headers", [])}
                more = [(k.encode(), v.encode()) for k, v in HEADERS.items()]
                message["headers"] = [
                    *message.get("headers", []),
                    *((name, value) for name, value in more if name not in there),
                ]
            await send(message)

        try:
            await self._pass(scope, receive, out)
        finally:
            route = scope.get("route")
            path = getattr(route, "path", "other")
            self._metrics.request(path, status or 499, time.perf_counter() - began)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._may(scope):
            sentence = "a token is needed: send it as Authorization: Bearer TOKEN"
            await refuse(send, 401, sentence, {"www-authenticate": "Bearer"})
            return
        said = _header(scope, b"content-length") or b""
        if said.isdigit() and int(said[:20]) > self._limits.body_bytes:
            await refuse(send, 413, self._too_large)
            return
        await self._app(scope, self._bounded(receive), send)

    def _may(self, scope: Scope) -> bool:
        """Whether a caller sends the token; how long it takes does not tell how much is right."""
        if self._token is None or not scope["path"].startswith(PRIVATE):
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
                raise HTTPException(413, self._too_large, _CLOSE)
            return message

        return bounded


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
