"""The connections of a listener: how many there may be, and which one makes room for another.

A connection waits (it is idle, or its request is still arriving), works (its request is complete
and is being answered), or sends (its caller has yet to take the answer). Only those that work are
limited by the settings. Those that wait cost a socket and little else, so there may be some more of
them, and when even these are used up, the one that has waited longest makes room.
"""

import asyncio
from dataclasses import dataclass
from typing import Final, Protocol

ACCEPT_BURST: Final = 4  # connections accepted at a time; asyncio tries as often without files left
RESERVE: Final = 64  # sockets beyond the limit, so that probes are answered when all work
STALL_SECONDS: Final = 5.0  # without a byte taken, after which an answer is given up
MAX_UNSENT_BYTES: Final = 64 * 2**20  # of the answers of all callers together
_CHECK_SECONDS: Final = 0.5  # between two looks at what is unsent


class Pooled(Protocol):
    """What the pool knows of a connection."""

    @property
    def network(self) -> str:
        """Who is at the other end."""

    @property
    def unsent_bytes(self) -> int:
        """How many bytes the kernel has not taken yet."""

    def abort(self) -> None:
        """Close the connection at once, and forget what is unsent."""


@dataclass
class _Unsent:
    size: int
    since: float
    progress: float  # when a byte was taken last


class ConnectionPool:
    """Keeps the connections of one listener within its limits; used by the event loop only."""

    def __init__(
        self,
        limit: int,
        reserve: int = RESERVE,
        *,
        send_seconds: float = 30.0,
        stall_seconds: float = STALL_SECONDS,
        max_unsent_bytes: int = MAX_UNSENT_BYTES,
    ) -> None:
        self._limit, self._max_sockets = limit, limit + reserve
        self._send_seconds, self._max_unsent_bytes = send_seconds, max_unsent_bytes
        self._stall_seconds = min(stall_seconds, send_seconds)
        self._members: set[Pooled] = set()
        self._working: set[Pooled] = set()
        # By caller, in the order in which they began to wait.
        self._waiting: dict[str, dict[Pooled, None]] = {}
        self._unsent: dict[Pooled, _Unsent] = {}
        self._check: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._members)

    @property
    def num_working(self) -> int:
        """How many have a complete request."""
        return len(self._working)

    def is_full_for(self, connection: Pooled) -> bool:
        """Whether as many others work as may."""
        return len(self._working) - (connection in self._working) >= self._limit

    # --- how a connection fares -------------------------------------------------------------------

    def admit(self, connection: Pooled) -> bool:
        """Take a new connection in, or say that nobody can make room for it."""
        if len(self._members) >= self._max_sockets and not self._make_room():
            return False
        self._members.add(connection)
        self.wait(connection)
        return True

    def work(self, connection: Pooled) -> None:
        """Note that its request is complete."""
        if connection in self._members:
            self._stop_waiting(connection)
            self._working.add(connection)

    def wait(self, connection: Pooled) -> None:
        """Note that it has nothing to do; if it waits already, it has done so since then."""
        self._working.discard(connection)
        if connection in self._members and connection not in self._unsent:
            self._waiting.setdefault(connection.network, {})[connection] = None

    def send(self, connection: Pooled) -> None:
        """Note that an answer was written, of which some may be unsent."""
        size = connection.unsent_bytes
        if not size or connection not in self._members:
            return
        loop = asyncio.get_running_loop()
        self._stop_waiting(connection)
        self._unsent.setdefault(connection, _Unsent(size, loop.time(), loop.time())).size = size
        self._drop_stalled_if_too_much()
        if self._check is None:
            self._check = loop.call_later(_CHECK_SECONDS, self._check_unsent)

    def discard(self, connection: Pooled) -> None:
        """Forget a connection that has ended."""
        self._members.discard(connection)
        self._working.discard(connection)
        self._unsent.pop(connection, None)
        self._stop_waiting(connection)

    def _stop_waiting(self, connection: Pooled) -> None:
        waiting = self._waiting.get(connection.network, {})
        waiting.pop(connection, None)
        if not waiting:
            self._waiting.pop(connection.network, None)

    # --- who has to go ----------------------------------------------------------------------------

    def _make_room(self) -> bool:
        """Close the longest waiting of the caller that has most; else an answer nobody takes."""
        if self._waiting:
            most = max(self._waiting.values(), key=len)
            self._drop(next(iter(most)))
            return True
        stalled = [one for one in self._unsent if one not in self._working]
        if stalled:
            self._drop(min(stalled, key=lambda one: self._unsent[one].progress))
            return True
        return False

    def _drop(self, connection: Pooled) -> None:
        self.discard(connection)  # now, for the loop ends it only later
        connection.abort()

    def _check_unsent(self) -> None:
        """Give up answers that are not taken, and look again later while there are any."""
        loop = asyncio.get_running_loop()
        now, self._check = loop.time(), None
        for connection, unsent in list(self._unsent.items()):
            size = connection.unsent_bytes
            if size < unsent.size:
                unsent.progress = now
            unsent.size = size
            if not size:
                del self._unsent[connection]
                if connection not in self._working:
                    self.wait(connection)
            elif (
                now - unsent.progress >= self._stall_seconds
                or now - unsent.since >= self._send_seconds
            ):
                self._drop(connection)
        if self._unsent:
            self._check = loop.call_later(_CHECK_SECONDS, self._check_unsent)

    def _drop_stalled_if_too_much(self) -> None:
        by_progress = sorted(self._unsent, key=lambda one: self._unsent[one].progress)
        total = sum(one.unsent_bytes for one in by_progress)
        for connection in by_progress:
            if total <= self._max_unsent_bytes:
                return
            total -= connection.unsent_bytes
            self._drop(connection)


class ByteBudget:
    """Bytes that many share."""

    def __init__(self, size: int) -> None:
        self._left = size

    def take(self, size: int) -> bool:
        """Take so many bytes, or say that they are not there."""
        if size > self._left:
            return False
        self._left -= size
        return True

    def give_back(self, size: int) -> None:
        """Let others have these bytes."""
        self._left += size
