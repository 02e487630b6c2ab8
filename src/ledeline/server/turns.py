"""Callers take turns in the event loop, so that one with many requests does not hold up the others.

The loop handles whatever has arrived in rounds. If one caller sends on 500 connections at once, a
round takes as long as 500 requests, and another caller's request takes several rounds. So in each
round only some of what a caller has sent is looked at. The rest waits, and while it does, the loop
rests for as long as it worked, because the threads that search need the interpreter, too.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

_PER_ROUND: Final = 4  # pieces of data of one caller
_MIN_REST: Final = 0.0005  # seconds


class Turns:
    """Shares the event loop out among callers; those who send little never wait."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}  # pieces of each caller in this round
        self._queues: dict[str, _CallerQueue] = {}
        self._began = 0.0
        self._is_scheduled = False

    def take(self, caller: str, look: Callable[[], None], *, first: bool) -> bool:
        """Look at a piece of data now, or say that it waits; `first` if it begins a connection.

        A piece is what has arrived at once, or one of several requests in it.
        """
        if caller not in self._queues and self._used.get(caller, 0) < _PER_ROUND:
            self._used[caller] = self._used.get(caller, 0) + 1
            self._schedule()
            look()
            return True
        self._queues.setdefault(caller, _CallerQueue()).append(look, first=first)
        self._schedule()
        return False

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            loop = asyncio.get_running_loop()
            self._began = loop.time()
            loop.call_soon(self._end_round)

    def _end_round(self) -> None:
        """Rest for as long as the round took, if anything waits."""
        self._used.clear()
        if not self._queues:
            self._is_scheduled = False
            return
        loop = asyncio.get_running_loop()
        loop.call_later(max(_MIN_REST, loop.time() - self._began), self._begin_round)

    def _begin_round(self) -> None:
        loop = asyncio.get_running_loop()
        self._began = loop.time()
        for caller, queue in list(self._queues.items()):
            looks = queue.pop(_PER_ROUND)
            self._used[caller] = len(looks)
            if not queue:
                del self._queues[caller]
            for look in looks:
                look()
        loop.call_soon(self._end_round)


class _CallerQueue:
    """What one caller has sent; the beginning of a connection goes before what follows."""

    def __init__(self) -> None:
        self._first: deque[Callable[[], None]] = deque()
        self._later: deque[Callable[[], None]] = deque()

    def __bool__(self) -> bool:
        return bool(self._first or self._later)

    def append(self, look: Callable[[], None], *, first: bool) -> None:
        """Let a piece wait."""
        (self._first if first else self._later).append(look)

    def pop(self, number: int) -> list[Callable[[], None]]:
        """The next pieces, among them one that is not the first of its connection."""
        found = [self._later.popleft()] if self._later else []
        while len(found) < number and self:
            found.append((self._first or self._later).popleft())
        return found
