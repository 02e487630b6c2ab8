"""Tune the weights of extractive features, which makes ABS+ of ABS (Rush et al. 2015).

Headlines are searched for with the weights so far, and join the lists of those found before. The
weights that choose best from these lists are found by line searches, and it begins again. In the
end, the weights count whose own search found the best headlines.

The metric is the mean of ROUGE-1 and ROUGE-2 F1. ROUGE-1 alone would not miss the order of words.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, Final, NamedTuple

import numpy as np

from ledeline import rouge
from ledeline.config import SearchConfig
from ledeline.config.extractive import ExtractiveWeights
from ledeline.config.search import Precision
from ledeline.config.section import at_least, section
from ledeline.core.errors import CorpusError
from ledeline.core.progress import Progress, no_progress
from ledeline.data.dataset import padded
from ledeline.evaluation.audit import compared_words
from ledeline.evaluation.line_search import LARGEST, Bounds, Floats, NBestLists, tuned_weights
from ledeline.inference.detokenize import headline_words
from ledeline.inference.engines import step_model_of
from ledeline.inference.headliner import resolve_search
from ledeline.inference.options import DEFAULT_OPTIONS
from ledeline.inference.source_text import read_source_text
from ledeline.model.format.model_folder import ModelBundle
from ledeline.search import ExtractiveModel, Hypothesis, feature_counts, search
from ledeline.search.extractive_features import FeatureCounts
from ledeline.text.profiles import PAPER, PROFILES
from ledeline.text.tokenizer import Tokenizer

_BATCH: Final = 32


@section
class TuningConfig:
    """How weights of features are tuned."""

    beam: Annotated[int, "Beam size, and headlines of each list.", at_least(1)] = 20
    rounds: Annotated[
        int, "How often headlines are searched for, and weights tuned.", at_least(1)
    ] = 4
    restarts: Annotated[int, "Random weights to begin with, beside those so far.", at_least(0)] = 10
    seed: Annotated[int, "Random seed of these.", at_least(0)] = 1


class TunedFeatures(NamedTuple):
    """Weights, and the mean of ROUGE-1 and ROUGE-2 F1 of the headlines found with them."""

    weights: ExtractiveWeights
    before: float
    after: float  # never less than before
    num_pairs: int


def tune_features(
    model: ModelBundle,
    pairs: Sequence[tuple[str, str]],
    config: TuningConfig,
    *,
    precision: Precision = "auto",
    progress: Progress = no_progress,
) -> TunedFeatures:
    """Tune the weights of a model's features on pairs of ledes and headlines."""
    start = model.extractive or ExtractiveWeights()
    finder = _Finder(model, pairs, config.beam, start.lm, precision, progress)
    rng = np.random.default_rng(config.seed)
    weights, bounds = _as_array(start), _bounds(start)
    tried: list[tuple[float, Floats]] = []
    for number in range(1, config.rounds + 2):  # the last one only finds
        value, num_new = finder.find(weights, f"round {number}")
        tried.append((value, weights))
        if number > config.rounds or not num_new:
            break
        starts = [weights, *(one for _, one in tried), np.zeros_like(weights).clip(*bounds)]
        weights = tuned_weights(
            finder.lists(), starts, bounds, num_restarts=config.restarts, rng=rng
        )
    after, best = max(tried, key=lambda one: one[0])  # of equals, the first
    return TunedFeatures(_as_weights(best, start.lm), tried[0][0], after, finder.num_pairs)


def _bounds(start: ExtractiveWeights) -> Bounds:
    """As published: another order may only be punished, and the weight of length stays."""
    low = ExtractiveWeights(
        unigram=-LARGEST, bigram=-LARGEST, trigram=-LARGEST, order=-LARGEST, length=start.length
    )
    high = ExtractiveWeights(
        unigram=LARGEST, bigram=LARGEST, trigram=LARGEST, order=0.0, length=start.length
    )
    return Bounds(_as_array(low), _as_array(high))


def _as_array(weights: ExtractiveWeights) -> Floats:
    return np.array([getattr(weights, name) for name in FeatureCounts._fields])


def _as_weights(values: Floats, lm: float) -> ExtractiveWeights:
    named: dict[str, Any] = dict(zip(FeatureCounts._fields, values.tolist(), strict=True))
    return ExtractiveWeights(lm=lm, **named)


