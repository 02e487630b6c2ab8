"""Why a headline: what attention and SPM saw when its words were written.

Known headlines are forced through a model; what was seen at its sub-words is then put together to
words. Legend: I source length, J headline length, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from ledeline.dataset import Batch
from ledeline.model.seq2seq import Seq2Seq

_Floats: TypeAlias = npt.NDArray[np.floating[Any]]


class Seen(NamedTuple):
    """One pair, step by step; the last row is the step that writes <eos>."""

    attention: npt.NDArray[np.float32]  # (J + 1, I)
    q: npt.NDArray[np.float32] | None  # (J + 1, V); None for a system without SPM


@torch.inference_mode()
def force(
    model: Seq2Seq, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], batch_size: int = 64
) -> Iterator[Seen]:
    """Go through pairs of source and headline ids, in order."""
    model.eval()
    for start in range(0, len(pairs), batch_size):
        some = pairs[start : start + batch_size]
        forced = model.force(model.pairs(Batch.of(some)))
        q = None if model.spm is None else model.spm(forced.feeds)
        for row, (source, headline) in enumerate(some):
            steps, width = len(headline) + 1, len(source)
            attention = forced.attention[row, :steps, :width].float().cpu().numpy()
            yield Seen(attention, None if q is None else q[row, :steps].float().cpu().numpy())


class Weights(NamedTuple):
    """How much each sub-word of a headline came from each place of its source."""

    attention: _Floats  # (J, I)
    spm: _Floats | None  # (J, I); None for a system without SPM

    @property
    def best(self) -> _Floats:
        """The SPM's where there are any, else those of attention."""
        return self.attention if self.spm is None else self.spm


def weigh(
    model: Seq2Seq, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]
) -> Iterator[Weights]:
    """Weights of pairs of source and headline ids, in order."""
    for (source, _), seen in zip(pairs, force(model, pairs), strict=True):
        attention = seen.attention[:-1]  # the last step writes <eos>
        spm = None if seen.q is None else spm_weights(seen.q[:-1], source, attention)
        yield Weights(attention, spm)


def spm_weights(q: _Floats, source: Sequence[int], attention: _Floats) -> _Floats:
    """The SPM's probability of each source place, (J, V) -> (J, I).

    `q` speaks of types. Where a type is in the source several times, the place with the most
    attention, (J, I), has its probability, and the others have none.
    """
    ids = np.asarray(source, np.int64)
    same = ids[:, None] == ids  # (I, I)
    chosen = np.where(same, attention[:, None, :], -1).argmax(-1) == np.arange(len(ids))  # (J, I)
    return np.where(chosen, q[:, ids], 0)


def by_words(
    weights: _Floats, headline_owners: Sequence[int], source_owners: Sequence[int]
) -> _Floats:
    """Weights between sub-words (J, I) -> between words: summed over the words of the source, and
    the mean over those of the headline. Owners are the numbers of the words, without a gap.
    """  # noqa: D205
    shape = max(headline_owners) + 1, max(source_owners) + 1
    together = np.zeros(shape)
    np.add.at(together, (np.asarray(headline_owners)[:, None], np.asarray(source_owners)), weights)
    return together / np.bincount(headline_owners)[:, None]
