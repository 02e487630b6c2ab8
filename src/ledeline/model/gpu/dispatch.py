"""Where the fused kernels run: on a GPU, or on any machine in Triton's interpreter.

The interpreter is for tests; it wants TRITON_INTERPRET=1 before Triton is first imported.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.util import find_spec
from typing import Any, Final, Literal

import torch
from torch import Tensor

KernelMode = Literal["fused", "plain", "interpreted"]
_way: ContextVar[KernelMode] = ContextVar("way", default="fused")
_KINDS: Final = (torch.float32, torch.bfloat16, torch.float16)
_ROOM: Final = 160 * 1024  # bytes of shared memory that a program needs; an A100 or newer has them

LONGEST: Final = 1024  # source places that attention's kernels take


def use_triton(*tensors: Tensor, recurrent: bool = False) -> bool:
    """Whether fused kernels are to work on these: on a GPU, unless something else is wanted.

    Those of the recurrences need a GPU that is recent. They are for training and validation:
    where a few texts are to be answered, nobody wants to wait until they are compiled.
    """
    wanted = _way.get()
    if wanted == "plain" or not all(one.dtype in _KINDS for one in tensors):
        return False
    if recurrent and torch.is_inference_mode_enabled():
        return False
    if not has_triton():
        return False
    if wanted == "interpreted":
        return True
    return all(one.is_cuda and (not recurrent or _is_roomy(one.device)) for one in tensors)


def product_type(values: Tensor) -> torch.dtype:
    """The type of operands: autocast's where it is on, else that of the values."""
    device = values.device.type
    if torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return values.dtype


def precise_product(one: Tensor, other: Tensor) -> Tensor:
    """A product that is added up and left in float32."""
    if one.dtype == torch.float32:
        return torch.mm(one, other)
    if one.is_cuda:
        return torch.mm(one, other, out_dtype=torch.float32)
    return torch.mm(one, other).float()  # added up in float32, but torch has no more on a CPU


@contextmanager
def kernel_mode(wanted: KernelMode) -> Iterator[None]:
    """Leave everything inside to plain PyTorch, or have the kernels interpreted on a CPU."""
    before = _way.set(wanted)
    try:
        yield
    finally:
        _way.reset(before)


@contextmanager
def exact() -> Iterator[None]:
    """Within it cuDNN does not round what it multiplies to ten bits (TF32), as it would else."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before


@cache
def has_triton() -> bool:
    """Whether Triton is installed; torch brings it along where it was built for GPUs."""
    return find_spec("triton") is not None


@cache
def _is_roomy(device: torch.device) -> bool:
    """Whether a GPU has shared memory enough; on others captured steps are fast without."""
    about: Any = torch.cuda.get_device_properties(device)
    room: int = about.shared_memory_per_block_optin
    return room >= _ROOM
