"""How many threads write headlines."""

import os
from typing import Final

VARIABLE: Final = "OMP_NUM_THREADS"  # which torch and most numeric programs know, too


def num_threads() -> int:
    """As many as the process has cores, or as `OMP_NUM_THREADS` says."""
    given = os.environ.get(VARIABLE, "").partition(",")[0].strip()
    if given.isdecimal() and int(given) > 0:
        return int(given)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1
