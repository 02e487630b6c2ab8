"""How many threads write headlines."""

import math
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

VARIABLE: Final = "OMP_NUM_THREADS"  # which torch and most numeric programs know, too
_CGROUPS: Final = Path("/sys/fs/cgroup")
_OWN_CGROUP: Final = Path("/proc/self/cgroup")
_OLD_LIMIT: Final = ("cpu.cfs_quota_us", "cpu.cfs_period_us")  # of version 1, in a folder `cpu`


def num_threads() -> int:
    """As many as the process has cores, or as `OMP_NUM_THREADS` says."""
    given = os.environ.get(VARIABLE, "").partition(",")[0].strip()
    if given.isdecimal() and int(given) > 0:
        return int(given)
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        cores = os.cpu_count() or 1
    return max(1, min([cores, *map(math.ceil, _limits())]))


def _limits() -> Iterator[float]:
    """Cores whose time the process may use, by the limits of its container or service on Linux."""
    try:
        groups = _OWN_CGROUP.read_text().splitlines()
    except OSError:
        return
    own = next((line[3:] for line in groups if line.startswith("0::")), "/")
    for group in (PurePosixPath(own), *PurePosixPath(own).parents):
        yield from _limit(_CGROUPS / str(group).lstrip("/"), ("cpu.max",))
    yield from _limit(_CGROUPS / "cpu", _OLD_LIMIT)


def _limit(folder: Path, names: tuple[str, ...]) -> Iterator[float]:
    """Time of a period / the period; nothing where there is no limit."""
    try:
        time, period = " ".join((folder / name).read_text() for name in names).split()
        limit = int(time) / int(period)
    except (OSError, ValueError, ZeroDivisionError):  # `max` is no limit
        return
    if limit > 0:  # it is -1 where version 1 has none
        yield limit
