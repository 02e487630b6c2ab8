"""Attribution: which source words the words of a headline came from, by attention and SPM.

Headlines are teacher-forced through a model; the weights of their sub-words are then merged into
weights of words. Legend: I source length, J headline length, V vocabulary.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch

from ledeline.core.errors import ModelError
from ledeline.core.steps import Steps
from ledeline.data.dataset import Batch
from ledeline.model.many_attentions import ManyAttentions
from ledeline.model.pairs import Pairs
from ledeline.model.system import System, Trace
from ledeline.runtime.engine import PositionTrace

NO_ATTENTION: Final = "this system has no attention, so its headlines cannot be explained"
_Floats: TypeAlias = npt.NDArray[np.floating[Any]]


class Tracer(Protocol):
    """A system, or an engine that can trace headlines."""

    @property
    def device(self) -> torch.device:
        """Where its weights are."""

    def trace(self, pairs: Pairs) -> Trace:
        """Teacher-force known headlines, and say what was seen at each step."""


@runtime_checkable
class PositionTracer(Protocol):
    """A tracer that gives only what attribution needs, and can be interrupted between two steps."""

    def trace_positions(self, pairs: Pairs) -> Steps[PositionTrace]:
        """Teacher-force known headlines, and say how each position was seen."""


class PairTrace(NamedTuple):
    """One pair, step by step: the headline, <eos>, and the <pad> after it where asked for."""

    attention: npt.NDArray[np.float32]  # (J + 1, I), or (I, I) with <pad>
    q: npt.NDArray[np.float32] | None  # (J + 1, V), or (I, V); None for a system without SPM


_Pair: TypeAlias = tuple[Sequence[int], Sequence[int]]


def teacher_force(
    system: System, pairs: Iterable[_Pair], batch_size: int = 64, *, padded: bool = False
) -> Iterator[PairTrace]:
    """Teacher-force pairs of source and headline ids, in order; no source may be empty.

    With `padded` the steps are those of the SPM's Y': headline, <eos>, then <pad> up to I. Without
    an SPM, or if I < J + 2, there is no <pad>.
    """
    system.eval()
    if not padded or not system.has_source_predictions:
        yield from trace_headlines(system, pairs, batch_size)
        return
    for some in _batches(pairs, batch_size):
        seen = _trace(system, system.pairs(Batch.of(some)))
        for row, (source, headline) in enumerate(some):
            yield _pair_trace(seen, row, max(len(headline) + 1, len(source)), len(source))


def trace_headlines(
    model: Tracer, pairs: Iterable[_Pair], batch_size: int = 64
) -> Iterator[PairTrace]:
    """As `teacher_force`, up to <eos>."""
    for some in _batches(pairs, batch_size):
        seen = _trace(model, _up_to_eos(some, model.device))
        for row, (source, headline) in enumerate(some):
            yield _pair_trace(seen, row, len(headline) + 1, len(source))


def trace_every_attention(
    model: ManyAttentions, pairs: Iterable[_Pair], batch_size: int = 64
) -> Iterator[npt.NDArray[np.float32]]:
    """As `trace_headlines`, the attention of all layers and heads: (L, h, J + 1, I)."""
    for some in _batches(pairs, batch_size):
        with torch.inference_mode():
            seen = model.every_attention(_up_to_eos(some, model.device)).float().cpu().numpy()
        for row, (source, headline) in enumerate(some):
            yield seen[row, :, :, : len(headline) + 1, : len(source)]


def _up_to_eos(some: Sequence[_Pair], device: torch.device) -> Pairs:
    """Some pairs as a batch, with the steps up to <eos>."""
    batch = Batch.of(some)
    steps, width = batch.headline_lengths + 1, batch.headlines.shape[1] + 1
    return Pairs.of(batch, steps, width, device)


@torch.inference_mode()
def _trace(model: Tracer, pairs: Pairs) -> Trace:
    return model.trace(pairs)


def _pair_trace(seen: Trace, row: int, steps: int, width: int) -> PairTrace:
    """The trace of one pair of a batch."""
    if seen.attention is None:
        raise ModelError(NO_ATTENTION)
    attention = seen.attention[row, :steps, :width].float().cpu().numpy()
    if seen.source_predictions is None:
        return PairTrace(attention, None)
    return PairTrace(attention, seen.source_predictions[row, :steps].float().cpu().numpy())


# Steps of all pairs of a batch, at most: each step has a distribution over the vocabulary.
_MAX_STEPS = 2**12
# Of a batch of which only positions are wanted: sub-words that are read, positions of all pairs.
_MAX_READ, _MAX_POSITIONS = 1280, 2**13


def _batches(pairs: Iterable[_Pair], size: int) -> Iterator[list[_Pair]]:
    """Consecutive pairs, `size` at most, and fewer where long ones would need much memory."""
    batch: list[_Pair] = []
    longest = 0
    for pair in pairs:
        steps = max(len(pair[0]), len(pair[1]) + 1)
        longest = max(longest, steps)
        if batch and (len(batch) == size or (len(batch) + 1) * longest > _MAX_STEPS):
            yield batch
            batch, longest = [], steps
        batch.append(pair)
    if batch:
        yield batch


def _position_batches(pairs: Iterable[_Pair]) -> Iterator[list[_Pair]]:
    """Consecutive pairs, so few that reading their sources, and each step, is short."""
    batch: list[_Pair] = []
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


class AttributionWeights(NamedTuple):
    """How much each sub-word of a headline came from each position of its source."""

    attention: _Floats  # (J, I)
    spm: _Floats | None  # (J, I); None for a system without SPM

    @property
    def best(self) -> _Floats:
        """The SPM's where there are any, else those of attention."""
        return self.attention if self.spm is None else self.spm


