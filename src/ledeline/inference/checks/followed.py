"""What the generator makes of known headlines, for the verifier.

Legend: N headlines of a lede, J sub-words of the longest, I of the lede, G the size of a state.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from ledeline.core.steps import Steps
from ledeline.runtime.engine import Engine
from ledeline.runtime.verifier_engine import GeneratorView
from ledeline.search.engine_search import SeenHeadlines
from ledeline.search.hypothesis import Hypothesis

MAX_HEADLINE: Final = 64  # sub-words that are read


class AskedIds(NamedTuple):
    """A lede and some headlines, in ids."""

    source: Sequence[int]
    headlines: Sequence[Sequence[int]]

    @property
    def can_be_checked(self) -> bool:
        """Whether the lede and a headline have words."""
        return bool(self.source) and any(self.headlines)


def follow(generator: Engine, asked: Sequence[AskedIds]) -> Steps[list[GeneratorView]]:
    """Have the generator write known headlines of some ledes."""
    sources = [source for source, _ in asked]
    rows = [(row, one) for row, (_, headlines) in enumerate(asked) for one in headlines]
    followed = yield from generator.follow(sources, rows)
    views, number = [], 0
    for row, (source, headlines) in enumerate(asked):
        seen = [followed.headline(number + n) for n in range(len(headlines))]
        number += len(headlines)
        values, longest = followed.values(row), max(map(len, headlines), default=0)
        step = len(values) // len(source)  # bytes of a state
        states = b"".join(bytes(one.states).ljust((longest + 1) * step, b"\0") for one in seen)
        logs = [_padded(one.logs.tolist(), longest + 1) for one in seen]
        views.append(GeneratorView(source, values, headlines, states, logs))
    return views


def searched_view(
    source: Sequence[int], found: Sequence[Hypothesis], seen: SeenHeadlines
) -> GeneratorView:
    """The same from a search that kept its states; as much of each headline as is read."""
    headlines = [one.ids[:MAX_HEADLINE] for one in found]
    steps = max(map(len, headlines)) + 1
    size = len(seen.values) // len(source)  # bytes of a state
    kept = min(steps, seen.steps) * size
    starts = range(0, len(found) * seen.steps * size, max(1, seen.steps * size))
    states = b"".join(
        seen.states[start : start + kept].ljust(steps * size, b"\0") for start in starts
    )
    logs = [_padded(one.path.logs[:steps] if one.path else (), steps) for one in found]
    return GeneratorView(source, seen.values, headlines, states, logs)


def _padded(logs: Sequence[float], steps: int) -> list[float]:
    return [*logs, *[0.0] * (steps - len(logs))]
