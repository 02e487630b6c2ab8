"""The generation of some headlines, a step at a time.

Between two steps other work can go first, and texts can be given up when nobody waits for them any
more. `Headliner.generate_batch` runs all steps at once; the server shares them out.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import Any, Final, NamedTuple

from ledeline.config import SearchConfig
from ledeline.core.steps import Steps
from ledeline.data.dataset import padded
from ledeline.inference.attribution import AttributionWeights, Tracer, attribution_steps
from ledeline.inference.compose import Composer
from ledeline.inference.headline import Headline
from ledeline.inference.options import Options
from ledeline.inference.source_text import SourceText
from ledeline.search import BeamSearch, Hypothesis, StepModel
from ledeline.text.subwords import UNK

# Only one thread at a time may use the GPU, because that sets global flags of torch.
_GPU_LOCK: Final = Lock()


class GenerationModel(NamedTuple):
    """What generates headlines."""

    step_model: StepModel[Any, Any]
    tracer: Tracer  # what gives attributions
    composer: Composer

    @property
    def on_cpu(self) -> bool:
        """Whether it computes on a CPU."""
        return self.step_model.device.type == "cpu"


class Generation:
    """The headlines of some texts, while they are generated."""

    def __init__(
        self,
        model: GenerationModel,
        sources: Sequence[SourceText],
        options: Options,
        config: SearchConfig,
    ) -> None:
        self.done = False
        self.headlines: list[Headline | None] = [None] * len(sources)  # None: not yet, or given up
        self._model, self._sources = model, sources
        self._options, self._config = options, config
        self._lock: AbstractContextManager[Any] = nullcontext() if model.on_cpu else _GPU_LOCK
        self._rows = [row for row, source in enumerate(sources) if source.ids]
        self._given_up: set[int] = set()
        self._search: BeamSearch | None = None
        self._steps = self._run()

    def advance(self) -> None:
        """Take a step: encode the texts, write a word of each headline, or explain some."""
        with self._lock:
            try:
                next(self._steps)
            except StopIteration:
                self.done = True

    def give_up(self, rows: Collection[int]) -> None:
        """Generate no headline for these texts; must not be called during a step."""
        self._given_up.update(rows)
        if len(self._given_up) == len(self._sources):
            self._steps.close()
            self._search, self.done = None, True
        elif self._search is not None:
            self._search.give_up([n for n, row in enumerate(self._rows) if row in self._given_up])

    def _run(self) -> Steps[None]:
        found = yield from self._find()
        weights = yield from self._attribute(found)
        for row, source in enumerate(self._sources):
            if row not in self._given_up:
                self.headlines[row] = self._model.composer.headline(
                    source, found.get(row, ()), weights.pop(row, {}), self._options
                )
                yield

    def _find(self) -> Steps[Mapping[int, Sequence[Hypothesis]]]:
        """The n-best list of each text that has ids."""
        if not self._rows:
            return {}
        ids, lengths = padded([self._sources[row].ids for row in self._rows])
        running = BeamSearch(self._model.step_model, ids, lengths, self._config)
        self._search = running
        yield
        while running.running:
            running.step()
            yield
        self._search = None
        return dict(zip(self._rows, running.hypotheses, strict=True))

    def _attribute(
        self, found: Mapping[int, Sequence[Hypothesis]]
    ) -> Steps[dict[int, dict[int, AttributionWeights]]]:
        """For each text, by rank, the attribution of the headlines that need it."""
        explain, replace_unknown = self._options.explain, self._options.replace_unknown
        wanted = [
            (row, rank)
            for row, headlines in found.items()
            for rank, headline in enumerate(headlines)
            if (explain and not rank) or (replace_unknown and UNK in headline.ids)
            if row not in self._given_up
        ]
        pairs = [(self._sources[row].ids, found[row][rank].ids) for row, rank in wanted]
        weights: dict[int, dict[int, AttributionWeights]] = {row: {} for row in found}
        attributed = yield from attribution_steps(self._model.tracer, pairs)
        for (row, rank), one in zip(wanted, attributed, strict=True):
            weights[row][rank] = one
        return weights
