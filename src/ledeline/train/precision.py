"""The precision of a run: training and validation share it, so each kernel comes in one type."""

import torch

from ledeline.config import RunConfig


def precision(config: RunConfig, device: torch.device) -> torch.autocast:
    """Within it products are of bfloat16 (autocast) where the run wants that: `auto` on a GPU."""
    wanted = config.precision == "bfloat16"
    wanted = wanted or (config.precision == "auto" and device.type == "cuda")
    return torch.autocast(device.type, torch.bfloat16, enabled=wanted)
