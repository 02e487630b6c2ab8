"""The configurations: what each key means, its default, and which values are allowed.

Relative paths are relative to the current folder. `load` reads a configuration from TOML and the
command line. Modules are imported when a name of theirs is first asked for.
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

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

_MODULES: Final = {
    "BadValue": "section",
    "DataConfig": "training",
    "LoopConfig": "training",
    "RunConfig": "training",
    "SearchConfig": "search",
    "ValidationConfig": "training",
    "load": "toml",
    "to_toml": "toml",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"ledeline.config.{_MODULES.get(name, 'preparation')}")
    return getattr(module, name)
