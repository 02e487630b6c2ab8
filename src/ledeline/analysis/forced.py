"""Known headlines forced through a model: what its attention and its SPM saw at each step."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from ledeline.dataset import Batch
from ledeline.model.seq2seq import Seq2Seq


class Seen(NamedTuple):
    """One pair, step by step; the last row is the step that writes <eos>."""

    attention: npt.NDArray[np.float32]  # (J + 1, I)
    q: npt.NDArray[np.float32] | None  # (J + 1, V); None for a system without SPM


@torch.inference_mode()
def force(
    model: Seq2Seq, pairs: Sequence[tuple[list[int], list[int]]], batch_size: int = 64
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
