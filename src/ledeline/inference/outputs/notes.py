"""What is to be said about ledes and headlines beside the headlines: some of it, then how much."""

from collections import Counter
from collections.abc import Callable
from typing import Final, Self

from ledeline.corpus import InvalidRow
from ledeline.corpus.records import Record
from ledeline.inference.headline import HeadlineWarning

LIMIT: Final = 20  # sentences of each kind


class Notes:
    """Says each bad row and each warning up to a limit, and at the end how many more there were."""

    def __init__(
        self, say: Callable[[str], None], noun: str, *, everything: bool, warnings: bool
    ) -> None:
        self._say, self._noun = say, noun
        self._everything, self._warnings = everything, warnings
        self._counts: Counter[str] = Counter()

    def report(self, row: InvalidRow) -> None:
        """Name a bad row."""
        self._note("bad rows", str(row))

    def warn(self, record: Record, caution: HeadlineWarning) -> None:
        """Say a warning, unless the output has it."""
        if self._warnings:
            self._note("warnings", f"{self._noun} {record.line}: {caution}")

    def _note(self, kind: str, sentence: str) -> None:
        self._counts[kind] += 1
        if self._everything or self._counts[kind] <= LIMIT:
            self._say(sentence)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for kind, number in self._counts.items():
            if number > LIMIT and not self._everything:
                self._say(f"and {number - LIMIT:,} more {kind}")
