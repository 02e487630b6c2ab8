"""What this machine's CPU can do, and a switch to run as on an older one.

`LEDELINE_CPU` limits our own loops in C to the instructions of an older processor. oneDNN and ATen
have switches of their own; `make test-old-cpu` sets them all. See docs/machines.md.
"""

import os
from functools import cache
from typing import Final

import torch

from ledeline.core.errors import ConfigError

VARIABLE: Final = "LEDELINE_CPU"
KINDS: Final = (
    "portable",
    "avx2",
    "avx512",
    "vnni",
)  # each has the instructions of those before it

NO_INT8: Final = (
    "precision int8 needs a CPU with AVX-512 VNNI and a torch with oneDNN, but this machine lacks "
    "one of them; use float32, or auto, which uses the best available"
)
NO_BFLOAT16: Final = (
    "run.precision = bfloat16 needs a GPU or a CPU with AVX-512, but this machine has neither; "
    "use --run.precision=float32"
)


def limit() -> int:
    """The newest kind of CPU whose instructions may be used, as its index in `KINDS`."""
    wanted = os.environ.get(VARIABLE) or KINDS[-1]
    if wanted not in KINDS:
        raise ConfigError(
            f"{VARIABLE}={wanted} is not a kind of CPU; the kinds are {', '.join(KINDS)}"
        )
    return KINDS.index(wanted)


@cache
def has_int8() -> bool:
    """Whether int8 products are fast here (VNNI), and their sums exact."""
    has_onednn = torch._C._has_mkldnn and hasattr(torch.ops, "onednn")
    if not has_onednn or limit() < KINDS.index("vnni"):
        return False
    return bool(torch.cpu._is_vnni_supported()) and _adds_up_exactly()


def _adds_up_exactly() -> bool:
    """Whether oneDNN's int8 sums are exact; without VNNI they saturate at 16 bits."""
    size, level, weight = 64, 255, 127
    packed = torch.ops.onednn.qlinear_prepack(
        torch.full((size, size), weight, dtype=torch.int8), [size, size]
    )
    levels = torch.full((size, size), level, dtype=torch.uint8)
    ones, zeros = torch.ones(size), torch.zeros(size, dtype=torch.int32)
    sums = torch.ops.onednn.qlinear_pointwise(
        levels, 1.0, 0, packed, ones, zeros, None, 1.0, 0, torch.float32, "none", [], ""
    )
    return bool((sums == size * level * weight).all())


@cache
def has_bfloat16() -> bool:
    """Whether the CPU runs an LSTM in bfloat16 under autocast; without AVX-512 oneDNN has none."""
    one, weight, bias = torch.zeros(1, 1, 1), torch.zeros(4, 1), torch.zeros(4)
    weights = [weight, weight, bias, bias]
    try:
        with torch.autocast("cpu", torch.bfloat16):
            torch.lstm(one, [one, one], weights, True, 1, 0.0, False, False, False)
    except RuntimeError:
        return False
    return True
