"""Weights as whole numbers: a scale for each row, and levels from -127 to 127."""

from typing import Final, NamedTuple

import torch
from torch import Tensor

LEVELS: Final = 127  # a value at its bound is so many levels from zero


class Layout(NamedTuple):
    """Which rows of a weight have a scale each, where they are not simply its rows."""

    widths: tuple[int, ...] = ()  # of the parts that its columns are taken apart into; none: whole
    transposed: bool = False  # the rows are those of its transpose


WHOLE: Final = Layout()


def quantised(weight: Tensor) -> tuple[Tensor, Tensor]:
    """A weight (M, K) as levels in int8, and what a level of each row is worth (M,)."""
    weight = weight.detach().float().contiguous()
    scales = (weight.abs().amax(1) / LEVELS).clamp(min=torch.finfo(torch.float32).tiny)
    return (weight / scales[:, None]).round().to(torch.int8), scales
