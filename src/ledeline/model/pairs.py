"""A batch as tensors, for training and teacher forcing."""

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
        """Ids (B, I), padded after their lengths (B,)."""
        rows = _to_tensor(ids, device)
        if (lengths == ids.shape[1]).all():
            return cls(rows, None, None)
        mask = np.arange(ids.shape[1]) < lengths[:, None]
        return cls(rows, torch.from_numpy(lengths.copy()), _to_tensor(mask, device))


def _to_tensor(array: npt.NDArray[Any], device: torch.device | str) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)


@dataclass(frozen=True)
class Pairs:
    """Sources and targets.

    Padding that only fills up the batch is outside the masks; a <pad> that the decoder learns to
    write is inside. A mask that would be True everywhere is None, which costs nothing.
    """

    sources: Tensor  # (B, I)
    source_lengths: Tensor | None  # (B,), on the CPU; None: all are I
    source_mask: Tensor | None  # (B, I)
    targets: Tensor  # (B, J): headline, <eos>, then <pad>
    target_mask: Tensor | None  # (B, J): the steps that count
    headline_mask: Tensor  # (B, J): headline and <eos>
    positions: Tensor | None = None  # (B,): the one step of each row that counts; None: all do

    @classmethod
    def of(
        cls, batch: Batch, num_steps: Ids, width: int, device: torch.device | str = "cpu"
    ) -> Self:
        """A batch, with the number of decoder steps of each pair (B,), padded to this width.

        Where a batch is of words, both masks are True at the step of the word alone.
        """
        steps, positions = np.arange(width), batch.positions
        mask = steps < num_steps[:, None]  # (B, J)
        headline = steps <= batch.headline_lengths[:, None]
        if positions is not None:
            mask = headline = steps == positions[:, None]
        sources = Sources.of(batch.sources, batch.source_lengths, device)
        return cls(
            sources=sources.ids,
            source_lengths=sources.lengths,
            source_mask=sources.mask,
            targets=_to_tensor(batch.targets(width), device),
            target_mask=None if mask.all() else _to_tensor(mask, device),
            headline_mask=_to_tensor(headline, device),
            positions=None if positions is None else _to_tensor(positions, device),
        )

    @property
    def previous(self) -> Tensor:
        """What the decoder reads at each step: <bos>, then the targets but the last. (B, J)."""
        begin = self.targets.new_full((len(self.targets), 1), BOS)
        return torch.cat([begin, self.targets[:, :-1]], 1)
