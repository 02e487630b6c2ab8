"""A batch as tensors: what a model is trained on and forced through."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ledeline.dataset import Batch, Ids
from ledeline.subword import BOS


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
        equal = bool((batch.source_lengths == batch.sources.shape[1]).all())

        def put(array: npt.NDArray[Any]) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(array)).to(device)

        return cls(
            sources=put(batch.sources),
            source_lengths=None if equal else torch.from_numpy(batch.source_lengths.copy()),
            source_mask=None if equal else put(batch.source_mask),
            targets=put(batch.targets(width)),
            target_mask=None if mask.all() else put(mask),
            headline_mask=put(headline),
        )

    @property
    def previous(self) -> Tensor:
        """What the decoder reads at each step: <bos>, then the targets but the last. (B, J)."""
        begin = self.targets.new_full((len(self.targets), 1), BOS)
        return torch.cat([begin, self.targets[:, :-1]], 1)
