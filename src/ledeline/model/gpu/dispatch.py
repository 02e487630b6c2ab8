"""Which functions have a fused kernel, and when it runs instead of the plain definition.

This is the one place where that is chosen. A plain definition is marked with `has_kernel`, and
`KERNELS` says where its fused twin is, which takes the same arguments, and when it is taken.
Kernels run on a GPU, or for tests on any machine in Triton's interpreter, which wants
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
    from ledeline.model.pairs import Pairs

KernelMode = Literal["fused", "plain", "interpreted"]
_mode: ContextVar[KernelMode] = ContextVar("kernel_mode", default="fused")
_TYPES: Final = (torch.float32, torch.bfloat16, torch.float16)
_ROOM: Final = 160 * 1024  # bytes of shared memory that a program needs; an A100 or newer has them

LONGEST: Final = 1024  # source places that attention's kernels take


def use_triton(*tensors: Tensor, recurrent: bool = False) -> bool:
    """Whether fused kernels are to work on these: on a GPU, unless something else is wanted.

    Those of recurrent layers need much shared memory, and are for training and validation: where a
    few texts are to be answered, nobody wants to wait until they are compiled.
    """
    wanted = _mode.get()
    if wanted == "plain" or not all(one.dtype in _TYPES for one in tensors):
        return False
    if recurrent and torch.is_inference_mode_enabled():
        return False
    if not has_triton():
        return False
    if wanted == "interpreted":
        return True
    return all(one.is_cuda and (not recurrent or _has_shared_memory(one.device)) for one in tensors)


# --- what has a kernel, and when it is taken ------------------------------------------------------


class Kernel(NamedTuple):
    """The fused twin of a plain function."""

    place: str  # module in `ledeline.model.gpu`, and function
    taken: Callable[..., bool]  # of the arguments of the function


def _embed(words: Tensor, weight: Tensor) -> bool:  # noqa: ARG001
    return torch.is_grad_enabled() and use_triton(weight)  # it is there for its gradient


def _lstm_layer(layer: nn.LSTM, values: Tensor, lengths: Tensor | None) -> bool:  # noqa: ARG001
    return lengths is None and use_triton(values, recurrent=True)


def _token_losses(states: Tensor, output: nn.Linear, targets: Tensor) -> bool:  # noqa: ARG001
    return use_triton(states)


def _source_losses(states: Tensor, output: nn.Linear, pairs: "Pairs", c: float) -> bool:  # noqa: ARG001
    return use_triton(states)


KERNELS: Final = {
    "embed": Kernel("embedding.embed", _embed),
    "bidirectional_sum": Kernel("encoder.bidirectional_sum", _lstm_layer),
    "token_losses": Kernel("losses.token_losses", _token_losses),
    "source_losses": Kernel("losses.source_losses", _source_losses),
}

P = ParamSpec("P")
R = TypeVar("R")


def has_kernel(plain: Callable[P, R]) -> Callable[P, R]:
    """Mark a plain definition that has a fused twin, which takes its place when it should."""
    kernel = KERNELS[plain.__name__]
    module, _, name = kernel.place.rpartition(".")

    @wraps(plain)
    def chosen(*arguments: P.args, **named: P.kwargs) -> R:
        if not kernel.taken(*arguments, **named):
            return plain(*arguments, **named)
        fused: Callable[P, R] = getattr(import_module(f"ledeline.model.gpu.{module}"), name)
        return fused(*arguments, **named)

    return chosen


def unrolls_at_once(embedded: Tensor) -> bool:
    """Whether `layers.unroll` does a decoder's steps over known words, with a gradient by hand."""
    return torch.is_grad_enabled() or use_triton(embedded, recurrent=True)


def unrolls_in_triton(embedded: Tensor, memory: "Memory") -> bool:
    """Whether it has Triton do them."""
    short = memory.mask is None and memory.keys.shape[1] <= LONGEST
    return short and use_triton(embedded, recurrent=True)


# --- products -----------------------------------------------------------------------------------


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
    """Within it use plain PyTorch only, or have the kernels interpreted on a CPU."""
    before = _mode.set(wanted)
    try:
        yield
    finally:
        _mode.reset(before)


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
def _has_shared_memory(device: torch.device) -> bool:
    """Whether a GPU has shared memory enough; on others captured steps are fast without."""
    about: Any = torch.cuda.get_device_properties(device)
    room: int = about.shared_memory_per_block_optin
    return room >= _ROOM
