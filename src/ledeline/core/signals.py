"""How long work is asked to stop: by Ctrl-C, by SIGTERM, or because its time is over."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, Self

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)

Handler = Callable[[int, FrameType | None], None] | signal.Handlers


class Interrupted(KeyboardInterrupt):
    """A signal ends the work now."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Stop:
    """Whether, and why, work should stop.

    - Within `listening` a signal is noted. The work checks `requested` where it can stop, and
      ends there.
    - Within `interrupting` a signal raises `Interrupted` at once; within `held`, where files are
      written, only when that block is done.

    In both the second signal does not wait: it raises `Interrupted`. A signal that the process was
    started to ignore stays ignored. When the block ends, the handlers are what they were before.
    """

    def __init__(self, max_minutes: float | None = None) -> None:
        self._max_minutes = max_minutes
        self._deadline = None if max_minutes is None else time.monotonic() + 60 * max_minutes
        self._is_held = False
        self.signal: int | None = None  # the first that came

    @property
    def requested(self) -> bool:
        """Whether a signal came or the time is over."""
        return self.signal is not None or self._time_is_over

    @property
    def reason(self) -> str:
        """Why, in words; it may be that another process of the run was asked, and not this one."""
        if self.signal is not None:
            return "Ctrl-C" if self.signal == signal.SIGINT else signal.Signals(self.signal).name
        if self._time_is_over:
            return f"time limit of {self._max_minutes:g} minutes reached"
        return "another process was stopped"

    def at_most(self, seconds: float) -> float:
        """So many seconds, or fewer where the time is over before."""
        if self._deadline is None:
            return seconds
        return min(seconds, self._deadline - time.monotonic())

    @property
    def _time_is_over(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    @contextmanager
    def listening(self) -> Iterator[Self]:
        """Note signals; the work checks `requested`."""
        self._is_held = True
        with handled_by(self._receive):
            yield self

    @contextmanager
    def interrupting(self) -> Iterator[Self]:
        """Raise `Interrupted` at a signal."""
        with handled_by(self._receive):
            yield self

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let the block end before a signal interrupts; the second signal does not wait."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
        if self.signal is not None:
            raise Interrupted(self.signal)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        if not self._is_held or self.signal is not None:
            raise Interrupted(number)
        self.signal = number


@contextmanager
def handled_by(handler: Handler) -> Iterator[None]:
    """Give SIGINT and SIGTERM a handler, but not where the process was started to ignore them.

    Only the main thread can do so; in another one nothing changes.
    """
    in_main = threading.current_thread() is threading.main_thread()
    heard = [one for one in SIGNALS if in_main and signal.getsignal(one) is not signal.SIG_IGN]
    before = {one: signal.signal(one, handler) for one in heard}
    try:
        yield
    finally:
        for one, earlier in before.items():
            signal.signal(one, earlier)
