"""The generation of some headlines, a step at a time.

Between two steps other work can go first, and texts can be given up when nobody waits for them any
more. `Headliner.generate_batch` runs all steps at once; the server shares them out.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any, Final, NamedTuple, TypeAlias

from ledeline.config.search import SearchConfig
from ledeline.core.steps import Steps
from ledeline.inference.attribution import AttributionWeights
from ledeline.inference.checks.check import Check
from ledeline.inference.checks.checker import Checker
from ledeline.inference.checks.followed import MAX_HEADLINE, searched_view
from ledeline.inference.checks.lede_vocabulary import LedeVocabulary
from ledeline.inference.compose import ComposedCandidate, Composer, distinct
from ledeline.inference.headline import Headline
from ledeline.inference.headline_model import HeadlineModel
from ledeline.inference.options import Options
from ledeline.inference.source_text import SourceText
from ledeline.runtime.verifier_engine import GeneratorView
from ledeline.search.engine_search import EngineSearch
from ledeline.search.hypothesis import Hypothesis, RunningSearch
from ledeline.text.subwords import UNK

# Only one thread at a time may use the GPU, because that sets global flags of torch.
_GPU_LOCK: Final = Lock()


class GenerationModel(NamedTuple):
    """What generates headlines."""

    model: HeadlineModel
    composer: Composer
    checker: Callable[[], Checker]  # loads it when it is first needed
    vocabulary: Callable[[], LedeVocabulary]  # what a lede lets it write; made when needed
    known_to_verifier: bool  # its states are those that the verifier was trained on


class _Found(NamedTuple):
    """What the search found, by text."""

    hypotheses: Mapping[int, Sequence[Hypothesis]]
    views: Mapping[int, "_View"]  # where its states were kept


class _Composed(NamedTuple):
    """The candidates of a text, and what the verifier sees of them."""

    candidates: Sequence[ComposedCandidate]
    view: "_View | None"


# Makes what the verifier sees; some megabytes a text, so only one is there at a time.
_View: TypeAlias = Callable[[], GeneratorView]


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
        self._lock: AbstractContextManager[Any] = nullcontext() if model.model.on_cpu else _GPU_LOCK
        self._rows = [row for row, source in enumerate(sources) if source.ids]
        self._given_up: set[int] = set()
        self._search: RunningSearch | None = None
        self._steps = self._run()

    def advance(self) -> None:
        """Take a step: encode the texts, write a word of each headline, or explain some."""
        with self._lock:
            try:
                next(self._steps)
            except StopIteration:
                self.done = True

    @property
    def results(self) -> list[Headline | None]:
        """The headlines."""
        return self.headlines

    def give_up(self, rows: Collection[int]) -> None:
        """Generate no headline for these texts; must not be called during a step."""
        self._given_up.update(rows)
        if len(self._given_up) == len(self._sources):
            self._steps.close()
            self._search, self.done = None, True
        else:
            self._tell_search()

    def _tell_search(self) -> None:
        """Let the search, if it runs, end for texts that were given up."""
        if self._search is not None and self._given_up:
            self._search.give_up([n for n, row in enumerate(self._rows) if row in self._given_up])

    def _run(self) -> Steps[None]:
        found = yield from self._find()
        composed = yield from self._compose(found)
        if self._options.check:
            composed = yield from self._check(composed)
        explained = yield from self._explain(composed)
        for row, source in enumerate(self._sources):
            if row not in self._given_up:
                ranked = composed[row].candidates if row in composed else []
                self.headlines[row] = self._model.composer.headline(
                    source, ranked, explained.get(row), self._options
                )
                yield

    def _find(self) -> Steps[_Found]:
        """The n-best list of each text that has ids; all that was found if they are ranked."""
        if not self._rows:
            return _Found({}, {})
        running = yield from self._searched()
        hypotheses = yield from self._rescored(running.hypotheses)
        found, views = dict(zip(self._rows, map(self._ranked_ones, hypotheses), strict=True)), {}
        if isinstance(running, EngineSearch) and self._keeps_states:
            views = {
                row: partial(_view, running, number, self._sources[row].ids, some)
                for number, (row, some) in enumerate(found.items())
                if some and row not in self._given_up
            }
        return _Found(found, views)

    @property
    def _keeps_states(self) -> bool:
        """Whether the verifier is to see what the search saw."""
        return bool(self._options.check) and self._model.known_to_verifier

    def _searched(self) -> Steps[RunningSearch]:
        """The search of all texts that have ids, when it has ended."""
        sources, config = [self._sources[row] for row in self._rows], self._config
        all_of_them = self._options.rank == "support" or self._model.model.rescorer is not None
        forbidden = (yield from self._forbidden()) if self._options.constrain else None
        running = self._model.model.begin_search(
            [source.ids for source in sources],
            replace(config, n_best=config.beam_size) if all_of_them else config,
            forbidden,
            keep_states=MAX_HEADLINE + 1 if self._keeps_states else 0,
        )
        self._search = running
        self._tell_search()
        yield
        while running.running:
            running.step()
            yield
        self._search = None
        return running

    def _rescored(
        self, found: Sequence[Sequence[Hypothesis]]
    ) -> Steps[Sequence[Sequence[Hypothesis]]]:
        """The hypotheses of each text in the order of a model that ranks them once more.

        Then as many as were asked for, or all if checks rank them too.
        """
        if (rescorer := self._model.model.rescorer) is None:
            return found
        number = self._config.beam_size if self._options.rank == "support" else self._config.n_best
        lists = []
        for row, some in zip(self._rows, found, strict=True):
            ranked = some
            if row not in self._given_up:
                ranked = yield from rescorer.ranked(self._sources[row].ids, some)
            lists.append(ranked[:number])
        return lists

    def _ranked_ones(self, found: Sequence[Hypothesis]) -> list[Hypothesis]:
        """All without <unk>; of others, which take a second pass, as many as were asked for."""
        others = [number for number, one in enumerate(found) if UNK in one.ids]
        left_out = set(others[self._config.n_best :])
        return [one for number, one in enumerate(found) if number not in left_out]

    def _forbidden(self) -> Steps[list[list[int]]]:
        """The sub-words that the headline of each text must not have."""
        vocabulary, forbidden = self._model.vocabulary(), list[list[int]]()
        for row in self._rows:
            given_up = row in self._given_up
            forbidden.append(
                [] if given_up else vocabulary.forbidden(self._sources[row].text or "")
            )
            yield
        return forbidden

    def _compose(self, found: _Found) -> Steps[dict[int, _Composed]]:
        """The hypotheses of each text in words."""
        wanted = [
            (row, number)
            for row, some in found.hypotheses.items()
            for number, one in enumerate(some)
            if self._options.replace_unknown and UNK in one.ids
            if row not in self._given_up
        ]
        weights = yield from self._attribute(
            (row, found.hypotheses[row][number].ids) for row, number in wanted
        )
        by_row: dict[int, dict[int, AttributionWeights]] = {row: {} for row in found.hypotheses}
        for (row, number), one in zip(wanted, weights, strict=True):
            by_row[row][number] = one
        return {
            row: _Composed(
                self._model.composer.candidates(
                    self._sources[row], some, by_row[row], self._options
                ),
                found.views.get(row),
            )
            for row, some in found.hypotheses.items()
            if row not in self._given_up
        }

    def _check(self, composed: dict[int, _Composed]) -> Steps[dict[int, _Composed]]:
        """Check the candidates of each text, and rank them if that is asked for."""
        checker = self._model.checker()
        ranked: dict[int, _Composed] = {}
        for row, (candidates, view) in composed.items():
            if row in self._given_up or not candidates:
                continue
            lede, texts = self._sources[row].text or "", [one.candidate.text for one in candidates]
            if view is not None:
                seen = view()
                yield
                checks = yield from checker.judge_steps(lede, texts, seen)
            else:
                (checks,) = yield from checker.steps([(lede, texts)])
            ranked[row] = _Composed(_ranked(candidates, checks, self._options), None)
        return ranked

    def _explain(self, composed: Mapping[int, _Composed]) -> Steps[dict[int, AttributionWeights]]:
        """The attribution of each headline, if it is asked for."""
        rows = [
            row
            for row, one in composed.items()
            if self._options.explain and one.candidates and row not in self._given_up
        ]
        weights = yield from self._attribute(
            (row, composed[row].candidates[0].found.ids) for row in rows
        )
        return dict(zip(rows, weights, strict=True))

    def _attribute(
        self, wanted: Iterable[tuple[int, Sequence[int]]]
    ) -> Steps[list[AttributionWeights]]:
        """The attributions of some headlines, each given by its text's number and its ids."""
        pairs = [(self._sources[row].ids, ids) for row, ids in wanted]
        return (yield from self._model.model.attribution_steps(pairs))


def _view(
    running: EngineSearch, number: int, ids: Sequence[int], found: Sequence[Hypothesis]
) -> GeneratorView:
    """What the verifier sees of the hypotheses of a source."""
    return searched_view(ids, found, running.seen(number, found))


def _ranked(
    candidates: Sequence[ComposedCandidate], checks: Sequence[Check], options: Options
) -> list[ComposedCandidate]:
    """As many as were asked for, the best first; first those with enough support."""
    checked = [(one.checked(check), check) for one, check in zip(candidates, checks, strict=True)]
    if options.rank == "support":
        checked.sort(key=lambda both: (both[1].support is None, -both[1].value))
    if options.min_support is not None:
        least = options.min_support
        checked.sort(key=lambda both: (both[1].support or 0) < least)
    return distinct(one for one, _ in checked)[: options.search.n_best]
