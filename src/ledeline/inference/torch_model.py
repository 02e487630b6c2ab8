"""A model that is run by PyTorch: on a GPU, or a system that the engine in C does not know."""

from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from threading import Barrier, Lock
from typing import Any, Final

import torch

from ledeline.config.search import SearchConfig
from ledeline.core.steps import Steps
from ledeline.data.dataset import padded
from ledeline.inference.attribution import AttributionWeights, Pair
from ledeline.inference.headline_model import ChosenPrecision, ForbiddenIds, HypothesisRanker
from ledeline.inference.traces import teacher_force
from ledeline.model.system import System
from ledeline.search.beam import BeamSearch
from ledeline.search.step_model import StepModel

# Only one thread at a time may change torch's number of threads, because a thread keeps the number
# at its first computation.
_THREADS_LOCK: Final = Lock()


class TorchModel:
    """Searches with a step model, and explains by a system."""

    min_texts_per_thread = 4  # with fewer, threads share single products instead

    def __init__(
        self,
        step_model: StepModel[Any, Any],
        explained_by: System,
        precision: ChosenPrecision,
        rescorer: HypothesisRanker | None = None,
    ) -> None:
        self.step_model, self.precision, self.rescorer = step_model, precision, rescorer
        self._explained_by = explained_by

    @property
    def on_cpu(self) -> bool:
        """Whether it computes on a CPU."""
        return self.step_model.device.type == "cpu"

    @property
    def num_threads(self) -> int:
        """How many threads it may use at once; a GPU has one."""
        if not self.on_cpu:
            return 1
        with _THREADS_LOCK:  # a thread that has not computed yet gets torch's number by asking
            return torch.get_num_threads()

    def pool(self, threads: int) -> Executor:
        """Threads that each compute on one core."""
        return (
            _single_threaded(threads) if self.on_cpu else ThreadPoolExecutor(threads, "headliner")
        )

    def begin_search(
        self,
        sources: Sequence[Sequence[int]],
        config: SearchConfig,
        forbidden: ForbiddenIds | None = None,
        *,
        keep_states: int = 0,  # noqa: ARG002 - the verifier knows the states of the engine alone
    ) -> BeamSearch:
        """Begin a search."""
        return BeamSearch(self.step_model, *padded(sources), config, forbidden)

    def attribution_steps(self, pairs: Sequence[Pair]) -> Steps[list[AttributionWeights]]:
        """The attributions of pairs of source and headline ids, in order."""
        weights = []
        for (source, _), trace in zip(pairs, teacher_force(self._explained_by, pairs), strict=True):
            weights.append(trace.weights(source))
            yield
        return weights


def _single_threaded(threads: int) -> ThreadPoolExecutor:
    """A pool in whose threads torch uses one core each; other threads are not affected."""
    before, all_started = torch.get_num_threads(), Barrier(threads + 1)

    def begin() -> None:
        torch.set_num_threads(1)  # of this thread, and of all that start later
        torch.get_num_threads()  # keeps it; else it would be set again at the first computation
        all_started.wait()

    pool = ThreadPoolExecutor(threads, "headliner", initializer=begin)
    with _THREADS_LOCK:
        for _ in range(threads):
            pool.submit(int)
        all_started.wait()
        torch.set_num_threads(before)
    return pool
