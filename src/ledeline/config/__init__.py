"""The configurations: what each key means, its default, and which values are allowed.

Relative paths are relative to the current folder. `load` reads a configuration from TOML and the
command line.
"""

from typing import TYPE_CHECKING

from ledeline.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
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

__getattr__ = lazy_exports(
    __name__,
    {
        "BadValue": "ledeline.config.section",
        "CorpusConfig": "ledeline.config.preparation",
        "DataConfig": "ledeline.config.training",
        "DatasetConfig": "ledeline.config.preparation",
        "FilterConfig": "ledeline.config.preparation",
        "LoopConfig": "ledeline.config.training",
        "PrepareConfig": "ledeline.config.preparation",
        "RunConfig": "ledeline.config.training",
        "SearchConfig": "ledeline.config.search",
        "SplitConfig": "ledeline.config.preparation",
        "SubwordConfig": "ledeline.config.preparation",
        "TextConfig": "ledeline.config.preparation",
        "ValidationConfig": "ledeline.config.training",
        "load": "ledeline.config.toml",
        "to_toml": "ledeline.config.toml",
    },
)
