"""Reports bad rows and warnings to the user: the first ones, then how many more there were."""

from collections import Counter
from collections.abc import Callable
from typing import Final, Self

from ledeline.corpus import InvalidRow
from ledeline.corpus.records import Record
from ledeline.inference.headline import HeadlineWarning

LIMIT: Final = 20  # messages of each kind


class LimitedReporter:
    """Reports bad rows and warnings up to a limit each, and at the end how many more there were."""

    def __init__(
        self, say: Callable[[str], None], unit: str, *, unlimited: bool, warnings: bool
    ) -> None:
        self._say, self._unit = say, unit
        self._unlimited, self._warnings = unlimited, warnings
        self._counts: Counter[str] = Counter()

    def bad_row(self, row: InvalidRow) -> None:
        """Report a bad row."""
        self._message("bad rows", str(row))

    def warning(self, record: Record, warning: HeadlineWarning) -> None:
        """Report a warning, unless the output contains warnings."""
        if self._warnings:
            self._message("warnings", f"{self._unit} {record.line}: {warning}")

    def _message(self, kind: str, message: str) -> None:
        self._counts[kind] += 1
        if self._unlimited or self._counts[kind] <= LIMIT:
            self._say(message)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for kind, number in self._counts.items():
            if number > LIMIT and not self._unlimited:
                self._say(f"and {number - LIMIT:,} more {kind}")
