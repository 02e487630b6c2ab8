"""A cache for millions of look-ups: a dictionary with a size limit.

Frequent words come early in any corpus. So a cache that never forgets, and takes no new keys once
it is full, does as well as one that tracks use, and is much faster.
"""

from collections.abc import Callable
from typing import TypeVar

V = TypeVar("V")


class BoundedCache(dict[str, V]):
    """The values of the keys seen so far; when it is full, values of new keys are not stored.

    Use ``cache[key]``: a hit runs no Python code.
    """

    def __init__(self, make: Callable[[str], V], limit: int) -> None:
        super().__init__()
        self._make, self._limit = make, limit

    def __missing__(self, key: str) -> V:
        value = self._make(key)
        if len(self) < self._limit:
            self[key] = value
        return value
