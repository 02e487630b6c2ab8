"""Which device a model runs on; torch, which takes seconds to import, is asked only if it must."""

import os
import sys
import warnings
from pathlib import Path
from typing import Final, Literal

from ledeline.config.search import Device
from ledeline.core.errors import DeviceWarning, ModelError
from ledeline.core.extras import needed_by
from ledeline.inference.arguments import check_choice

_DRIVERS: Final = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")  # where the driver of a GPU is
_WINDOWS_DRIVER: Final = "System32/nvcuda.dll"


def chosen_device(requested: Device) -> Literal["cpu", "cuda"]:
    """The device that is meant; an error if there is no such device.

    `auto` is the CPU where torch cannot be imported, with a `DeviceWarning` if it is installed.
    """
    check_choice("device", requested, Device)
    if requested == "cpu" or (requested == "auto" and not _may_have_gpu()):
        return "cpu"
    try:
        import torch
    except (ImportError, OSError) as error:
        return _without_torch(requested, error)
    available = torch.cuda.is_available()
    if requested == "cuda" and not available:
        raise ModelError("device cuda needs a GPU, and torch finds none; use cpu")
    return "cuda" if available else "cpu"


def _without_torch(requested: Device, error: ImportError | OSError) -> Literal["cpu"]:
    """The CPU, for want of torch; an error if a GPU was asked for."""
    is_absent = isinstance(error, ModuleNotFoundError) and error.name == "torch"
    if is_absent and requested == "auto":
        return "cpu"
    if is_absent:
        with needed_by("device cuda", "train"):
            raise error
    reason = next(iter(str(error).splitlines()), type(error).__name__)
    if requested == "cuda":
        raise ModelError(
            f"device cuda needs torch, which cannot be imported ({reason}); install it again, or "
            "use cpu"
        ) from error
    message = f"torch cannot be imported ({reason}), so no GPU is used; install it again"
    warnings.warn(message, DeviceWarning, stacklevel=4)
    return "cpu"


def _may_have_gpu() -> bool:
    """Whether the driver of a GPU is there, and not hidden."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return False
    if sys.platform == "win32":
        return Path(os.environ.get("SYSTEMROOT", "C:/Windows"), _WINDOWS_DRIVER).exists()
    return any(Path(driver).exists() for driver in _DRIVERS)
