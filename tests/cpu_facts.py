"""What a test must know of the CPU that it runs on."""

import os
from pathlib import Path
from typing import Final

import pytest


def _has_amx() -> bool:
    facts = Path("/proc/cpuinfo")
    return (
        facts.exists()
        and "amx_int8" in facts.read_text(encoding="utf-8")
        and "ONEDNN_MAX_CPU_ISA" not in os.environ
    )


# With AMX, the last bits of oneDNN's int8 products depend on how many rows there are.
same_bits_in_any_batch: Final = pytest.mark.skipif(
    _has_amx(), reason="with AMX the last bits depend on the batch"
)
