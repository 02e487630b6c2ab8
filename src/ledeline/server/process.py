"""The server process: it loads the model, listens, and stops on signals."""

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from ledeline.core.errors import ConfigError
from ledeline.core.shipped import SHIPPED_NAME, model_folder
from ledeline.inference.headliner import Headliner
from ledeline.model.format.pack import CARD
from ledeline.server.app import create_app
from ledeline.server.settings import ServeConfig, ServerConfig, find_token

# Warnings, and a line for each request if wanted. It has the path but no text: texts are in bodies.
LOGGING: Final[dict[str, Any]] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(message)s"}},
    "handlers": {"err": {"class": "logging.StreamHandler", "formatter": "line"}},
    "loggers": {
        "ledeline.server": {"handlers": ["err"], "level": "WARNING", "propagate": False},
        "uvicorn.error": {"handlers": ["err"], "level": "WARNING", "propagate": False},
        "uvicorn.access": {"handlers": ["err"], "level": "INFO", "propagate": False},
    },
}


class _TimeoutProtocol(H11Protocol):
    """A connection that is closed if a whole request head does not arrive in time.

    uvicorn itself only limits the time between two requests.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer for the first request."""
        super().connection_made(transport)
        self._restart_timer()

    def on_response_complete(self) -> None:
        """Start the timer for the next request."""
        super().on_response_complete()
        self._restart_timer()

    def connection_lost(self, error: Exception | None) -> None:
        """Stop the timer."""
        super().connection_lost(error)
        if self._timer is not None:
            self._timer.cancel()

    def _restart_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(self.timeout_keep_alive, self._close_if_idle)

    def _close_if_idle(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


class Server(uvicorn.Server):
    """uvicorn's server, which drains the batcher as soon as a signal comes.

    uvicorn would tell the application only after all requests are answered.
    """

    def __init__(
        self, config: uvicorn.Config, app: FastAPI, announce: Callable[[str], None]
    ) -> None:
        super().__init__(config)
        self._app, self._announce = app, announce

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Begin to shut down: refuse waiting texts, answer running ones; obey a second Ctrl-C.

        A signal can interrupt any code, so the event loop does the work.
        """
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True
        asyncio.get_running_loop().call_soon_threadsafe(self._drain, signal.Signals(sig).name)

    def _drain(self, signal_name: str) -> None:
        self._announce(f"{signal_name}: finishing what is running")
        batcher = getattr(self._app.state, "batcher", None)
        if batcher is not None:
            batcher.drain()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and announce the address."""
        await super().startup(sockets or await self._bind())
        if self.started:
            for server in self.servers:
                for one in server.sockets:
                    host, port = one.getsockname()[:2]
                    shown = f"[{host}]" if ":" in host else host
                    self._announce(f"listening on http://{shown}:{port}")

    async def _bind(self) -> list[socket.socket]:
        """Bind the address; an error becomes one sentence."""
        host, port = self.config.host, self.config.port
        loop = asyncio.get_running_loop()
        try:
            listener = await loop.create_server(asyncio.Protocol, host, port, start_serving=False)
        except OSError as error:
            known = error.errno is not None and error.errno > 0  # asyncio's own text varies
            why = os.strerror(error.errno or 0).lower() if known else error.strerror or str(error)
            raise ConfigError(f"cannot listen on {host}:{port}: {why}") from None
        sockets = [one.dup() for one in listener.sockets]
        listener.close()
        return sockets


def serve(settings: ServeConfig, announce: Callable[[str], None]) -> None:
    """Load the model, listen, and answer requests until a signal comes."""
    token = find_token(settings.server.token_file)
    folders = settings.model.folders or (Path(SHIPPED_NAME),)
    headliner = Headliner.load(
        *folders, precision=settings.model.precision, device=settings.model.device
    )
    app = create_app(headliner, settings, token, _card(model_folder(folders[0])))
    config = uvicorn_config(app, settings.server, LOGGING)
    server = Server(config, app, announce)
    asyncio.run(server.serve())
    if server.force_exit:
        os._exit(128 + signal.SIGINT)  # does not wait for the search thread


def uvicorn_config(
    app: FastAPI, server: ServerConfig, logging: dict[str, Any] | None = None
) -> uvicorn.Config:
    """Translate the `[server]` settings for uvicorn."""
    return uvicorn.Config(
        app,
        host=server.host,
        port=server.port,
        access_log=server.access_log,
        log_config=logging,
        server_header=False,
        forwarded_allow_ips=list(server.proxies),
        limit_concurrency=server.connections,
        timeout_keep_alive=server.keep_alive_seconds,
        timeout_graceful_shutdown=server.shutdown_seconds,
        root_path=server.prefix.rstrip("/"),
        http=_TimeoutProtocol,
        ws="none",
    )


def _card(folder: Path) -> str | None:
    path = folder / CARD
    return path.read_text(encoding="utf-8") if path.is_file() else None