def attribution_steps(model: Tracer, pairs: Sequence[_Pair]) -> Steps[list[AttributionWeights]]:
    """The weights of pairs of source and headline ids, in order."""
    weights = []
    by_position = isinstance(model, PositionTracer)
    for some in _position_batches(pairs) if by_position else _batches(pairs, 64):
        seen = yield from _trace_positions(model, _up_to_eos(some, model.device))
        for row, (source, headline) in enumerate(some):
            where = row, slice(len(headline)), slice(len(source))  # the last step writes <eos>
            attention = seen.attention[where].float().cpu().numpy()
            spm = None
            if seen.source_predictions is not None:
                q = seen.source_predictions[where].float().cpu().numpy()
                spm = spm_weights(q, source, attention)
            weights.append(AttributionWeights(attention, spm))
            yield
    return weights


def _trace_positions(model: Tracer, pairs: Pairs) -> Steps[PositionTrace]:
    """How positions were seen, a step at a time if the model can."""
    if isinstance(model, PositionTracer):
        return (yield from model.trace_positions(pairs))
    seen = _trace(model, pairs)
    if seen.attention is None:
        raise ModelError(NO_ATTENTION)
    q = seen.source_predictions
    if q is not None:
        q = q.gather(2, pairs.sources.unsqueeze(1).expand(-1, q.shape[1], -1))
    return PositionTrace(seen.attention, q)


def spm_weights(q: _Floats, source: Sequence[int], attention: _Floats) -> _Floats:
    """The SPM's probability of each source position, from that of its type. (J, I) -> (J, I).

    Where a type occurs several times in the source, its probability goes to the position with the
    most attention, (J, I), and the others have none.
    """
    ids, weights = np.asarray(source, np.int64), q.copy()
    steps = np.arange(len(weights))
    order = np.argsort(ids, kind="stable")
    for places in np.split(order, np.flatnonzero(np.diff(ids[order])) + 1):
        if len(places) > 1:
            best = attention[:, places].argmax(1)
            weights[:, places] = 0
            weights[steps, places[best]] = q[:, places[0]]
    return weights


def word_weights(
    weights: _Floats, headline_word_ids: Sequence[int], source_word_ids: Sequence[int]
) -> _Floats:
    """Weights between sub-words (J, I) -> between words.

    Over the sub-words of a source word they are summed; over those of a headline word it is their
    mean. Word ids give the word of each sub-word, from 0 without gaps.
    """
    shape = max(headline_word_ids) + 1, max(source_word_ids) + 1
    sums = np.zeros(shape)
    np.add.at(sums, (np.asarray(headline_word_ids)[:, None], np.asarray(source_word_ids)), weights)
    return sums / np.bincount(headline_word_ids)[:, None]
