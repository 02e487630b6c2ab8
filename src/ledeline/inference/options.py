"""How headlines are generated."""

from typing import Annotated, Final, Literal, TypeAlias

from ledeline.config.search import SearchConfig
from ledeline.config.section import BadValue, at_least, between, section

Rank: TypeAlias = Literal["support", "score"]
CHUNK_GROWTH: Final = 8  # chunks of a stream double up to so many times the first


@section
class Options:
    """How headlines are generated."""

    search: Annotated[SearchConfig, ""] = SearchConfig()
    explain: Annotated[bool, "Say where each word came from, and what was dropped."] = False
    replace_unknown: Annotated[
        bool, "Put the aligned word of the source where the model writes <unk>."
    ] = True
    max_source: Annotated[int, "Sub-words of a text that are read, at most.", at_least(1)] = 512
    check: Annotated[
        bool | None,
        "Check headlines against their texts: their support, and doubtful words. Default: on for "
        "the bundled model.",
    ] = None
    rank: Annotated[
        Rank | None,
        "What the best of the headlines found is chosen by: support by the text, or the score of "
        "the search alone. Default: support for the bundled model, else score.",
    ] = None
    constrain: Annotated[
        bool | None,
        "Never write a number that the text does not have, nor a well-known name. Default: on "
        "where headlines are ranked by support.",
    ] = None
    min_support: Annotated[
        float | None,
        "Leave out a headline with less support than this, from 0 to 1, and say so.",
        between(0, 1),
    ] = None
    batch_size: Annotated[
        int | None,
        "Texts that are searched together, at most; none: as many as suit the device.",
        at_least(1),
    ] = None

    def __post_init__(self) -> None:
        if self.check is False and self.rank == "support":
            raise BadValue("rank", self.rank, "needs check")
        if self.check is False and self.min_support is not None:
            raise BadValue("min_support", self.min_support, "needs check")


DEFAULT_OPTIONS: Final = Options()
