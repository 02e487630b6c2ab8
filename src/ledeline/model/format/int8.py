"""Weights in int8: whole numbers from -127 to 127, called levels, and a scale for each row."""

from typing import Final, NamedTuple

import torch
from torch import Tensor

MAX_LEVEL: Final = 127  # the largest level


class Layout(NamedTuple):
    """What has a scale each: the rows of a weight, of its parts, or of its transpose."""

    widths: tuple[int, ...] = ()  # its columns are split into parts of these widths; none: one part
    transposed: bool = False  # its columns have a scale each instead


BY_ROWS: Final = Layout()


def quantize(weight: Tensor) -> tuple[Tensor, Tensor]:
    """A weight (M, K) -> levels (M, K) in int8, and the scale of each row (M,).

    A weight is about its level times its scale.
    """
    weight = weight.detach().float().contiguous()
    scales = (weight.abs().amax(1) / MAX_LEVEL).clamp(min=torch.finfo(torch.float32).tiny)
    return (weight / scales[:, None]).round().to(torch.int8), scales
