"""Triton, or something in its place where it is not installed: kernels can be read there, not run.

Only modules with kernels import this, and they only where `use_triton` said so: Triton takes
half a second to import.
"""

from typing import Any

try:
    import triton
    import triton.language as tl
except ImportError:

    class _Absent:
        def __getattr__(self, name: str) -> Any:
            return self

        def __call__(self, *_: Any, **__: Any) -> Any:
            return self

    triton = tl = _Absent()

__all__ = ["tl", "triton"]
