"""How fast the steps are, without validation and checkpoints."""

import time
from collections import deque
from typing import NamedTuple

RECENT = 100  # readings that count


class Throughput(NamedTuple):
    """How fast the steps are."""

    pairs_per_second: float
    seconds_per_step: float


class StepTimer:
    """Times the steps between `start` and `read`, and between two calls of `read`."""

    def __init__(self) -> None:
        self._recent: deque[tuple[float, int, int]] = deque(maxlen=RECENT)
        self._steps = self._pairs = 0
        self.start()

    def start(self) -> None:
        """Start to count time; what came since the last reading was not a step."""
        self._since = time.perf_counter()

    def step(self, num_pairs: int) -> None:
        """Count a step."""
        self._steps += 1
        self._pairs += num_pairs

    def read(self) -> Throughput:
        """The throughput of the recent steps."""
        now = time.perf_counter()
        self._recent.append((now - self._since, self._pairs, self._steps))
        self._since, self._pairs, self._steps = now, 0, 0
        seconds, pairs, steps = (sum(column) for column in zip(*self._recent, strict=True))
        return Throughput(pairs / max(seconds, 1e-9), seconds / max(steps, 1))
