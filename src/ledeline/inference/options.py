"""How headlines are generated."""

from typing import Annotated, Final

from ledeline.config.search import SearchConfig
from ledeline.config.section import at_least, section


@section
class Options:
    """How headlines are generated."""

    search: Annotated[SearchConfig, ""] = SearchConfig()
    explain: Annotated[bool, "Say where each word came from, and what was dropped."] = False
    replace_unknown: Annotated[
        bool, "Put the aligned word of the source where the model writes <unk>."
    ] = True
    max_source: Annotated[int, "Sub-words of a text that are read, at most.", at_least(1)] = 512
    batch_size: Annotated[
        int | None,
        "Texts that are searched together, at most; none: as many as suit the device.",
        at_least(1),
    ] = None


DEFAULT_OPTIONS: Final = Options()