class _Found(NamedTuple):
    """A hypothesis of a list."""

    log: float  # log p, times its factor
    steps: int
    counts: FeatureCounts
    metric: float


class _Finder:
    """Finds headlines with any weights, and keeps all that it found."""

    def __init__(
        self,
        model: ModelBundle,
        pairs: Sequence[tuple[str, str]],
        beam: int,
        lm: float,
        precision: Precision,
        progress: Progress,
    ) -> None:
        self._tokenizer, self._lm, self._progress = model.tokenizer, lm, progress
        self._step_model = step_model_of(model.model, precision)
        self._config = resolve_search([model], SearchConfig(beam=beam, n_best=beam))
        longest = DEFAULT_OPTIONS.max_source
        read = [
            (read_source_text(lede, number, self._tokenizer, longest).ids, headline)
            for number, (lede, headline) in enumerate(pairs, start=1)
        ]
        known = sorted((one for one in read if one[0]), key=lambda one: -len(one[0]))
        if not known:
            raise CorpusError("no pair has a lede that the model can read")
        self._sources = [ids for ids, _ in known]
        self._references = [_compared(headline, self._tokenizer) for _, headline in known]
        self._found: list[dict[tuple[tuple[int, ...], bool], _Found]] = [{} for _ in known]

    @property
    def num_pairs(self) -> int:
        """Of pairs with a lede that the model can read."""
        return len(self._sources)

    def find(self, weights: Floats, stage: str) -> tuple[float, int]:
        """Search with these weights: the mean metric of the best, and how many are new."""
        model = ExtractiveModel(self._step_model, _as_weights(weights, self._lm))
        total, num_new = 0.0, 0
        for start in range(0, self.num_pairs, _BATCH):
            some = range(start, min(start + _BATCH, self.num_pairs))
            sources = padded([self._sources[row] for row in some])
            for row, found in zip(some, search(model, *sources, self._config), strict=True):
                before = len(self._found[row])
                kept = [self._keep(row, one, weights) for one in found]
                num_new += len(self._found[row]) - before
                total += kept[0].metric if kept else 0.0
            self._progress(stage, some.stop, self.num_pairs)
        return total / self.num_pairs, num_new

    def _keep(self, row: int, one: Hypothesis, weights: Floats) -> _Found:
        """Put a hypothesis into the list of its source, unless it is there."""
        key, known = (one.ids, one.truncated), self._found[row]
        if key not in known:
            counts = feature_counts(self._sources[row], one.ids)
            log = -one.cost - float(np.dot(weights, counts))
            steps = max(1, len(one.ids) + (not one.truncated))
            known[key] = _Found(log, steps, counts, self._metric(row, one.ids))
        return known[key]

    def _metric(self, row: int, ids: Sequence[int]) -> float:
        words = headline_words(ids, self._tokenizer).words
        written = _compared(self._tokenizer.join(words), self._tokenizer, is_output=True)
        score = rouge.score(written, self._references[row])
        return (score.rouge1.f1 + score.rouge2.f1) / 2

    def lists(self) -> NBestLists:
        """All that was found so far, of sources with anything."""
        found = [list(one.values()) for one in self._found if one]
        size = max(map(len, found), default=0)
        shape, num_features = (len(found), size), len(FeatureCounts._fields)
        lists = NBestLists(
            np.full(shape, -np.inf),
            np.ones(shape),
            np.zeros((*shape, num_features)),
            np.zeros(shape),
        )
        for row, some in enumerate(found):
            for values, column in zip(lists, zip(*some, strict=True), strict=True):
                values[row, : len(some)] = column
        return lists


def _compared(text: str, tokenizer: Tokenizer, *, is_output: bool = False) -> str:
    """The words of a text as `ledeline evaluate` compares them."""
    profile = PROFILES[tokenizer.profile.name]
    if is_output and profile is PAPER:  # what the model writes is tokens already
        return " ".join(profile.compared_words(text.split()))
    return " ".join(compared_words(text, profile))


def described(weights: ExtractiveWeights) -> str:
    """The weights in a line."""
    return ", ".join(f"{name} {value:.4g}" for name, value in asdict(weights).items())
