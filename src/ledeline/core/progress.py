"""Progress of long work, reported through a callback."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

T = TypeVar("T")

_EVERY = 500  # items between two reports


class Progress(Protocol):
    """A callback for long work; the command shows it as a bar."""

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Report how many items of a stage are done; the total is None where it is unknown."""


def no_progress(stage: str, done: int, total: int | None) -> None:
    """Ignore progress."""


def track_progress(
    items: Iterable[T], stage: str, total: int | None, progress: Progress
) -> Iterator[T]:
    """Yield the items, and report how many were yielded."""
    done = 0
    for done, item in enumerate(items, start=1):
        yield item
        if not done % _EVERY:
            progress(stage, done, total)
    progress(stage, done, total if total is not None else done)
