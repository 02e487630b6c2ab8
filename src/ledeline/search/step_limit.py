"""How many steps a search may take."""

from typing import Final

from ledeline.config.search import SearchConfig

STEPS_PER_SOURCE_TOKEN: Final = 2  # the largest number of decoder steps, with <eos>


def max_steps(length: int, config: SearchConfig) -> int:
    """The largest number of decoder steps, <eos> counted, for a source of this length."""
    limit = max(STEPS_PER_SOURCE_TOKEN * length, config.min_length + 1)
    return limit if config.max_length is None else min(limit, config.max_length + 1)
