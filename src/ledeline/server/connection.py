"""One connection: uvicorn's HTTP/1.1 protocol, held against callers that mean no good."""

import asyncio
import logging
import socket
from contextlib import suppress
from typing import Any, Final

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from ledeline.server.addresses import caller_network
from ledeline.server.connection_pool import ConnectionPool
from ledeline.server.middleware import error_body
from ledeline.server.turns import Turns

BOTH_LENGTHS: Final = "Content-Length and Transfer-Encoding cannot be sent together"
NOT_HTTP: Final = "the request is not valid HTTP"
NO_ROOM: Final = "all connections are taken; try again later"
_READ_BYTES: Final = 2**14  # at a time, for each connection holds as much; asyncio's is 256 KiB
# Seconds after which a caller that sent its last byte is looked at, again and again.
_LOOKS: Final = (0.02, 0.03, 0.05)
_LATER_LOOKS: Final = 0.1
_PROBE_SECONDS: Final = 1.0  # between two probes of the same caller
_CLOSE_WAIT, _CLOSED = 8, 7  # states of a socket on Linux, the first byte of TCP_INFO

_log = logging.getLogger(__name__)


class _StrictConnection(h11.Connection):
    """h11's state of a connection, which also refuses a request with two lengths.

    A proxy in front may go by the other one and take the rest for another caller's request.
    """

    complaint = NOT_HTTP

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {name.lower() for name, _ in event.headers}
            if {b"content-length", b"transfer-encoding"} <= names:
                self.complaint = BOTH_LENGTHS
                raise h11.RemoteProtocolError(BOTH_LENGTHS)
        return event


