"""Which functions have a fused kernel, and when it runs instead of the plain definition.

This is the one place where that is decided. A plain definition is marked with `has_kernel`, and
`KERNELS` has its fused version, which takes the same arguments, and the condition for using it.
Kernels run on a GPU or, for tests, on any machine in Triton's interpreter, which needs
TRITON_INTERPRET=1 before Triton is first imported.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, ParamSpec, TypeVar

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from ledeline.model.layers.attention import Memory
    from ledeline.model.layers.dropout import Dropout

KernelMode = Literal["fused", "plain", "interpreted"]
_mode: ContextVar[KernelMode] = ContextVar("kernel_mode", default="fused")
_TYPES: Final = (torch.float32, torch.bfloat16, torch.float16)
_SHARED_MEMORY: Final = 160 * 1024  # bytes that a program needs; an A100 or newer has them

MAX_SOURCE: Final = 1024  # source positions that the attention kernels can handle


def use_triton(*tensors: Tensor, recurrent: bool = False) -> bool:
    """Whether to run fused kernels on these tensors: on a GPU, unless `kernel_mode` says otherwise.

    Kernels of recurrent layers need much shared memory, and run in training and validation only:
    for a few headlines, compiling them would take longer than it saves.
    """
    mode = _mode.get()
    if mode == "plain" or not all(one.dtype in _TYPES for one in tensors):
        return False
    if recurrent and torch.is_inference_mode_enabled():
        return False
    if not has_triton():
        return False
    if mode == "interpreted":
        return True
    return all(one.is_cuda and (not recurrent or _has_shared_memory(one.device)) for one in tensors)


# --- what has a kernel, and when it is used -------------------------------------------------------


class Kernel(NamedTuple):
    """The fused version of a plain function."""

    path: str  # module in `ledeline.model.gpu`, and function
    applies: Callable[..., bool]  # whether to use it for these arguments


def _embed(words: Tensor, weight: Tensor) -> bool:  # noqa: ARG001
    return torch.is_grad_enabled() and use_triton(weight)  # only its backward pass is faster


def _lstm_layer(layer: nn.LSTM, values: Tensor, lengths: Tensor | None) -> bool:  # noqa: ARG001
    return lengths is None and use_triton(values, recurrent=True)


def _by_states(states: Tensor, *_: Any, **__: Any) -> bool:
    return use_triton(states)


def _add_and_norm(
    states: Tensor,
    added: Tensor,
    dropout: "Dropout",  # noqa: ARG001
    norm: nn.LayerNorm,  # noqa: ARG001
) -> bool:
    return use_triton(states, added)


KERNELS: Final = {
    "add_and_norm": Kernel("norm.add_and_norm", _add_and_norm),
    "embed": Kernel("embedding.embed", _embed),
    "bidirectional_sum": Kernel("encoder.bidirectional_sum", _lstm_layer),
    "token_losses": Kernel("losses.token_losses", _by_states),
    "smoothed_token_losses": Kernel("losses.smoothed_token_losses", _by_states),
    "source_losses": Kernel("losses.source_losses", _by_states),
}

P = ParamSpec("P")
R = TypeVar("R")


def has_kernel(plain: Callable[P, R]) -> Callable[P, R]:
    """Mark a plain definition that has a fused version in `KERNELS`."""
    kernel = KERNELS[plain.__name__]
    module, _, name = kernel.path.rpartition(".")

    @wraps(plain)
    def chosen(*arguments: P.args, **named: P.kwargs) -> R:
        if not kernel.applies(*arguments, **named):
            return plain(*arguments, **named)
        fused: Callable[P, R] = getattr(import_module(f"ledeline.model.gpu.{module}"), name)
        return fused(*arguments, **named)

    return chosen


def use_manual_backward(embedded: Tensor) -> bool:
    """Whether `layers.unroll` does a decoder's steps, with its own backward pass."""
    return torch.is_grad_enabled() or use_triton(embedded, recurrent=True)


def use_triton_unroll(embedded: Tensor, memory: "Memory") -> bool:
    """Whether `layers.unroll` does them in Triton."""
    short = memory.mask is None and memory.keys.shape[1] <= MAX_SOURCE
    return short and use_triton(embedded, recurrent=True)


# --- products -----------------------------------------------------------------------------------


def product_dtype(values: Tensor) -> torch.dtype:
    """The type of a product's operands: autocast's where it is on, else that of the values."""
    device = values.device.type
    if torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return values.dtype


def mm_in_float32(one: Tensor, other: Tensor) -> Tensor:
    """`torch.mm`, summed and returned in float32."""
    if one.dtype == torch.float32:
        return torch.mm(one, other)
    if one.is_cuda:
        return torch.mm(one, other, out_dtype=torch.float32)
    return torch.mm(one, other).float()  # rounded before: torch has no out_dtype on a CPU


@contextmanager
def kernel_mode(mode: KernelMode) -> Iterator[None]:
    """Within it use plain PyTorch only, or run the kernels in Triton's interpreter."""
    before = _mode.set(mode)
    try:
        yield
    finally:
        _mode.reset(before)


@contextmanager
def without_tf32() -> Iterator[None]:
    """Within it cuDNN does not round operands to TF32 (ten bits), as it does by default."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before


@cache
def has_triton() -> bool:
    """Whether Triton is installed; torch for GPUs comes with it."""
    return find_spec("triton") is not None


@cache
def _has_shared_memory(device: torch.device) -> bool:
    """Whether a GPU has enough shared memory for the kernels of recurrent layers."""
    properties: Any = torch.cuda.get_device_properties(device)
    available: int = properties.shared_memory_per_block_optin
    return available >= _SHARED_MEMORY
