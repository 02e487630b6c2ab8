"""The settings of `ledeline serve`: each key with its meaning, default and checks."""

import ipaddress
import os
import re
from pathlib import Path
from typing import Annotated, Final

from ledeline.config.search import DEVICE_DOC, PRECISION_DOC, Device, Precision
from ledeline.config.section import NOT_EMPTY, BadValue, above, at_least, section
from ledeline.core.errors import ConfigError

TOKEN_VARIABLE: Final = "LEDELINE_TOKEN"
_HOST_NAME: Final = re.compile(r"(\*?\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?")
_MIN_TOKEN_LENGTH: Final = 16  # characters; a shorter one could be guessed


@section
class ServedModelConfig:
    """Which model writes the headlines, and how it computes."""

    folders: Annotated[
        tuple[Path, ...],
        "Model folders; several make an ensemble. Without any, the bundled model.",
    ] = ()
    precision: Annotated[Precision, PRECISION_DOC] = "auto"
    device: Annotated[Device, DEVICE_DOC] = "auto"


@section
class ServerConfig:
    """Where the server listens, and who may call it."""

    host: Annotated[str, "Address to listen on; 0.0.0.0 lets other machines in.", NOT_EMPTY] = (
        "127.0.0.1"
    )
    port: Annotated[int, "Port to listen on; 0 takes any free port.", at_least(0)] = 8000
    token_file: Annotated[
        Path | None,
        "File with the tokens that callers may send as `Authorization: Bearer`, one a line. Empty "
        "lines and those that begin with # are skipped. Without a file, the variable "
        f"{TOKEN_VARIABLE} is read; if that is not set either, no token is needed.",
    ] = None
    origins: Annotated[
        tuple[str, ...],
        "Other sites whose pages may call the API, such as https://desk.example.",
    ] = ()
    hosts: Annotated[
        tuple[str, ...],
        "Names under which the server is called, such as desk.example; .desk.example stands for "
        "all names below it. Addresses, localhost and `host` are known without. A request with "
        "another name gets 421; with a token, only if names are given here.",
    ] = ()
    prefix: Annotated[
        str, "Path under which a proxy publishes the server; the proxy removes it."
    ] = ""
    proxies: Annotated[
        tuple[str, ...],
        "Addresses or networks of proxies, such as 127.0.0.1 or 10.0.0.0/8, whose X-Forwarded-For "
        "and X-Forwarded-Proto are trusted.",
    ] = ()
    keep_alive_seconds: Annotated[
        int, "Seconds that an idle connection stays open.", at_least(1)
    ] = 5
    connections: Annotated[
        int, "Requests at the same time; further ones get 503, but probes do not.", at_least(1)
    ] = 1024
    health_port: Annotated[
        int | None,
        "Another port, which answers only /health, /ready and /metrics; 0 takes any free port.",
        at_least(0),
    ] = None
    send_seconds: Annotated[
        float,
        "Seconds in which a caller must take its answer; with 5 s without a byte it is given up, "
        "too.",
        above(0),
    ] = 30.0
    shutdown_seconds: Annotated[
        int, "Seconds that a shutdown waits for running requests, at most.", at_least(1)
    ] = 2
    access_log: Annotated[
        bool, "Log one line per request: client, path, status and seconds, but no texts."
    ] = True

    def __post_init__(self) -> None:
        for key, port in (("port", self.port), ("health_port", self.health_port)):
            if port is not None and port > 65535:
                raise BadValue(key, port, "must be at most 65535")
        if self.prefix and not self.prefix.startswith("/"):
            raise BadValue("prefix", self.prefix, "must begin with /")
        for proxy in self.proxies:
            if not _is_network(proxy):
                raise BadValue("proxies", proxy, "must be an IP address or a network")
        for name in self.hosts:
            if not _HOST_NAME.fullmatch(name):
                raise BadValue("hosts", name, "must be a name without scheme and port")


@section
class LimitsConfig:
    """Limits of one request; beyond them it is refused with an error that names the limit."""

    texts: Annotated[int, "Texts per request.", at_least(1)] = 64
    characters: Annotated[int, "Characters per text.", at_least(1)] = 5000
    body_bytes: Annotated[int, "Bytes of the request body.", at_least(1)] = 1_000_000
    beam: Annotated[int, "Largest beam.", at_least(1)] = 50
    n_best: Annotated[int, "Most headlines per text.", at_least(1)] = 10
    price: Annotated[
        int,
        "What a request may cost, in units of about 120 microseconds of a core; see docs/serve.md.",
        at_least(1),
    ] = 250_000
    waiting: Annotated[
        int, "Texts of all callers in the queue; further ones get 503.", at_least(1)
    ] = 512
    seconds: Annotated[float, "Seconds to answer a request; after that, 504.", above(0)] = 30.0

    def __post_init__(self) -> None:
        if self.texts > self.waiting:
            raise BadValue("texts", self.texts, f"must be at most limits.waiting, {self.waiting}")


@section
class CallersConfig:
    """Limits of one caller: of a token where tokens are used, else of an address."""

    texts_in_work: Annotated[
        int | None,
        "Texts of one caller that wait or are searched; further ones get 429. None: any number.",
        at_least(1),
    ] = None
    texts_per_second: Annotated[
        float | None, "Texts that one caller may send a second, on average. None: any.", above(0)
    ] = None
    burst: Annotated[int, "Texts that one caller may send at once after a pause.", at_least(1)] = 64


@section
class BatchingConfig:
    """How texts of different callers are searched together; headlines do not depend on it."""

    window_ms: Annotated[
        float, "Milliseconds that a text waits for others to be searched with.", at_least(0)
    ] = 3.0
    texts: Annotated[int, "Most texts in a batch.", at_least(1)] = 64


@section
class ServeConfig:
    """All settings of `ledeline serve`."""

    model: Annotated[ServedModelConfig, ""] = ServedModelConfig()
    server: Annotated[ServerConfig, ""] = ServerConfig()
    limits: Annotated[LimitsConfig, ""] = LimitsConfig()
    callers: Annotated[CallersConfig, ""] = CallersConfig()
    batching: Annotated[BatchingConfig, ""] = BatchingConfig()


def find_tokens(file: Path | None) -> tuple[str, ...]:
    """The tokens that callers may send: from the file, else from the environment, else none."""
    place = TOKEN_VARIABLE if file is None else str(file)
    tokens = _read_tokens(file) if file else tuple(filter(None, [os.environ.get(place)]))
    for token in tokens:
        if len(token) < _MIN_TOKEN_LENGTH or not token.isascii() or not token.isprintable():
            raise ConfigError(
                f"{place}: a token has at least {_MIN_TOKEN_LENGTH} ASCII characters in one line; "
                "python -c 'import secrets; print(secrets.token_urlsafe())' makes one"
            )
    return tokens


def _read_tokens(file: Path) -> tuple[str, ...]:
    try:
        lines = [line.strip() for line in file.read_text(encoding="ascii").split("\n")]
    except OSError as error:
        raise ConfigError(f"{file}: the token cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{file}: a token has ASCII characters only") from None
    # A file without any must not open the server to everybody: an empty token is refused.
    return tuple(line for line in lines if line and not line.startswith("#")) or ("",)


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True