class Connection(H11Protocol):
    """A connection of a pool, which notices callers that hang up, dawdle or do not read.

    The application finds it as `scope["state"]["connection"]`.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        pool: ConnectionPool,
        turns: Turns,
        operations_only: bool = False,
    ) -> None:
        super().__init__(config, server_state, {**app_state, "connection": self}, _loop)
        self.conn = _StrictConnection(h11.SERVER)
        self.network = caller_network(None)
        self.operations_only = operations_only
        self._pool, self._turns = pool, turns
        self._unseen = bytearray()  # what has arrived and waits for its turn
        self._is_new, self._end_unseen = True, False
        self._completes = self._is_behind = False  # an answer is completed; a request came behind
        self._head_timer: asyncio.TimerHandle | None = None
        self._look_timer: asyncio.TimerHandle | None = None
        self._ended = False  # all that the caller will ever send has been read
        self._half_closed = False  # it will send no more, but some may be unread
        self._num_looks = 0
        self._probed = 0.0

    # --- what the pool and the application ask --------------------------------------------------

    @property
    def unsent_bytes(self) -> int:
        """How many bytes the kernel has not taken yet."""
        return self.transport.get_write_buffer_size()

    @property
    def is_crowded_out(self) -> bool:
        """Whether so many others work that this one may not."""
        return self._pool.is_full_for(self)

    def abort(self) -> None:
        """Close the connection at once, and forget what is unsent."""
        self.transport.abort()

    @property
    def _works(self) -> bool:
        """Whether a complete request is being answered."""
        cycle = self.cycle
        return cycle is not None and not cycle.more_body and not cycle.response_complete

    # --- beginning and end ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Join the pool, and wait for a request."""
        super().connection_made(transport)
        if self.client is None and (peer := transport.get_extra_info("peername")):
            self.client = peer[:2]  # it is gone already, but was there when it was accepted
        self.network = caller_network(self.client[0] if self.client else None)
        if hasattr(transport, "max_size"):
            transport.max_size = _READ_BYTES
        if self._pool.admit(self):
            self._restart_head_timer()
        else:
            transport.write(_no_room())
            transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        """Leave the pool."""
        self._pool.discard(self)
        for timer in (self._head_timer, self._look_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(error)

    def shutdown(self) -> None:
        """Close an idle connection; another one after its answer."""
        try:
            super().shutdown()
        except h11.LocalProtocolError:  # it was about to be closed
            self.transport.close()

    def _restart_head_timer(self) -> None:
        """Close the connection if a whole request head does not arrive in time.

        uvicorn itself only limits the time between two requests.
        """
        if self._head_timer is not None:
            self._head_timer.cancel()
        self._head_timer = self.loop.call_later(self.timeout_keep_alive, self._close_if_idle)

    def _close_if_idle(self) -> None:
        if self._unseen or self._is_behind:  # it is we who are late
            self._restart_head_timer()
        elif self.cycle is None or self.cycle.response_complete:
            self.transport.close()

    def timeout_keep_alive_handler(self) -> None:
        """Do as our own timer does; uvicorn's does not know of data that waits for its turn."""
        self._close_if_idle()

    # --- requests and answers ---------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Look at what has arrived when it is this caller's turn."""
        waits = bool(self._unseen)
        self._unseen += data
        if not waits and not self._turns.take(self.network, self._see, first=self._is_new):
            self.flow.pause_reading()
        self._is_new = False

    def _see(self) -> None:
        data, self._unseen = bytes(self._unseen), bytearray()
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        super().data_received(data)
        if self._end_unseen and not self.eof_received():
            self.transport.close()

    def handle_events(self) -> None:
        """Take what has arrived; a request behind another one waits for its turn again."""
        if not self._completes:
            self._take_events()
        elif self.conn.trailing_data[0]:
            self._is_behind = True
            self._turns.take(self.network, self._take_events, first=False)

    def _take_events(self) -> None:
        """Tell the pool when a request is complete; end a connection on which no more come."""
        self._is_behind = False
        if self.transport.is_closing():
            return
        super().handle_events()
        if self._works:
            self._pool.work(self)
            if self._ended:
                self._watch()
            elif self.flow.read_paused:  # so the end of the connection would not be seen
                self._look_again()
        elif self._ended:
            self.transport.close()

    def on_response_complete(self) -> None:
        """Wait for the next request, unless the caller will send none."""
        self._pool.send(self)
        self._pool.wait(self)
        self._completes = True
        try:
            super().on_response_complete()
        finally:
            self._completes = False
        self._restart_head_timer()
        if self._ended and not self._works and not self._is_behind:
            self.transport.close()

    def pause_writing(self) -> None:
        """Let the pool watch an answer that is not taken as fast as it is written."""
        super().pause_writing()
        self._pool.send(self)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """Refuse what is not HTTP, with one sentence; what follows is not looked at."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        body = error_body(self.conn.complaint)  # type: ignore[attr-defined]
        answer = h11.Response(status_code=400, headers=_headers(body), reason=b"Bad Request")
        with suppress(h11.LocalProtocolError):  # an answer to this request has begun already
            for event in (answer, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _should_upgrade(self) -> bool:
        return False

    # --- callers that hang up ---------------------------------------------------------------------

    def eof_received(self) -> bool:  # type: ignore[override]
        """Answer a caller that has said all it will say, but notice one that is gone.

        Both end their stream in the same way. What tells them apart is what happens to a byte
        that is sent to them, so they are sent an interim answer, which every caller that speaks
        HTTP/1.1 skips. One that is gone answers it with a reset.
        """
        if self._unseen:
            self._end_unseen = True
            return True
        if self._works and self.scope["http_version"] >= "1.1":
            self._watch()
        elif not self._is_behind:
            return False
        self._ended = True
        return True

    def _watch(self) -> None:
        """Look at a caller that will send no more, again and again."""
        self._half_closed, self._num_looks = True, 0
        self._probe()
        self._look_again()

    def _probe(self) -> None:
        """Send an interim answer, if no answer has begun."""
        if self.conn.our_state is h11.SEND_RESPONSE and not self.cycle.response_started:
            event = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
            self.transport.write(self.conn.send(event) or b"")
            self._probed = self.loop.time()

    def _look_again(self) -> None:
        if self._look_timer is not None:
            self._look_timer.cancel()
        seconds = _LOOKS[self._num_looks] if self._num_looks < len(_LOOKS) else _LATER_LOOKS
        self._look_timer = self.loop.call_later(seconds, self._look)

    def _look(self) -> None:
        """See whether the caller is still there."""
        self._num_looks += 1
        if not self._works or self.transport.is_closing():
            self._num_looks = 0
            return
        state = _socket_state(self.transport)
        if state == _CLOSED:
            self.transport.abort()
            return
        if state == _CLOSE_WAIT and not self._half_closed:
            self._watch()
            return
        if self._half_closed and self.loop.time() - self._probed >= _PROBE_SECONDS:
            self._probe()  # it may have read the last one, and gone since then
        self._look_again()


def _socket_state(transport: asyncio.Transport) -> int | None:
    """The state of the socket, or None where the system does not tell."""
    connected = transport.get_extra_info("socket")
    try:
        if connected is None or connected.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            return _CLOSED
        if hasattr(socket, "TCP_INFO"):
            state: int = connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
            return state
    except OSError:
        return _CLOSED
    return None


def _headers(body: bytes) -> list[tuple[bytes, bytes]]:
    return [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"connection", b"close"),
    ]


def _no_room() -> bytes:
    body = error_body(NO_ROOM)
    fields = b"".join(b"%s: %s\r\n" % one for one in (*_headers(body), (b"retry-after", b"1")))
    return b"HTTP/1.1 503 Service Unavailable\r\n%s\r\n%s" % (fields, body)
