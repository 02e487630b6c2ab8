"""How long work tells how far it is, without knowing who shows it."""

from typing import Protocol


class Progress(Protocol):
    """Called now and then by long work; the command draws it as a bar."""

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Say that ``done`` of ``total`` units of ``stage`` are finished (total None: not known)."""


def silent(stage: str, done: int, total: int | None) -> None:
    """Show nothing."""
