"""The precision of a run: training and validation share it, so each kernel comes in one type."""

import torch

from ledeline.config import RunConfig
from ledeline.core.errors import TrainingError
from ledeline.runtime.cpu import NO_BFLOAT16, has_bfloat16


def precision(config: RunConfig, device: torch.device) -> torch.autocast:
    """Within it products are of bfloat16 (autocast) where the run wants that: `auto` on a GPU."""
    wanted = config.precision == "bfloat16"
    wanted = wanted or (config.precision == "auto" and device.type == "cuda")
    return torch.autocast(device.type, torch.bfloat16, enabled=wanted)


def refuse_unsupported(config: RunConfig, device: torch.device) -> None:
    """Refuse a precision that the processor does not have, before anything is written."""
    if config.precision == "bfloat16" and device.type == "cpu" and not has_bfloat16():
        raise TrainingError(NO_BFLOAT16)
