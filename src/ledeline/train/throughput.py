"""How fast the steps go, with everything else left out of the account."""

import time
from collections import deque
from typing import NamedTuple

RECENT = 100  # looks that count


class Pace(NamedTuple):
    """How fast the steps go."""

    pairs_per_second: float
    seconds_per_step: float


class Clock:
    """Times the steps between two looks; what comes between two calls of `start` and `read`."""

    def __init__(self) -> None:
        self._recent: deque[tuple[float, int, int]] = deque(maxlen=RECENT)
        self._steps = self._pairs = 0
        self.start()

    def start(self) -> None:
        """Begin to count now: validation or a checkpoint lies behind."""
        self._since = time.perf_counter()

    def step(self, num_pairs: int) -> None:
        """Count a step."""
        self._steps += 1
        self._pairs += num_pairs

    def read(self) -> Pace:
        """The pace of late."""
        now = time.perf_counter()
        self._recent.append((now - self._since, self._pairs, self._steps))
        self._since, self._pairs, self._steps = now, 0, 0
        seconds, pairs, steps = (sum(column) for column in zip(*self._recent, strict=True))
        return Pace(pairs / max(seconds, 1e-9), seconds / max(steps, 1))
