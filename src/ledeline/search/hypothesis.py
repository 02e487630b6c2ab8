"""What a search finds, and how it is carried on; torch is not needed."""

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol


class Hypothesis(NamedTuple):
    """A headline as search found it."""

    ids: tuple[int, ...]  # without <eos>
    cost: float  # -log p of all of it, <eos> counted
    truncated: bool = False  # it reached the limit of steps; its cost has no <eos>
    path: "SearchPath | None" = None  # how it came about, where that is kept

    @property
    def score(self) -> float:
        """Mean log-probability, by which headlines of different lengths are compared."""
        return -self.cost / max(1, len(self.ids) + (not self.truncated))


class SearchPath(NamedTuple):
    """How search came to a hypothesis, step by step; the last one wrote <eos>."""

    slots: tuple[int, ...]  # which slot was extended
    logs: tuple[float, ...]  # log p of what was written


class RunningSearch(Protocol):
    """A search that is carried on step by step, and can be given up between two steps."""

    @property
    def running(self) -> bool:
        """Whether there is a step left."""

    @property
    def hypotheses(self) -> Sequence[Sequence[Hypothesis]]:
        """The n-best list of each source; of one that was given up, whatever had ended."""

    def step(self) -> None:
        """Extend every hypothesis by a word, and take out finished ones."""

    def give_up(self, sources: Collection[int], /) -> None:
        """Search no further for these sources, given by number."""
