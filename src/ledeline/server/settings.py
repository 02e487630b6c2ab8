"""The settings of `ledeline serve`: each key with its meaning, default and checks."""

import os
from pathlib import Path
from typing import Annotated, Final

from ledeline.config.search import DEVICE_DOC, PRECISION_DOC, Device, Precision
from ledeline.config.section import BadValue, above, at_least, section
from ledeline.core.errors import ConfigError

TOKEN_VARIABLE: Final = "LEDELINE_TOKEN"
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

    host: Annotated[str, "Address to listen on; 0.0.0.0 lets other machines in."] = "127.0.0.1"
    port: Annotated[int, "Port to listen on; 0 takes any free port.", at_least(0)] = 8000
    token_file: Annotated[
        Path | None,
        "File with the token that callers must send as `Authorization: Bearer`. Without a file, "
        f"the variable {TOKEN_VARIABLE} is read; if that is not set either, no token is needed.",
    ] = None
    origins: Annotated[
        tuple[str, ...],
        "Other sites whose pages may call the API, such as https://desk.example.",
    ] = ()
    prefix: Annotated[
        str, "Path under which a proxy publishes the server; the proxy removes it."
    ] = ""
    proxies: Annotated[
        tuple[str, ...],
        "Addresses of proxies whose X-Forwarded-For and X-Forwarded-Proto are trusted.",
    ] = ("127.0.0.1",)
    keep_alive_seconds: Annotated[
        int, "Seconds that an idle connection stays open.", at_least(1)
    ] = 5
    connections: Annotated[
        int, "Connections at the same time; further ones get 503.", at_least(1)
    ] = 1024
    shutdown_seconds: Annotated[
        int, "Seconds that a shutdown waits for running requests, at most.", at_least(1)
    ] = 30
    access_log: Annotated[
        bool, "Log one line per request: client, path and status, but no texts."
    ] = True

    def __post_init__(self) -> None:
        if self.port > 65535:
            raise BadValue("port", self.port, "must be at most 65535")
        if self.prefix and not self.prefix.startswith("/"):
            raise BadValue("prefix", self.prefix, "must begin with /")


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
        "What a request may cost, in units of about 70 microseconds of a core; see docs/serve.md.",
        at_least(1),
    ] = 200_000
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

    def __post_init__(self) -> None:
        if self.server.shutdown_seconds < self.limits.seconds:
            raise BadValue(
                "server.shutdown_seconds",
                self.server.shutdown_seconds,
                f"must be at least limits.seconds, {self.limits.seconds:g}, so that running "
                "requests can be answered",
            )


def find_token(file: Path | None) -> str | None:
    """The token that callers must send: from the file, else from the environment, else None."""
    if file is None:
        token, place = os.environ.get(TOKEN_VARIABLE, ""), TOKEN_VARIABLE
        if not token:
            return None
    else:
        place = str(file)
        try:
            token = file.read_text(encoding="ascii").strip()
        except OSError as error:
            raise ConfigError(f"{file}: the token cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ConfigError(f"{file}: a token has ASCII characters only") from None
    if len(token) < _MIN_TOKEN_LENGTH or not token.isascii() or not token.isprintable():
        raise ConfigError(
            f"{place}: a token has at least {_MIN_TOKEN_LENGTH} ASCII characters in one line; "
            "python -c 'import secrets; print(secrets.token_urlsafe())' makes one"
        )
    return token
