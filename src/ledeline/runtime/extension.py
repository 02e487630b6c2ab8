"""The engine in C, `ledeline.runtime._runtime`, or a sentence where it was not compiled."""

from functools import cache
from importlib import import_module
from typing import Any

from ledeline.core.errors import LedelineError


class NoEngineError(LedelineError):
    """The part of ledeline that is written in C is missing."""


@cache
def extension() -> Any:
    """The module in C."""
    try:
        return import_module("ledeline.runtime._runtime")
    except ImportError as error:
        raise NoEngineError(
            f"ledeline was installed without its engine ({error}); install it from a wheel, or "
            "with a C compiler such as gcc: pip install --force-reinstall --no-deps --no-cache-dir "
            "ledeline (with -v, pip shows why it was not compiled)"
        ) from None
