"""Who a browser may speak for: the `Host` and the `Origin` of a request.

A web page elsewhere can make a browser call a server on its user's machine. If its own name leads
to 127.0.0.1 (DNS rebinding), the browser even takes the server for the page's own site. Such a
request carries the page's name as its Host, so without a token the server answers only to names
that it knows. Pages of other names carry theirs as the Origin.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from starlette.types import ASGIApp, Receive, Scope, Send

from ledeline.server.addresses import ip_address
from ledeline.server.middleware import path_of, refuse
from ledeline.server.settings import ServerConfig

PROBES: Final = ("/health", "/ready")  # these say nothing, and are asked for by odd names
WRONG_HOST: Final = "this server does not answer to the Host of the request; see server.hosts"
WRONG_ORIGIN: Final = "pages of this Origin may not call the server; see server.origins"
_AUTHORITY: Final = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::([0-9]{1,5}))?")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class Authority(NamedTuple):
    """A host in small letters and without a final dot, and a port if there is one."""

    host: str
    port: int | None


def parse_authority(text: str) -> Authority | None:
    """A host and its port as in a Host header; None if it is anything else."""
    found = _AUTHORITY.fullmatch(text.lower())
    if found is None:
        return None
    literal, name, port = found.groups()
    if literal is not None and ip_address(literal) is None:
        return None
    host = literal or name.removesuffix(".")
    return Authority(host, None if port is None else int(port)) if host else None


def plain_origins(origins: Sequence[str]) -> list[str]:
    """Origins as browsers write them: in small letters, without a slash at the end."""
    return [origin.lower().rstrip("/") for origin in origins]


class HostMiddleware:
    """Refuses a Host that is not the server's with 421, and a foreign Origin with 403."""

    def __init__(self, app: ASGIApp, *, server: ServerConfig, has_token: bool) -> None:
        self._app = app
        self._names = _Names((*server.hosts, server.host, "localhost", ".localhost"))
        self._shared = _Names(server.hosts)
        self._origins = set(plain_origins(server.origins))
        self._checks_host = bool(server.hosts) or not has_token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        hosts = _values(scope, b"host")
        host = parse_authority(hosts[0]) if len(hosts) == 1 else None
        if hosts and self._checks_host and not self._is_ours(host) and not _is_probe(scope):
            await refuse(scope, receive, send, 421, WRONG_HOST)
        elif all(self._may_call(origin, host) for origin in _values(scope, b"origin")):
            await self._app(scope, receive, send)
        else:
            await refuse(scope, receive, send, 403, WRONG_ORIGIN)

    def _is_ours(self, host: Authority | None) -> bool:
        if host is None:
            return False
        return ip_address(host.host) is not None or host.host in self._names

    def _may_call(self, origin: str, host: Authority | None) -> bool:
        """Whether pages of an origin may call: those of the same host and port, and named ones."""
        origin = origin.lower()
        if origin in self._origins:
            return True
        scheme, _, rest = origin.partition("://")
        other = parse_authority(rest) if scheme in _DEFAULT_PORTS else None
        if other is None:  # also "null", the origin of a file or a sandbox
            return False
        if "*" in self._origins or other.host in self._shared:
            return True
        usual = _DEFAULT_PORTS[scheme]
        return host is not None and (other.host, other.port or usual) == (
            host.host,
            host.port or usual,
        )


class _Names:
    """Names of hosts; one that begins with a dot or *. stands for all names below it."""

    def __init__(self, names: Sequence[str]) -> None:
        plain = [name.lower().removesuffix(".") for name in names]
        self._exact = {name for name in plain if not name.startswith((".", "*."))}
        self._ends = tuple(name.removeprefix("*") for name in plain if name not in self._exact)

    def __contains__(self, host: str) -> bool:
        return host in self._exact or host.endswith(self._ends)


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def _is_probe(scope: Scope) -> bool:
    return path_of(scope) in PROBES
