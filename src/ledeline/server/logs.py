"""What the server logs: warnings, errors, and a line for each request if wanted.

A line has no text of a caller, no query string and no path that the server does not know. Equal
lines are left out when they come too often, so that a caller cannot fill a disk with them.
"""

import asyncio
import errno
import logging
import time
from typing import Any, Final

from starlette.types import Scope

from ledeline.server.addresses import UNKNOWN, ip_address

ACCESS_LOG: Final = "ledeline.server.access"
METHODS: Final = frozenset(
    ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")
)
NO_SUCH_PATH: Final = "(no such path)"
LOGGING: Final[dict[str, Any]] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(message)s"}},
    "filters": {"repeats": {"()": "ledeline.server.logs.RepeatFilter"}},
    "handlers": {
        "err": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["repeats"]},
        "requests": {"class": "logging.StreamHandler", "formatter": "line"},
    },
    "loggers": {
        "ledeline.server": {"handlers": ["err"], "level": "WARNING", "propagate": False},
        ACCESS_LOG: {"handlers": ["requests"], "level": "INFO", "propagate": False},
        "uvicorn.error": {"handlers": ["err"], "level": "WARNING", "propagate": False},
        "uvicorn.access": {"handlers": [], "level": "CRITICAL", "propagate": False},
        "asyncio": {"handlers": ["err"], "level": "WARNING", "propagate": False},
    },
}
_WINDOW_SECONDS: Final = 60.0
_MOST_EQUAL: Final = 10  # lines in a window
_MOST_KINDS: Final = 100  # of lines in a window; all further ones count as equal
_OUT_OF_FILES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

_log = logging.getLogger(__name__)
_access_log = logging.getLogger(ACCESS_LOG)


class RepeatFilter(logging.Filter):
    """Lets at most ten equal lines a minute through; the next one says how many were left out.

    A record with an attribute `most` has another limit. Requests that were cancelled because the
    server stops are no errors, and are left out, too.
    """

    def __init__(self, seconds: float = _WINDOW_SECONDS) -> None:
        super().__init__()
        self._seconds = seconds
        self._began = 0.0
        self._seen: dict[str, int] = {}
        self._left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is written."""
        if record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError):
            return False
        now, message = time.monotonic(), record.getMessage()
        if now - self._began >= self._seconds:
            if self._left_out:
                record.msg = f"{message} ({self._left_out} earlier lines were left out)"
                record.args = ()
            self._began, self._left_out = now, 0
            self._seen.clear()
        kind = message if message in self._seen or len(self._seen) < _MOST_KINDS else ""
        number = self._seen[kind] = self._seen.get(kind, 0) + 1
        most = getattr(record, "most", _MOST_EQUAL)
        if number == most:
            record.msg = f"{record.getMessage()} (more like this are left out for a while)"
            record.args = ()
        self._left_out += number > most
        return bool(number <= most)


def handle_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what went wrong in the event loop; an error of the system is one line."""
    error = context.get("exception")
    if isinstance(error, OSError) and error.errno in _OUT_OF_FILES:
        sentence = "a connection was not accepted: %s; see server.connections"
        _log.warning(sentence, error.strerror, extra={"most": 1})
    elif isinstance(error, OSError):
        _log.warning("a connection failed: %s", error.strerror or type(error).__name__)
    else:
        loop.default_exception_handler(context)


def log_request(scope: Scope, path: str | None, status: int, seconds: float) -> None:
    """Log a request that has ended; `path` is that of a route, or None."""
    client = scope.get("client")
    address = ip_address(client[0]) if client else None
    method = scope["method"] if scope["method"] in METHODS else "other"
    _access_log.info(
        "%s %s %s %d %.3f", address or UNKNOWN, method, path or NO_SUCH_PATH, status, seconds
    )
