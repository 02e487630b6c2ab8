"""Memory of the process: freed memory goes back to the system when the server rests."""

import ctypes
from typing import Final

_M_MMAP_THRESHOLD: Final = -3  # names and values of glibc's malloc.h
_M_ARENA_MAX: Final = -8
_LARGE: Final = 2**18  # bytes; larger blocks are returned to the system as soon as they are freed
_ARENAS: Final = 2


def _glibc() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL("libc.so.6")
        return library if hasattr(library, "malloc_trim") else None
    except OSError:
        return None


_GLIBC: Final = _glibc()


def bound_memory() -> None:
    """Let freed memory be reused by all threads; call this before threads start."""
    if _GLIBC is not None:
        _GLIBC.mallopt(_M_MMAP_THRESHOLD, _LARGE)
        _GLIBC.mallopt(_M_ARENA_MAX, _ARENAS)


def release_memory() -> None:
    """Give freed memory back to the system; without glibc, nothing happens."""
    if _GLIBC is not None:
        _GLIBC.malloc_trim(0)
