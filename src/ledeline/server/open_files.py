"""The limit of open files, which every connection counts against."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from ledeline.server.connection_pool import ACCEPT_BURST, RESERVE
from ledeline.server.settings import ServerConfig

# Files beside the connections: some for the application, and sockets that have been accepted but
# not counted, or dropped but not closed, during some four rounds of the event loop.
SPARE: Final = 12 + 5 * ACCEPT_BURST


def fit_open_files(
    server: ServerConfig, announce: Callable[[str], None]
) -> tuple[ServerConfig, int]:
    """Raise the limit as far as it is needed; where it cannot be, allow fewer connections.

    Returns the settings, and how many sockets there may be beyond `server.connections`.
    """
    health = RESERVE if server.health_port is not None else 0
    other = SPARE + _num_open() + health
    needed = server.connections + RESERVE + other
    limit = _raise_limit(needed)
    if limit >= needed:
        return server, RESERVE
    left = max(2, limit - other)
    reserve = min(RESERVE, left // 4 or 1)
    connections = min(server.connections, left - reserve)
    if connections < server.connections:
        announce(
            f"only {limit} files can be open, so server.connections is {connections} instead of "
            f"{server.connections}"
        )
    return replace(server, connections=connections), reserve


def _raise_limit(needed: int) -> int:
    """The limit of open files, after it was raised to what is needed if that is allowed."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return needed
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft == unlimited or soft >= needed:
        return needed
    limit = needed if hard == unlimited else min(needed, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    except (OSError, ValueError):  # some systems have a lower bound of their own
        return soft
    return limit


def _num_open() -> int:
    try:
        return sum(1 for _ in Path("/dev/fd").iterdir())
    except OSError:
        return 16
