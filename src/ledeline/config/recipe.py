"""How a published system was trained."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Recipe:
    """The optimizer, the schedule and the first weights that a system was published with.

    Each is a section as TOML has it, ``{"name": "adagrad", "learning_rate": 0.15}``. They are the
    defaults of a configuration with this system; what a user names goes before them.
    """

    optimizer: Mapping[str, Any] = field(default_factory=lambda: {"name": "adam"})
    schedule: Mapping[str, Any] = field(default_factory=lambda: {"name": "halving"})
    init: Mapping[str, Any] = field(default_factory=lambda: {"name": "uniform"})
