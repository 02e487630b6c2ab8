"""Memory of the process: freed memory goes back to the system when the server rests."""

import asyncio
import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

# Of glibc's malloc.h. Blocks from this size on go back to the system as soon as they are freed, as
# the buffers of a search do; the heaps of threads would keep them.
_M_MMAP_THRESHOLD: Final = -3
_LARGE: Final = 2**20  # bytes
_M_ARENA_MAX: Final = -8
_ARENAS: Final = 2
_CHECK_SECONDS: Final = 1.0
_GROWTH: Final = 1.02  # since memory was given back last, before it is given back again


def _glibc() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL("libc.so.6")
        return library if hasattr(library, "malloc_trim") else None
    except OSError:
        return None


_GLIBC: Final = _glibc()


def bound_memory() -> None:
    """Keep little of what is freed, for all threads; call this before threads start."""
    if _GLIBC is not None:
        _GLIBC.mallopt(_M_ARENA_MAX, _ARENAS)
        _GLIBC.mallopt(_M_MMAP_THRESHOLD, _LARGE)


def release_memory() -> None:
    """Give freed memory back to the system; without glibc, nothing happens."""
    if _GLIBC is not None:
        _GLIBC.malloc_trim(0)


async def keep_memory_small(is_idle: Callable[[], bool]) -> None:
    """Give memory back whenever the server is idle and has grown; runs until it is cancelled."""
    smallest = 0.0
    while True:
        await asyncio.sleep(_CHECK_SECONDS)
        if is_idle() and resident_bytes() > smallest * _GROWTH:
            await asyncio.to_thread(release_memory)
            smallest = resident_bytes()


def resident_bytes() -> float:
    """Memory of this process; infinite where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError):
        return float("inf")
    return float(pages * os.sysconf("SC_PAGE_SIZE"))
