"""The checking of some pairs, a step at a time, as `Generation` generates headlines."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from ledeline.core.steps import Steps
from ledeline.inference.checks.check import Check
from ledeline.inference.checks.checker import Checker
from ledeline.inference.checks.followed import AskedIds


class PairText(NamedTuple):
    """A lede and a headline as the checker reads them."""

    lede: str
    headline: str
    ids: Sequence[int]  # of the lede
    headline_ids: Sequence[int]

    @property
    def asked(self) -> AskedIds:
        """Their ids."""
        return AskedIds(self.ids, [self.headline_ids])


def read_pair(checker: Checker, lede: str, headline: str) -> PairText:
    """Read a lede and a headline."""
    source, (own,) = checker.read(lede, [headline])
    return PairText(lede, headline, source, own)


class Checking:
    """The checks of some pairs, while they are made."""

    def __init__(self, checker: Checker, pairs: Sequence[PairText]) -> None:
        self.done = False
        self.results: list[Check | None] = [None] * len(pairs)  # None: not yet, or given up
        self._checker, self._pairs = checker, pairs
        self._given_up: set[int] = set()
        self._steps = self._run()

    def advance(self) -> None:
        """Take a step: encode the ledes, follow a word of each headline, or judge one."""
        try:
            next(self._steps)
        except StopIteration:
            self.done = True

    def give_up(self, rows: Collection[int]) -> None:
        """Make no check of these pairs; must not be called during a step."""
        self._given_up.update(rows)
        if len(self._given_up) == len(self._pairs):
            self._steps.close()
            self.done = True

    def _run(self) -> Steps[None]:
        asked = [pair.asked for pair in self._pairs]
        rows = [row for row, one in enumerate(asked) if one.can_be_checked]
        self.results = [None if row in rows else Check(None) for row in range(len(asked))]
        views = yield from self._checker.follow([asked[row] for row in rows])
        for row, view in zip(rows, views, strict=True):
            if row not in self._given_up:
                lede, headline, *_ = self._pairs[row]
                checks = yield from self._checker.judge_steps(lede, [headline], view)
                self.results[row] = checks[0]
