"""From a configuration to a system."""

from ledeline.model.config import SystemConfig
from ledeline.model.initialization import initialize
from ledeline.model.system import System
from ledeline.model.systems import SYSTEMS


def build(config: SystemConfig, vocabulary: int, seed: int = 0) -> System:
    """The system that a configuration describes, with its weights at their first values."""
    system: System = SYSTEMS[config.system.name](config, vocabulary)
    initialize(system, seed)
    return system
