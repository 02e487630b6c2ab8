"""A split on the device: batches are put together there, from the numbers of their rows.

Legend: B pairs of a batch, I source length, J steps of the decoder.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ledeline.data.batches import EpochPlan
from ledeline.data.dataset import Ids, Split
from ledeline.model.pairs import Pairs
from ledeline.text.subwords import EOS, PAD

NumSteps = Callable[[Ids, Ids], Ids]  # of pairs with these source and headline lengths
Shape = tuple[int, int, int]  # B once it is filled up, I, J


class DeviceSplit:
    """The pairs of a split, as `System.pairs` makes them of batches of one source length.

    Nothing here waits for the device, and every shape follows from the arguments, so that it can be
    captured.
    """

    def __init__(self, split: Split, num_steps: NumSteps, device: torch.device) -> None:
        source_lengths, headline_lengths = split.sources.lengths(), split.headlines.lengths()
        steps = num_steps(source_lengths, headline_lengths)
        self._widest = int(max(source_lengths.max(), steps.max()))
        self._sources = _DeviceSequences(
            split.sources.joined(), source_lengths, self._widest, device
        )
        targets = _with_end(split.headlines.joined(), headline_lengths)
        self._targets = _DeviceSequences(targets, headline_lengths + 1, self._widest, device)
        self._steps = torch.from_numpy(steps).to(device)
        self._more_steps = bool((steps != headline_lengths + 1).any())
        self._fewest = np.full(int(source_lengths.max()) + 1, np.iinfo(np.int64).max)
        np.minimum.at(self._fewest, source_lengths, steps)
        self._places = torch.arange(self._widest, device=device)

    def pairs(self, rows: Tensor, length: int, width: int) -> Pairs:
        """The pairs at these rows (B,), whose sources have this length, in rows of this width."""
        places = self._places[:width]
        targets = self._targets.at(rows, width)
        headline_mask = places < self._targets.lengths[rows].unsqueeze(1)  # (B, J)
        target_mask: Tensor | None = headline_mask
        if self._fewest[length] >= width:
            target_mask = None
        elif self._more_steps:
            target_mask = places < self._steps[rows].unsqueeze(1)
        return Pairs(
            sources=self._sources.at(rows, length),
            source_lengths=None,
            source_mask=None,
            targets=torch.where(headline_mask, targets, PAD),
            target_mask=target_mask,
            headline_mask=headline_mask,
        )


def shapes_of(plan: EpochPlan, num_steps: NumSteps) -> list[Shape]:
    """The shape of each batch of an epoch."""
    steps = num_steps(plan.source_widths, plan.headline_widths)
    sides = plan.heights, plan.source_widths, steps
    return list(zip(*(one.tolist() for one in sides), strict=True))


def size_of(shape: Shape) -> int:
    """The tokens of both sides, filled up: memory and work grow with them."""
    height, length, width = shape
    return height * (length + width)


class _DeviceSequences:
    """Sequences of ids end to end, where each starts, and how long it is."""

    def __init__(
        self, ids: npt.NDArray[Any], lengths: Ids, widest: int, device: torch.device
    ) -> None:
        small = ids.max(initial=0) <= np.iinfo(np.int16).max  # torch does little with uint16
        padded = np.zeros(len(ids) + widest, np.int16 if small else np.int32)
        padded[: len(ids)] = ids  # and zeros after it, so that the last can be read in any width
        self._ids = torch.from_numpy(padded).to(device)
        self.lengths = torch.from_numpy(lengths).to(device)
        self._starts = torch.from_numpy(np.cumsum(lengths) - lengths).to(device)
        self._places = torch.arange(widest, device=device)

    def at(self, rows: Tensor, width: int) -> Tensor:
        """The sequences at rows (B,); after a short one comes the next one. (B, width)."""
        places = self._starts[rows].unsqueeze(1) + self._places[:width]
        return self._ids[places].long()


def _with_end(ids: npt.NDArray[Any], lengths: Ids) -> npt.NDArray[Any]:
    """Headlines end to end, each followed by <eos>."""
    ends = np.cumsum(lengths) + np.arange(len(lengths))
    own = np.ones(len(ids) + len(ends), bool)
    own[ends] = False
    whole = np.full(len(own), EOS, ids.dtype)
    whole[own] = ids
    return whole
