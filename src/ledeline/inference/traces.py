"""Known headlines as a system in PyTorch sees them, step by step, by teacher forcing.

Legend: I source length, J headline length, V vocabulary, L layers, h heads.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from ledeline.core.errors import ModelError
from ledeline.data.dataset import Batch
from ledeline.inference.attribution import (
    NO_ATTENTION,
    AttributionWeights,
    Pair,
    attribution_weights,
)
from ledeline.model.many_attentions import ManyAttentions
from ledeline.model.pairs import Pairs
from ledeline.model.system import System, Trace

_Floats: TypeAlias = npt.NDArray[np.floating[Any]]
# Steps of all pairs of a batch, at most: each step has a distribution over the vocabulary.
_MAX_STEPS: Final = 2**12


class PairTrace(NamedTuple):
    """One pair, step by step: the headline, <eos>, and the <pad> after it where asked for."""

    attention: npt.NDArray[np.float32]  # (J + 1, I), or (I, I) with <pad>
    q: npt.NDArray[np.float32] | None  # (J + 1, V), or (I, V); None for a system without SPM

    def weights(self, source: Sequence[int]) -> AttributionWeights:
        """How much each sub-word of the headline came from each position of its source."""
        attention = self.attention[:-1].tolist()  # the last step writes <eos>
        q = None if self.q is None else self.q[:-1, list(source)].tolist()
        return attribution_weights(attention, q, source)


def teacher_force(
    system: System, pairs: Iterable[Pair], batch_size: int = 64, *, padded: bool = False
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
    system: System, pairs: Iterable[Pair], batch_size: int = 64
) -> Iterator[PairTrace]:
    """As `teacher_force`, up to <eos>."""
    for some in _batches(pairs, batch_size):
        seen = _trace(system, _up_to_eos(some, system.device))
        for row, (source, headline) in enumerate(some):
            yield _pair_trace(seen, row, len(headline) + 1, len(source))


def trace_every_attention(
    system: ManyAttentions, pairs: Iterable[Pair], batch_size: int = 64
) -> Iterator[npt.NDArray[np.float32]]:
    """As `trace_headlines`, the attention of all layers and heads: (L, h, J + 1, I)."""
    for some in _batches(pairs, batch_size):
        with torch.inference_mode():
            seen = system.every_attention(_up_to_eos(some, system.device)).float().cpu().numpy()
        for row, (source, headline) in enumerate(some):
            yield seen[row, :, :, : len(headline) + 1, : len(source)]


def _up_to_eos(some: Sequence[Pair], device: torch.device) -> Pairs:
    """Some pairs as a batch, with the steps up to <eos>."""
    batch = Batch.of(some)
    steps, width = batch.headline_lengths + 1, batch.headlines.shape[1] + 1
    return Pairs.of(batch, steps, width, device)


@torch.inference_mode()
def _trace(system: System, pairs: Pairs) -> Trace:
    return system.trace(pairs)


def _pair_trace(seen: Trace, row: int, steps: int, width: int) -> PairTrace:
    """The trace of one pair of a batch."""
    if seen.attention is None:
        raise ModelError(NO_ATTENTION)
    attention = seen.attention[row, :steps, :width].float().cpu().numpy()
    if seen.source_predictions is None:
        return PairTrace(attention, None)
    return PairTrace(attention, seen.source_predictions[row, :steps].float().cpu().numpy())


def _batches(pairs: Iterable[Pair], size: int) -> Iterator[list[Pair]]:
    """Consecutive pairs, `size` at most, and fewer where long ones would need much memory."""
    batch: list[Pair] = []
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
