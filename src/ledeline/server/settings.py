"""The settings of `ledeline serve`: what each key means, its default, and what cannot be."""

import os
from pathlib import Path
from typing import Annotated, Final, Literal

from ledeline.config.section import BadValue, above, at_least, section
from ledeline.core.errors import ConfigError

TOKEN_VARIABLE: Final = "LEDELINE_TOKEN"
_SHORTEST_TOKEN: Final = 16  # characters; less can be tried out


@section
class Served:
    """What writes the headlines."""

    folders: Annotated[
        tuple[Path, ...], "Model folders; several make an ensemble, none is the shipped model."
    ] = ()
    precision: Annotated[
        Literal["auto", "float32", "float16", "int8"],
        "Of the numbers of the model; float16 is for a GPU, int8 for a CPU.",
    ] = "auto"
    device: Annotated[
        Literal["auto", "cpu", "cuda"], "auto: a GPU where there is one, else the CPU."
    ] = "auto"


@section
class Address:
    """Where it listens, and who may come."""

    host: Annotated[str, "Address to listen on; 0.0.0.0 lets other machines in."] = "127.0.0.1"
    port: Annotated[int, "Port to listen on; 0: any that is free.", at_least(0)] = 8000
    token_file: Annotated[
        Path | None,
        f"File with the token that callers must send as `Authorization: Bearer`; without it the "
        f"variable {TOKEN_VARIABLE} is looked at, and without that nobody is asked.",
    ] = None
    origins: Annotated[
        tuple[str, ...],
        "Origins of other sites whose pages may call the API, such as https://desk.example.",
    ] = ()
    prefix: Annotated[str, "Path that a proxy takes off before it passes a request on."] = ""
    proxies: Annotated[
        tuple[str, ...], "Addresses of proxies whose X-Forwarded-For and -Proto are believed."
    ] = ("127.0.0.1",)
    keep_alive_seconds: Annotated[
        int, "Seconds that a connection without a request stays open.", at_least(1)
    ] = 5
    connections: Annotated[int, "Connections at a time; more are answered 503.", at_least(1)] = 1024
    shutdown_seconds: Annotated[
        int, "Seconds that a stop waits for what is running, at most.", at_least(1)
    ] = 30
    access_log: Annotated[bool, "A line for each request: caller, path, status; no texts."] = True

    def __post_init__(self) -> None:
        if self.port > 65535:
            raise BadValue("port", self.port, "must be at most 65535")
        if self.prefix and not self.prefix.startswith("/"):
            raise BadValue("prefix", self.prefix, "must begin with /")


@section
class Limits:
    """What one request may ask for; more is refused with a sentence that names the limit."""

    texts: Annotated[int, "Texts of a request.", at_least(1)] = 64
    characters: Annotated[int, "Characters of a text.", at_least(1)] = 5000
    body_bytes: Annotated[int, "Bytes of a request's body.", at_least(1)] = 1_000_000
    beam: Annotated[int, "Beam of the search.", at_least(1)] = 50
    n_best: Annotated[int, "Headlines for a text.", at_least(1)] = 10
    waiting: Annotated[int, "Texts that wait, of all callers; beyond that: 503.", at_least(1)] = 512
    seconds: Annotated[float, "Seconds until a request must be answered; else 504.", above(0)] = (
        30.0
    )

    def __post_init__(self) -> None:
        if self.texts > self.waiting:
            raise BadValue("texts", self.texts, f"must be at most limits.waiting, {self.waiting}")


@section
class Batching:
    """How texts of different callers are worked on together; no answer depends on it."""

    window_ms: Annotated[
        float,
        "Milliseconds that texts wait for others before a batch that is not full; up to five times "
        "that as long as others keep coming.",
        at_least(0),
    ] = 3.0
    texts: Annotated[int, "Texts that are worked on together, at most.", at_least(1)] = 64


@section
class ServeConfig:
    """Everything `ledeline serve` needs."""

    model: Annotated[Served, ""] = Served()
    server: Annotated[Address, ""] = Address()
    limits: Annotated[Limits, ""] = Limits()
    batching: Annotated[Batching, ""] = Batching()

    def __post_init__(self) -> None:
        if self.server.shutdown_seconds < self.limits.seconds:
            raise BadValue(
                "server.shutdown_seconds",
                self.server.shutdown_seconds,
                f"must be at least limits.seconds, {self.limits.seconds:g}, so that what runs is "
                "answered",
            )


def find_token(file: Path | None) -> str | None:
    """The token that callers must know: from the file, else from the environment, else none."""
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
            raise ConfigError(f"{file}: a token has letters, digits and ASCII signs only") from None
    if len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise ConfigError(
            f"{place}: a token has at least {_SHORTEST_TOKEN} ASCII characters in one line; "
            "python -c 'import secrets; print(secrets.token_urlsafe())' makes one"
        )
    return token
