"""How long work tells how far it is, without knowing who shows it."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

T = TypeVar("T")

_EVERY = 500  # items between two reports


class Progress(Protocol):
    """Called now and then by long work; the command draws it as a bar."""

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Say that so much of a stage is done; the total is None where nobody knows it."""


def silent(stage: str, done: int, total: int | None) -> None:
    """Show nothing."""


def counted(items: Iterable[T], stage: str, total: int | None, progress: Progress) -> Iterator[T]:
    """Pass items on and report how many went by."""
    done = 0
    for done, item in enumerate(items, start=1):
        yield item
        if not done % _EVERY:
            progress(stage, done, total)
    progress(stage, done, total if total is not None else done)
