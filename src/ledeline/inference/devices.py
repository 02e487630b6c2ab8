"""Which device a model runs on; torch, which takes seconds to import, is asked only if it must."""

import os
import sys
from pathlib import Path
from typing import Final, Literal

from ledeline.config.search import Device
from ledeline.core.errors import ModelError
from ledeline.inference.arguments import check_choice

_DRIVERS: Final = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")  # where the driver of a GPU is
_WINDOWS_DRIVER: Final = "System32/nvcuda.dll"


def chosen_device(requested: Device) -> Literal["cpu", "cuda"]:
    """The device that is meant; an error if there is no such device."""
    check_choice("device", requested, Device)
    if requested == "cpu" or (requested == "auto" and not _may_have_gpu()):
        return "cpu"
    try:
        import torch
    except ModuleNotFoundError:
        if requested == "cuda":
            raise
        return "cpu"
    available = torch.cuda.is_available()
    if requested == "cuda" and not available:
        raise ModelError("device cuda needs a GPU, and torch finds none; use cpu")
    return "cuda" if available else "cpu"


def _may_have_gpu() -> bool:
    """Whether the driver of a GPU is there, and not hidden."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return False
    if sys.platform == "win32":
        return Path(os.environ.get("SYSTEMROOT", "C:/Windows"), _WINDOWS_DRIVER).exists()
    return any(Path(driver).exists() for driver in _DRIVERS)
