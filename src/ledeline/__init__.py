"""ledeline: from the lede, a headline, and which words it used."""

import os
import typing

# Threads that wait for others sleep soon instead of spinning, so that other work on the machine
# costs little. OpenMP reads this when torch is first imported. What somebody has set stays.
_WAITING = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "1000"}
if not _WAITING.keys() & os.environ.keys():
    os.environ.update(_WAITING)

from ledeline import _moved as _moved  # noqa: E402 - names of 0.1.0

if typing.TYPE_CHECKING:
    from ledeline import rouge
    from ledeline.evaluation.audit import audit
    from ledeline.inference.checks.check import Check
    from ledeline.inference.checks.checker import Checker, check
    from ledeline.inference.checks.doubt import Doubt
    from ledeline.inference.headline import Headline
    from ledeline.inference.headliner import Headliner, Options

__version__ = "0.2.0"

__all__ = [
    "Check",
    "Checker",
    "Doubt",
    "Headline",
    "Headliner",
    "Options",
    "__version__",
    "audit",
    "check",
    "rouge",
]


_MODULES = {
    "Check": "ledeline.inference.checks.check",
    "Checker": "ledeline.inference.checks.checker",
    "Doubt": "ledeline.inference.checks.doubt",
    "Headline": "ledeline.inference.headline",
    "Headliner": "ledeline.inference.headliner",
    "Options": "ledeline.inference.headliner",
    "audit": "ledeline.evaluation.audit",
    "check": "ledeline.inference.checks.checker",
}


def __getattr__(name: str) -> typing.Any:
    """Import a public name when it is first asked for, as importing takes time."""
    import importlib

    if name == "rouge":
        return importlib.import_module("ledeline.rouge")
    if name in _MODULES:
        from ledeline.core.extras import needed_by

        with needed_by(f"ledeline.{name}"):
            return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
