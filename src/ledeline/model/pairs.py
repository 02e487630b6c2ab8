"""A batch as tensors: what a model is trained on and forced through."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ledeline.data.dataset import Batch, Ids
from ledeline.text.subwords import BOS


class Sources(NamedTuple):
    """Sources as a model reads them; lengths and mask only where they are not all of one length."""

    ids: Tensor  # (B, I)
    lengths: Tensor | None  # (B,), on the CPU
    mask: Tensor | None  # (B, I)

    @classmethod
    def of(cls, ids: Ids, lengths: Ids, device: torch.device | str = "cpu") -> Self:
        """Ids (B, I), padded behind the lengths (B,)."""
        rows = _put(ids, device)
        if (lengths == ids.shape[1]).all():
            return cls(rows, None, None)
        mask = np.arange(ids.shape[1]) < lengths[:, None]
        return cls(rows, torch.from_numpy(lengths.copy()), _put(mask, device))


def _put(array: npt.NDArray[Any], device: torch.device | str) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)


@dataclass(frozen=True)
class Pairs:
    """Sources and what the decoder learns to write.

    Padding that only squares the batch is outside the masks; a <pad> that the decoder learns to
    write is inside. A mask that would be True throughout is None, and costs nothing.
    """

    sources: Tensor  # (B, I)
    source_lengths: Tensor | None  # (B,), on the CPU; None: all are I
    source_mask: Tensor | None  # (B, I)
    targets: Tensor  # (B, J): headline, <eos>, then <pad>
    target_mask: Tensor | None  # (B, J): the steps that count
    headline_mask: Tensor  # (B, J): headline and <eos>

    @classmethod
    def of(
        cls, batch: Batch, num_steps: Ids, width: int, device: torch.device | str = "cpu"
    ) -> Self:
        """A batch with so many steps (B,) for each pair, in rows of this width."""
        places = np.arange(width)
        mask = places < num_steps[:, None]  # (B, J)
        headline = places <= batch.headline_lengths[:, None]
        sources = Sources.of(batch.sources, batch.source_lengths, device)
        return cls(
            sources=sources.ids,
            source_lengths=sources.lengths,
            source_mask=sources.mask,
            targets=_put(batch.targets(width), device),
            target_mask=None if mask.all() else _put(mask, device),
            headline_mask=_put(headline, device),
        )

    @property
    def previous(self) -> Tensor:
        """What the decoder reads at each step: <bos>, then the targets but the last. (B, J)."""
        begin = self.targets.new_full((len(self.targets), 1), BOS)
        return torch.cat([begin, self.targets[:, :-1]], 1)
