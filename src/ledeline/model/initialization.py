"""How weights start."""

from zlib import crc32

import torch
from torch import nn

from ledeline.core.shuffle import random_keys


def initialize(module: nn.Module, seed: int, bound: float = 0.1) -> None:
    for name, parameter in module.named_parameters():
        generator = torch.Generator().manual_seed(
            int(random_keys(seed, crc32(name.encode()), 1)[0])
        )
        if parameter.dim() > 1:
            nn.init.uniform_(parameter, -bound, bound, generator=generator)
            continue
        nn.init.zeros_(parameter)
        is_lstm = name.startswith(("encoder.layers", "decoder.first", "decoder.upper"))
        if is_lstm and "bias_hh" not in name:
            size = len(parameter) // 4
            nn.init.ones_(parameter.data[size : 2 * size])
