"""Work in steps: a generator that yields between two steps, and returns what came of them.

Between two steps other work can go first, or the generator can be closed, which ends the work and
releases its memory.
"""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]


def run_steps(steps: Steps[T]) -> T:
    """Run all steps, one after the other; what came of them."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: T = end.value
            return found
