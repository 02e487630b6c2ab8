"""Which instructions of this machine's CPU the engine uses, and a switch to use older ones.

The answers are the same with all of them, to the last bit; only the time differs. `LEDELINE_CPU`
forces a kind. oneDNN and ATen, which training uses, have switches of their own;
`make test-old-cpu` sets them all. See docs/machines.md.
"""

import os
from functools import cache
from typing import Final

from ledeline.core.errors import ConfigError
from ledeline.runtime.extension import extension

VARIABLE: Final = "LEDELINE_CPU"
KINDS: Final = ("portable", "sse2", "avx2", "avxvnni", "avx512", "vnni", "neon", "dotprod")

NO_BFLOAT16: Final = (
    "run.precision = bfloat16 needs a GPU or a CPU with AVX-512, but this machine has neither; "
    "use --run.precision=float32"
)


def kinds() -> tuple[str, ...]:
    """The kinds of instructions that this CPU has, the fastest last."""
    return tuple(extension().kinds())


def chosen_kind() -> str:
    """The kind that the engine uses: the fastest, or the one that `LEDELINE_CPU` names."""
    own, wanted = kinds(), os.environ.get(VARIABLE) or ""
    if not wanted:
        return own[-1]
    if wanted not in KINDS:
        raise ConfigError(
            f"{VARIABLE}={wanted} is not a kind of CPU; the kinds are {', '.join(KINDS)}"
        )
    if wanted not in own:
        raise ConfigError(f"{VARIABLE}={wanted}: this CPU only has {', '.join(own)}")
    return wanted


@cache
def has_bfloat16() -> bool:
    """Whether the CPU runs an LSTM in bfloat16 under autocast; without AVX-512 oneDNN has none."""
    import torch  # only training asks

    one, weight, bias = torch.zeros(1, 1, 1), torch.zeros(4, 1), torch.zeros(4)
    weights = [weight, weight, bias, bias]
    try:
        with torch.autocast("cpu", torch.bfloat16):
            torch.lstm(one, [one, one], weights, True, 1, 0.0, False, False, False)
    except RuntimeError:
        return False
    return True
