"""Which attention of a system explains its headlines best, by the error of its alignments.

A system may have an attention for each layer and head. Each is read as a method of alignment, and
scored against gold links. The first half of the pairs chooses; the second half only checks, so that
its error is not flattered by the choice.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ledeline.core.errors import CorpusError, ModelError
from ledeline.core.progress import Progress, no_progress, track_progress
from ledeline.corpus.evaluation_sets import EvaluationSet
from ledeline.evaluation.alignment_methods import align, attention_methods, pair_word_ids
from ledeline.evaluation.links import (
    AlignmentScore,
    Links,
    OverlapCounts,
    gold_links,
    overlap_counts,
    score_methods,
    to_words,
)
from ledeline.evaluation.teacher_forcing import force_pairs
from ledeline.inference.traces import trace_every_attention
from ledeline.model.addons import ADDONS
from ledeline.model.format.model_folder import ModelBundle
from ledeline.model.many_attentions import ManyAttentions

STAGE: Final = "measure"
_METHODS: Final = ("attention", "attention-shifted")
_Floats: TypeAlias = npt.NDArray[np.floating[Any]]


class GoldPairs(NamedTuple):
    """Pairs of lede and headline, with their gold links."""

    pairs: Sequence[tuple[str, str]]
    gold: Sequence[Links]


class Halves(NamedTuple):
    """The pairs that choose, and those that check the choice."""

    first: GoldPairs
    second: GoldPairs


def read_halves(test_set: EvaluationSet, limit: int | None = None) -> Halves:
    """Cut the pairs of a test set in two, in order; with a limit, its first pairs."""
    gold = gold_links(test_set)
    if gold is None or not any(gold):
        named = test_set.gold_file or ", ".join(test_set.files)
        raise CorpusError(f"{named} has no gold links; name a file that has them with --gold")
    pairs, gold = test_set.pairs[:limit], gold[:limit]
    middle = len(pairs) // 2
    first = GoldPairs(pairs[:middle], gold[:middle])
    second = GoldPairs(pairs[middle:], gold[middle:])
    if not (any(first.gold) and any(second.gold)):
        raise CorpusError(
            f"{', '.join(test_set.files)}: one half of the pairs chooses and the other checks, "
            f"both by gold links, and {_pairs(len(pairs))} too few for that; give more pairs"
        )
    return Halves(first, second)


def _pairs(number: int) -> str:
    return "1 pair is" if number == 1 else f"{number:,} pairs are"


class AttentionReading(NamedTuple):
    """An attention, and the step at which it is read."""

    layer: int | None  # from 1; None: the mean of all layers
    head: int  # from 1; 0: the mean of all heads
    method: str  # of METHODS: "attention" or "attention-shifted"

    @property
    def name(self) -> str:
        """As "layer 2, head 3"."""
        if self.layer is None:
            return "mean of all"
        return f"layer {self.layer}, " + (f"head {self.head}" if self.head else "mean of heads")

    @property
    def can_explain(self) -> bool:
        """Whether a model can use it: it is of one layer, at the step that writes the word."""
        return self.layer is not None and self.method == "attention"


class HalfScores(NamedTuple):
    """The scores on both halves of the pairs."""

    first: AlignmentScore
    second: AlignmentScore

    def as_dict(self) -> dict[str, Any]:
        """For JSON: three figures of each half."""
        return {name: _figures(score) for name, score in self._asdict().items()}


def _figures(score: AlignmentScore) -> dict[str, float]:
    return {name: getattr(score, name) for name in ("precision", "recall", "error_rate")}


class MeasuredHeads(NamedTuple):
    """The alignments of all attentions of a system, against gold links."""

    num_first: int  # pairs that choose
    num_second: int  # pairs that check
    scores: dict[AttentionReading, HalfScores]  # the best on the first half come first
    others: dict[str, HalfScores]  # by method: attention as the model has it now, and the SPM

    @property
    def best(self) -> AttentionReading:
        """The best of those that a model can use."""
        return next(one for one in self.scores if one.can_explain)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        best = self.best
        return {
            "pairs": {"first": self.num_first, "second": self.num_second},
            "best": {"layer": best.layer, "head": best.head} | self.scores[best].as_dict(),
            "attentions": [one._asdict() | both.as_dict() for one, both in self.scores.items()],
            "others": {method: both.as_dict() for method, both in self.others.items()},
        }


def attentions_of(loaded: ModelBundle) -> ManyAttentions:
    """The system of a model, if it has attentions to choose from."""
    model = loaded.model
    if isinstance(model, ManyAttentions) and model.num_attentions != (1, 1):
        return model
    number = "one attention only" if model.has_attention else "no attention"
    raise ModelError(f"{loaded.name} has {number}, so there is no layer or head to choose")


def refuse_attention_that_writes(loaded: ModelBundle) -> None:
    """Refuse to change the attention of a model whose headlines are written by it."""
    for name in loaded.model.config.addons:
        if ADDONS[name].needs_attention_gradient and ADDONS[name].changes_decoding():
            raise ModelError(
                f"{loaded.name} has learned to write by its attention ([{name}]), so a copy with "
                "another one would write worse; leave --output out"
            )


def measure_heads(
    loaded: ModelBundle, halves: Halves, progress: Progress = no_progress
) -> MeasuredHeads:
    """Score each attention of a model on both halves, and put the best on the first half first."""
    system = attentions_of(loaded)
    first, second = (_count(loaded, system, half, progress) for half in halves)
    scores = {one: HalfScores(first[one].score, second[one].score) for one in first}
    ranked = sorted(scores, key=lambda one: scores[one].first.error_rate)  # of equals, the first
    return MeasuredHeads(
        len(halves.first.pairs),
        len(halves.second.pairs),
        {one: scores[one] for one in ranked},
        _others(loaded, halves, progress),
    )


def _count(
    loaded: ModelBundle, system: ManyAttentions, half: GoldPairs, progress: Progress
) -> dict[AttentionReading, OverlapCounts]:
    """The links of each attention against gold links, counted over all pairs of a half."""
    counts = dict.fromkeys(_readings(*system.num_attentions), OverlapCounts())
    found = track_progress(_links(loaded, system, half.pairs), STAGE, len(half.pairs), progress)
    for links, gold in zip(found, half.gold, strict=True):
        for one, so_far in counts.items():
            of_pair = overlap_counts([(links.get(one, frozenset()), gold)])
            counts[one] = so_far.plus(of_pair)
    return counts


def _links(
    loaded: ModelBundle, system: ManyAttentions, pairs: Sequence[tuple[str, str]]
) -> Iterator[dict[AttentionReading, Links]]:
    """The links between white-space words of each pair; none where the model cannot read it."""
    forced = force_pairs(loaded, pairs, lambda ids: trace_every_attention(system, ids))
    for pair, (encoded, weights) in zip(pairs, forced, strict=True):
        if weights is None:
            yield {}
            continue
        word_ids = pair_word_ids(pair, loaded.tokenizer)
        yield {
            AttentionReading(layer, head, method): to_words(links, *word_ids)
            for layer, head, attention in _attentions(weights)
            for method, links in attention_methods(attention, len(encoded.ids)).items()
        }


def _readings(layers: int, heads: int) -> Iterator[AttentionReading]:
    """All that is measured of so many layers and heads."""
    places = [*product(range(1, layers + 1), range(heads + 1)), (None, 0)]
    return (AttentionReading(*place, method) for place, method in product(places, _METHODS))


def _attentions(weights: _Floats) -> Iterator[tuple[int | None, int, _Floats]]:
    """Each attention (J, I) with its layer and head, of all (L, h, J, I), and the means."""
    for layer, heads in enumerate(weights, start=1):
        yield layer, 0, heads.mean(0)
        for head, one in enumerate(heads, start=1):
            yield layer, head, one
    yield None, 0, weights.mean((0, 1))


def _others(loaded: ModelBundle, halves: Halves, progress: Progress) -> dict[str, HalfScores]:
    """Attention as the model has it now, and the SPM where it has one."""
    first, second = (_now(loaded, half, progress) for half in halves)
    return {method: HalfScores(first[method], second[method]) for method in first}


def _now(loaded: ModelBundle, half: GoldPairs, progress: Progress) -> dict[str, AlignmentScore]:
    links = align(loaded, half.pairs, progress).links
    wanted = [one for one in links if one == "attention" or one.startswith("spm")]
    return score_methods({method: links[method] for method in wanted}, half.gold)
