"""What a `Headliner` asks of the model that writes: to search, and to say where words came from."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from ledeline.config.search import SearchConfig
from ledeline.core.steps import Steps
from ledeline.inference.attribution import AttributionWeights, Pair
from ledeline.search.hypothesis import Hypothesis, RunningSearch

if TYPE_CHECKING:
    from concurrent.futures import Executor

ChosenPrecision: TypeAlias = Literal["float32", "float16", "int8"]
ForbiddenIds: TypeAlias = Sequence[Sequence[int]]  # of each source; they are never written


class HypothesisRanker(Protocol):
    """A model that ranks once more what a search found."""

    def ranked(self, source: Sequence[int], found: Sequence[Hypothesis]) -> Steps[list[Hypothesis]]:
        """The hypotheses of a source, the best first."""


class HeadlineModel(Protocol):
    """A model, or several as an ensemble. Several threads may use it at once."""

    @property
    def precision(self) -> ChosenPrecision:
        """That of matrix products."""

    @property
    def on_cpu(self) -> bool:
        """Whether it computes on a CPU."""

    @property
    def num_threads(self) -> int:
        """How many threads it may use at once."""

    @property
    def min_texts_per_thread(self) -> int:
        """How many texts are worth a thread of their own."""

    @property
    def rescorer(self) -> HypothesisRanker | None:
        """What ranks once more what a search finds."""

    def pool(self, threads: int) -> "Executor":
        """Threads that each compute on one core; it must be shut down after use."""

    def begin_search(
        self,
        sources: Sequence[Sequence[int]],
        config: SearchConfig,
        forbidden: ForbiddenIds | None = None,
        *,
        keep_states: int = 0,
    ) -> RunningSearch:
        """Begin a search; what was seen in the first so many steps is kept, if it can be."""

    def attribution_steps(self, pairs: Sequence[Pair]) -> Steps[list[AttributionWeights]]:
        """The attributions of pairs of source and headline ids, in order."""
