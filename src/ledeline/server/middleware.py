"""ASGI middleware: security headers, metrics, the token, and the limits of a request body."""

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
from ledeline.server.settings import LimitsConfig

TOKEN_PATHS: Final = ("/v1/", "/metrics")  # beginnings of the paths that need the token
CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS: Final = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
_RAW_HEADERS: Final = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
_CLOSE: Final = {"connection": "close"}  # the rest of the body may still be coming
_MAX_DISCARDED: Final = 2**24  # bytes of a refused body that are read and thrown away

_log = logging.getLogger(__name__)


class ResponseMiddleware:
    """The outermost middleware: adds the security headers to every response, and counts it."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request; its path, status and seconds go to the metrics."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = message.get("headers", [])
                names = {name for name, _ in own}
                message["headers"] = [*own, *(one for one in _RAW_HEADERS if one[0] not in names)]
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        finally:
            route = scope.get("route")
            path = getattr(route, "path", "other")
            self._metrics.observe_request(path, status or 499, time.perf_counter() - began)


class AccessMiddleware:
    """Lets a request through that has the token and a body within the limits; refuses others.

    It also answers 500 for an error that no handler of the application has caught.
    """

    def __init__(self, app: ASGIApp, *, limits: LimitsConfig, token: str | None) -> None:
        self._app, self._limits = app, limits
        self._token = None if token is None else token.encode()
        self._too_large = f"the body has more than {limits.body_bytes} bytes, which is the limit"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def send_and_note(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._handle(scope, receive, send_and_note)
        except Exception as error:
            _log_error(error)
            if started:
                raise
            await send_error(send, 500, "something went wrong here; the server's log has more")

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        authorized = self._is_authorized(scope)
        if authorized and self._content_length_fits(scope):
            await self._app(scope, self._limited(receive), send)
            return
        if _header(scope, b"expect") is None:  # with it, the client waits for our answer
            await _discard(receive, self._limits.seconds)
        if authorized:
            await send_error(send, 413, self._too_large)
        else:
            sentence = "a token is needed: send it as Authorization: Bearer TOKEN"
            await send_error(send, 401, sentence, {"www-authenticate": "Bearer"})

    def _content_length_fits(self, scope: Scope) -> bool:
        """Whether the Content-Length, if there is one, is within the limit."""
        length = _header(scope, b"content-length") or b""
        return not length.isdigit() or int(length[:20]) <= self._limits.body_bytes

    def _is_authorized(self, scope: Scope) -> bool:
        """Whether the path needs no token, or the right one was sent; compares in constant time."""
        path = scope["path"].removeprefix(scope.get("root_path", ""))  # as the router sees it
        if self._token is None or not path.startswith(TOKEN_PATHS):
            return True
        if scope["method"] == "OPTIONS":  # a browser's preflight request carries no token
            return True
        sent = _header(scope, b"authorization") or b""
        scheme, _, token = sent.partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token)

    def _limited(self, receive: Receive) -> Receive:
        """A `receive` that ends with 413 if the body is too large, with 408 if it is too slow."""
        size, complete = 0, False
        deadline = time.monotonic() + self._limits.seconds

        async def limited() -> Message:
            nonlocal size, complete
            if complete:
                return await receive()  # the end of the connection is all that can come
            try:
                async with asyncio.timeout(deadline - time.monotonic()):
                    message = await receive()
            except TimeoutError:
                sentence = f"the body did not arrive within {self._limits.seconds:g} s"
                raise HTTPException(408, sentence, _CLOSE) from None
            size += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if size > self._limits.body_bytes:
                if not complete:
                    await _discard(receive, deadline - time.monotonic())
                raise HTTPException(413, self._too_large, _CLOSE)
            return message

        return limited


async def _discard(receive: Receive, seconds: float) -> None:
    """Read the rest of a body for a while: many clients read no answer before they sent it all."""
    size, more = 0, True
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while more and size < _MAX_DISCARDED:
                message = await receive()
                size += len(message.get("body", b""))
                more = message.get("more_body", False)


def _log_error(error: Exception) -> None:
    """Log the error's type and traceback, but not its message, which may quote a caller's text."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    _log.error("%s, in\n%s", type(error).__name__, frames)


async def send_error(
    send: Send, status: int, sentence: str, headers: dict[str, str] | None = None
) -> None:
    """Answer with one sentence as JSON, and close the connection."""
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
