"""Triton, or a stand-in where it is not installed, so that modules with kernels can be imported.

Only modules with kernels import this, and they are imported only when `use_triton` is true: Triton
takes half a second to import.
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
