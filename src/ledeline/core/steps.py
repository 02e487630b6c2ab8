"""Work in steps: a generator that yields between two steps, and returns what came of them.

Between two steps other work can go first, or the generator can be closed, which ends the work and
releases its memory.
"""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]


def run_steps(steps: Steps[T]) -> T:
    """All steps at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
