"""Weights as whole numbers: a scale for each row, and levels from -127 to 127."""

from typing import Final

import torch
from torch import Tensor

LEVELS: Final = 127  # a value at its bound is so many levels from zero


def quantised(weight: Tensor) -> tuple[Tensor, Tensor]:
    """A weight (M, K) as levels in int8, and what a level of each row is worth (M,)."""
    weight = weight.detach().float().contiguous()
    scales = (weight.abs().amax(1) / LEVELS).clamp(min=torch.finfo(torch.float32).tiny)
    return (weight / scales[:, None]).round().to(torch.int8), scales
