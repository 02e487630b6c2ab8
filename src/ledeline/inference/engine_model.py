"""A model, or several as an ensemble, in the engine in C."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from ledeline.config.search import SearchConfig
from ledeline.core.steps import Steps
from ledeline.inference.attribution import AttributionWeights, Pair, attribution_weights
from ledeline.inference.headline_model import ForbiddenIds, HypothesisRanker
from ledeline.inference.threads import num_threads
from ledeline.runtime.engine import Engine, EnginePrecision
from ledeline.search.engine_search import EngineSearch

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

# Of pairs that are followed together: sub-words that are read, and positions of all pairs.
_MAX_READ: Final = 1280
_MAX_POSITIONS: Final = 2**13


class EngineModel:
    """Searches with all engines, and explains by the first."""

    on_cpu = True
    min_texts_per_thread = 1  # a text is searched by one thread

    def __init__(self, engines: Sequence[Engine], rescorer: HypothesisRanker | None = None) -> None:
        self.engines, self.rescorer = tuple(engines), rescorer

    @property
    def precision(self) -> EnginePrecision:
        """That of matrix products."""
        return self.engines[0].precision

    @property
    def num_threads(self) -> int:
        """How many threads it may use at once."""
        return num_threads()

    def pool(self, threads: int) -> "ThreadPoolExecutor":
        """Threads that each compute on one core."""
        from concurrent.futures import ThreadPoolExecutor  # here, for a single text needs none

        return ThreadPoolExecutor(threads, "headliner")

    def begin_search(
        self,
        sources: Sequence[Sequence[int]],
        config: SearchConfig,
        forbidden: ForbiddenIds | None = None,
        *,
        keep_states: int = 0,
    ) -> EngineSearch:
        """Begin a search; what was seen in the first so many steps is kept."""
        return EngineSearch(self.engines, sources, config, forbidden, keep_states=keep_states)

    def attribution_steps(self, pairs: Sequence[Pair]) -> Steps[list[AttributionWeights]]:
        """The attributions of pairs of source and headline ids, in order."""
        weights = []
        for some in _batches(pairs):
            numbers: dict[tuple[int, ...], int] = {}
            asked = [
                (numbers.setdefault(tuple(source), len(numbers)), headline)
                for source, headline in some
            ]
            followed = yield from self.engines[0].follow(list(numbers), asked, explain=True)
            for number, (source, headline) in enumerate(some):
                seen, shape = followed.headline(number), (len(headline), len(source))
                q = None if seen.predictions is None else _rows(seen.predictions, *shape)
                assert seen.attention is not None
                weights.append(attribution_weights(_rows(seen.attention, *shape), q, source))
                yield
        return weights


def _rows(values: memoryview, rows: int, width: int) -> list[list[float]]:
    """The first rows of a matrix."""
    floats: Any = values.tolist()
    return [floats[row * width : (row + 1) * width] for row in range(rows)]


def _batches(pairs: Sequence[Pair]) -> Iterator[list[Pair]]:
    """Consecutive pairs, so few that reading their sources, and each step, is short."""
    batch: list[Pair] = []
    sources: set[tuple[int, ...]] = set()
    for pair in pairs:
        sources.add(tuple(pair[0]))
        longest = max(map(len, sources))
        is_full = len(sources) > 1 and len(sources) * longest > _MAX_READ
        if batch and (is_full or (len(batch) + 1) * longest > _MAX_POSITIONS):
            yield batch
            batch, sources = [], {tuple(pair[0])}
        batch.append(pair)
    if batch:
        yield batch
