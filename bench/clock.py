"""How long work takes, and what tables say of some times."""

import statistics
import time
from collections.abc import Callable, Sequence


def seconds(work: Callable[[], object]) -> float:
    """Of wall time."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """The median, the lowest, the highest."""
    return statistics.median(values), min(values), max(values)


def ratio(values: Sequence[float], base: Sequence[float] | None) -> str:
    """The median of the ratios, turn by turn; empty where there is no peer."""
    if base is None:
        return ""
    return f"{statistics.median(a / b for a, b in zip(values, base, strict=False)):.2f}"
