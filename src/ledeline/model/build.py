"""From a configuration to a system."""

from ledeline.model.initialization import Initialization, UniformInit, initialize
from ledeline.model.system import System
from ledeline.model.system_config import SystemConfig
from ledeline.model.systems import SYSTEMS


def build(
    config: SystemConfig, vocabulary: int, seed: int = 0, init: Initialization | None = None
) -> System:
    """The system that a configuration describes, with its weights at their first values.

    They are uniform within 0.1 of 0 if no scheme is given, as in the paper.
    """
    system: System = SYSTEMS[config.system.name](config, vocabulary)
    initialize(system, seed, init or UniformInit())
    return system
