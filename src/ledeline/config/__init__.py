"""The configurations: what each key means, its default, and which values are allowed.

Relative paths are relative to the current folder. `load` reads a configuration from TOML and the
command line.
"""

from ledeline.config.preparation import (
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
from ledeline.config.toml import load, to_toml
from ledeline.config.training import (
    DataConfig,
    LoopConfig,
    RunConfig,
    ValidationConfig,
)

__all__ = [
    "BadValue",
    "CorpusConfig",
    "DataConfig",
    "DatasetConfig",
    "FilterConfig",
    "LoopConfig",
    "PrepareConfig",
    "RunConfig",
    "SearchConfig",
    "SplitConfig",
    "SubwordConfig",
    "TextConfig",
    "ValidationConfig",
    "load",
    "to_toml",
]
