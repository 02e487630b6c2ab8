"""From a configuration to a system."""

from typing import Final

import torch

from ledeline.core.errors import ConfigError
from ledeline.model.attention_system import AttentionSystem
from ledeline.model.initialization import Initialization, UniformInit, initialize
from ledeline.model.system import System
from ledeline.model.system_config import SystemConfig
from ledeline.model.systems import SYSTEMS

_NO_ROOM_ON_CPU: Final = "can't allocate memory"  # torch raises a plain RuntimeError that says this


def build(
    config: SystemConfig, vocabulary: int, seed: int = 0, init: Initialization | None = None
) -> System:
    """The system that a configuration describes, with its weights at their first values.

    They are uniform within 0.1 of 0 if no scheme is given, as in the paper.
    """
    kind = SYSTEMS[config.system.name]
    for name in config.addons:
        if reason := refusal(kind, name):
            raise ConfigError(
                f"[{name}] does not go with the system {config.system.name}: {reason}"
            )
    system: System = kind(config, vocabulary)
    initialize(system, seed, init or UniformInit())
    return system


def refusal(kind: type[System], addon: str) -> str | None:
    """Why an add-on does not go with a system; None: it does."""
    if not issubclass(kind, AttentionSystem):
        return "it has no attention over the states of an encoder"
    return kind.refuses.get(addon)


def is_out_of_memory(error: Exception) -> bool:
    """Whether torch, or Python, had too little memory."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and _NO_ROOM_ON_CPU in str(error)
