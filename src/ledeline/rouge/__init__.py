"""The numbers of ROUGE-1.5.5 ``-n 2 -m -w 1.2``: statistics, then scores, then a signature.

A headline is one line of text; it is scored against one reference or several.
"""

import typing

if typing.TYPE_CHECKING:
    from ledeline.rouge.rouge_settings import Settings
    from ledeline.rouge.scores import Rouge, Score, mean, score, score_all
    from ledeline.rouge.signature_line import signature

__all__ = ["Rouge", "Score", "Settings", "mean", "score", "score_all", "signature"]

_MODULES = {
    "Settings": "ledeline.rouge.rouge_settings",
    "signature": "ledeline.rouge.signature_line",
}


def __getattr__(name: str) -> typing.Any:
    """Import a public name when it is first asked for; those who want stems need no scores."""
    import importlib

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES.get(name, "ledeline.rouge.scores")), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
