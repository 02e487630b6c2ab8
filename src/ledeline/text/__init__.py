"""Text as words and sub-words: profiles, byte-pair encoding, function words, and the tokenizer."""

import warnings
from typing import Any

from ledeline.core.errors import RenamedWarning


def __getattr__(name: str) -> Any:
    """Names that lay here in version 0.1.0, for one version."""
    from ledeline.text import profiles

    if not hasattr(profiles, name) or name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    new = f"ledeline.text.profiles.{name}"
    warnings.warn(f"ledeline.text.{name} is called {new} now", RenamedWarning, stacklevel=2)
    return getattr(profiles, name)
