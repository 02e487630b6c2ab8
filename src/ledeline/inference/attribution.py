"""Why a headline: what attention and SPM saw when its words were written.

Known headlines are forced through a model; what was seen at its sub-words is then put together to
words. Legend: I source length, J headline length, V vocabulary.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from ledeline.data.dataset import Batch
from ledeline.model.pairs import Pairs
from ledeline.model.systems.encdec import EncDec

_Floats: TypeAlias = npt.NDArray[np.floating[Any]]


class Seen(NamedTuple):
    """One pair, step by step: the headline, <eos>, and the <pad> behind it where asked for."""

    attention: npt.NDArray[np.float32]  # (J + 1, I), or (I, I) with <pad>
    q: npt.NDArray[np.float32] | None  # (J + 1, V), or (I, V); None for a system without SPM


_Pair: TypeAlias = tuple[Sequence[int], Sequence[int]]


@torch.inference_mode()
def force(
    model: EncDec, pairs: Iterable[_Pair], batch_size: int = 64, *, padded: bool = False
) -> Iterator[Seen]:
    """Go through pairs of source and headline ids, in order, none with an empty source.

    With `padded` through all of the SPM's Y': headline, <eos>, then <pad> up to I. Where there is
    no <pad> to go through, because the system has no SPM or I < J + 2, nothing is added.
    """
    model.eval()
    for some in _batches(pairs, batch_size):
        forced = model.force(_steps(model, Batch.of(some), padded))
        q = None if model.spm is None else model.spm(forced.attentional)
        for row, (source, headline) in enumerate(some):
            steps, width = len(headline) + 1, len(source)
            if padded and q is not None:
                steps = max(steps, width)
            attention = forced.attention[row, :steps, :width].float().cpu().numpy()
            yield Seen(attention, None if q is None else q[row, :steps].float().cpu().numpy())


_MAX_STEPS = 2**12  # of the pairs of a batch together: each has a distribution over the vocabulary


def _batches(pairs: Iterable[_Pair], size: int) -> Iterator[list[_Pair]]:
    """Pairs that follow each other, fewer than `size` where long ones would need much memory."""
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


def _steps(model: EncDec, batch: Batch, padded: bool) -> Pairs:
    """A batch with the steps to go through; what comes behind <eos> changes nothing before it."""
    if padded:
        return model.pairs(batch)
    return Pairs.of(batch, batch.headline_lengths + 1, batch.headlines.shape[1] + 1, model.device)


class Weights(NamedTuple):
    """How much each sub-word of a headline came from each place of its source."""

    attention: _Floats  # (J, I)
    spm: _Floats | None  # (J, I); None for a system without SPM

    @property
    def best(self) -> _Floats:
        """The SPM's where there are any, else those of attention."""
        return self.attention if self.spm is None else self.spm


def weigh(model: EncDec, pairs: Sequence[_Pair]) -> Iterator[Weights]:
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
