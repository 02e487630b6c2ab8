"""ASGI middleware: security headers, log, metrics, tokens, limits of connections and bodies."""

import asyncio
import hmac
import json
import logging
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Protocol

from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ledeline.server.addresses import caller_network, ip_address
from ledeline.server.connection_pool import ByteBudget
from ledeline.server.logs import log_request
from ledeline.server.metrics import Metrics
from ledeline.server.settings import LimitsConfig

OPERATIONS_PATHS: Final = ("/health", "/ready", "/metrics")
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
_DISCARD_SECONDS: Final = 5.0
_FREE_BODY_BYTES: Final = 2**14  # of each body; the rest is taken from what all of them share
_SHARED_BODY_BYTES: Final = 64 * 2**20
CLIENT_CLOSED_REQUEST: Final = 499  # for the log and the metrics; the client is gone

_log = logging.getLogger(__name__)


class ResponseMiddleware:
    """The outermost middleware: adds the security headers to every response, counts and logs it."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, log: bool = False) -> None:
        self._app, self._metrics, self._log = app, metrics, log
        self._paths: frozenset[str] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request; its path, status and seconds go to the metrics and the log."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0
        client = scope.get("client")
        if client and ip_address(client[0]) is None:  # a proxy may pass on anything
            scope["client"] = None

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
            path, seconds = self._path(scope), time.perf_counter() - began
            status = status or CLIENT_CLOSED_REQUEST
            self._metrics.observe_request(path or "other", status, seconds)
            if self._log:
                log_request(scope, path, status, seconds)

    def _path(self, scope: Scope) -> str | None:
        """The path of the route, also of a request that was refused before it came there."""
        if (route := scope.get("route")) is not None:
            found: str = route.path
            return found
        if self._paths is None:
            routes = getattr(scope.get("app"), "routes", ())
            self._paths = frozenset(one.path for one in routes)
        path = path_of(scope)
        return path if path in self._paths else None


class _Crowd(Protocol):
    """What is asked of a connection."""

    operations_only: bool  # whether it came to the port for probes

    @property
    def is_crowded_out(self) -> bool: ...


class CapacityMiddleware:
    """Refuses work beyond `server.connections`, but always answers probes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or refuse it."""
        connection: _Crowd | None = scope.get("state", {}).get("connection")
        if scope["type"] != "http" or connection is None or path_of(scope) in OPERATIONS_PATHS:
            await self._app(scope, receive, send)
        elif connection.operations_only:
            sentence = f"this port answers only {', '.join(OPERATIONS_PATHS)}"
            await refuse(scope, receive, send, 404, sentence)
        elif connection.is_crowded_out:
            await refuse(scope, receive, send, 503, TOO_MANY, {"retry-after": "1"})
        else:
            await self._app(scope, receive, send)


TOO_MANY: Final = "as many requests as possible are being answered; try again later"
TOO_MANY_BYTES: Final = "too many large bodies are arriving; try again later"


class AccessMiddleware:
    """Lets a request through that has the token and a body within the limits; refuses others.

    It also answers 500 for an error that no handler of the application has caught.
    """

    def __init__(self, app: ASGIApp, *, limits: LimitsConfig, tokens: Sequence[str]) -> None:
        self._app, self._limits = app, limits
        self._tokens = [token.encode() for token in tokens]
        self._shared_bytes = ByteBudget(_SHARED_BODY_BYTES)

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
        token = self._find_token(scope)
        client = scope.get("client")
        caller = f"token {token}" if token else caller_network(client[0] if client else None)
        scope.setdefault("state", {})["caller"] = caller
        if self._tokens and not token and self._needs_token(scope):
            sentence = "a token is needed: send it as Authorization: Bearer TOKEN"
            bearer = {"www-authenticate": "Bearer"}
            await refuse(scope, receive, send, 401, sentence, bearer, self._limits.seconds)
        elif not self._content_length_fits(scope):
            sentence, seconds = _too_large(self._limits), self._limits.seconds
            await refuse(scope, receive, send, 413, sentence, seconds=seconds)
        else:
            body = LimitedBody(scope, receive, send, self._limits, self._shared_bytes)
            scope["state"]["body"] = body
            try:
                await self._app(scope, body.receive, body.send)
            finally:
                body.release()

    def _content_length_fits(self, scope: Scope) -> bool:
        """Whether the Content-Length, if there is one, is within the limit."""
        length = header(scope, b"content-length") or b""
        return not length.isdigit() or int(length[:20]) <= self._limits.body_bytes

    def _needs_token(self, scope: Scope) -> bool:
        if scope["method"] == "OPTIONS":  # a browser's preflight request carries no token
            return False
        return path_of(scope).startswith(TOKEN_PATHS)

    def _find_token(self, scope: Scope) -> int:
        """Which of the tokens was sent, from 1, or 0; takes equally long whichever it is."""
        scheme, _, sent = (header(scope, b"authorization") or b"").partition(b" ")
        if scheme.lower() != b"bearer":
            return 0
        found = 0
        for number, token in enumerate(self._tokens, start=1):
            found = number if hmac.compare_digest(sent.strip(), token) else found
        return found


class LimitedBody:
    """A request body that ends early if it is too large or too slow; `refusal` then says why.

    Its first bytes are free. The others come out of a budget that all callers share, so that many
    large bodies at once cannot take all memory; whoever asks for more gets 503.

    For the application, a body that ends early is a caller that is gone, because it also asks for
    the end of the connection while it answers.
    """

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, limits: LimitsConfig, shared: ByteBudget
    ) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._limits, self._shared = limits, shared
        self._size = self._taken = 0
        self._parts: list[bytes] = []
        self._complete = self._answered = False
        self._deadline = time.monotonic() + limits.seconds
        self.refusal = HTTPException(CLIENT_CLOSED_REQUEST, "the caller is gone")

    async def send(self, message: Message) -> None:
        """Send a part of the answer; what arrives from now on is of no interest."""
        self._answered = True
        await self._send(message)

    async def read(self) -> bytes:
        """All of the body; raises `refusal` if it ends early."""
        while not self._complete:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise self.refusal
            self._parts.append(message.get("body", b""))
        parts, self._parts = self._parts, []
        return b"".join(parts)

    async def receive(self) -> Message:
        """The next part, or the end of the connection or of our patience."""
        if self._complete or self._answered:
            return await self._receive()  # the end of the connection is all that can come
        try:
            async with asyncio.timeout(self._deadline - time.monotonic()):
                message = await self._receive()
        except TimeoutError:
            sentence = f"the body did not arrive within {self._limits.seconds:g} s"
            return await self._refuse(408, sentence, discards=False)
        self._size += len(message.get("body", b""))
        self._complete = not message.get("more_body", False)
        if self._size > self._limits.body_bytes:
            return await self._refuse(413, _too_large(self._limits))
        beyond = max(0, self._size - _FREE_BODY_BYTES) - self._taken
        if not self._shared.take(beyond):
            return await self._refuse(503, TOO_MANY_BYTES, retry=True)
        self._taken += beyond
        connection: _Crowd | None = self._scope["state"].get("connection")
        if self._complete and connection is not None and connection.is_crowded_out:
            return await self._refuse(503, TOO_MANY, retry=True)
        return message

    async def _refuse(
        self, status: int, sentence: str, *, retry: bool = False, discards: bool = True
    ) -> Message:
        """Throw the body away, and what is still to come, unless that is what took too long."""
        self._parts.clear()
        self.release()
        if self._answered:
            return await self.receive()
        headers = {**_CLOSE, "retry-after": "1"} if retry else _CLOSE
        self.refusal = HTTPException(status, sentence, headers)
        if discards and not self._complete:
            await _discard(self._receive, self._deadline - time.monotonic())
        return {"type": "http.disconnect"}

    def release(self) -> None:
        """Let others have the bytes: the body has been parsed, or is not wanted any more."""
        self._shared.give_back(self._taken)
        self._taken = 0


def _too_large(limits: LimitsConfig) -> str:
    return f"the body has more than {limits.body_bytes} bytes, which is the limit"


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


async def refuse(
    scope: Scope,
    receive: Receive,
    send: Send,
    status: int,
    sentence: str,
    headers: dict[str, str] | None = None,
    seconds: float = _DISCARD_SECONDS,
) -> None:
    """Answer with one sentence, after a body that nobody wants has been read for so long."""
    if header(scope, b"expect") is None:  # with it, the client waits for our answer
        await _discard(receive, seconds)
    await send_error(send, status, sentence, headers)


async def send_error(
    send: Send, status: int, sentence: str, headers: dict[str, str] | None = None
) -> None:
    """Answer with one sentence as JSON, and close the connection."""
    body = error_body(sentence)
    fields = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        **_CLOSE,
        **(headers or {}),
    }
    raw = [(name.encode(), value.encode()) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


def error_body(sentence: str) -> bytes:
    """The body of an answer that is one sentence."""
    return json.dumps({"detail": sentence}).encode()


def path_of(scope: Scope) -> str:
    """The path as the router sees it, without the prefix of a proxy."""
    path: str = scope["path"].removeprefix(scope.get("root_path", ""))
    return path


def header(scope: Scope, name: bytes) -> bytes | None:
    """The value of the first header of this name."""
    for key, value in scope["headers"]:
        if key == name:
            found: bytes = value
            return found
    return None
