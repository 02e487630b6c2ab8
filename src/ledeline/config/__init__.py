"""The configurations: what each key means, its default, and which values are allowed.

Relative paths are relative to the current folder. `load` reads a configuration from TOML and the
command line.
"""

from ledeline.config.prepare import (
    CorpusConfig,
    DatasetConfig,
    FilterConfig,
    PrepareConfig,
    SplitConfig,
    SubwordConfig,
    TextConfig,
)
from ledeline.config.search import SearchConfig
from ledeline.config.section import BadValue
from ledeline.config.system import GateConfig, ModelConfig, SpmConfig, SystemConfig
from ledeline.config.toml import load, to_toml
from ledeline.config.training import (
    DataConfig,
    OptimizerConfig,
    RunConfig,
    TrainConfig,
    ValidationConfig,
)

__all__ = [
    "BadValue",
    "CorpusConfig",
    "DataConfig",
    "DatasetConfig",
    "FilterConfig",
    "GateConfig",
    "ModelConfig",
    "OptimizerConfig",
    "PrepareConfig",
    "RunConfig",
    "SearchConfig",
    "SplitConfig",
    "SpmConfig",
    "SubwordConfig",
    "SystemConfig",
    "TextConfig",
    "TrainConfig",
    "ValidationConfig",
    "load",
    "to_toml",
]
