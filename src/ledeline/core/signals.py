"""Asking a run to stop: by the clock, by Ctrl-C, by SIGTERM."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stop:
    """Whether, and why, the run should stop at the next step."""

    def __init__(self, max_minutes: float | None = None) -> None:
        self._max_minutes = max_minutes
        self._until = None if max_minutes is None else time.monotonic() + 60 * max_minutes
        self.signal: int | None = None

    @property
    def wanted(self) -> bool:
        """True from the moment it was asked for."""
        return self.signal is not None or self._time_is_up

    @property
    def reason(self) -> str:
        """Why, in words."""
        if self.signal is not None:
            return "Ctrl-C" if self.signal == signal.SIGINT else signal.Signals(self.signal).name
        return f"{self._max_minutes:g} minutes" if self._time_is_up else "another process"

    def at_most(self, seconds: float) -> float:
        """So many seconds, or those until the time is up where that comes earlier."""
        return seconds if self._until is None else min(seconds, self._until - time.monotonic())

    @property
    def _time_is_up(self) -> bool:
        return self._until is not None and time.monotonic() >= self._until

    @contextmanager
    def listening(self) -> Iterator["Stop"]:
        """Take SIGINT and SIGTERM as a wish; the second one stops at once."""
        before = {one: signal.signal(one, self._ask) for one in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield self
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    def _ask(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number
