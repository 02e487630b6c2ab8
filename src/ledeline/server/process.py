"""The server as a process: it listens, and ends well."""

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
from ledeline.server.settings import Address, ServeConfig, find_token

# Warnings and, if wanted, a line for each request; paths only, for texts are in bodies.
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


class _Connection(H11Protocol):
    """A connection that is closed where no request comes: none at all, or not to its end."""

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def on_response_complete(self) -> None:
        """Wait for the next one."""
        super().on_response_complete()
        self._wait()

    def connection_lost(self, error: Exception | None) -> None:
        """Wait no more."""
        super().connection_lost(error)
        if self._patience is not None:
            self._patience.cancel()

    def _wait(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
        self._patience = self.loop.call_later(self.timeout_keep_alive, self._give_up)

    def _give_up(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


class Server(uvicorn.Server):
    """Tells the application at once that the end is near, not when all callers are done."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, tell: Callable[[str], None]) -> None:
        super().__init__(config)
        self._app, self._tell = app, tell

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """A signal: what waits is sent away, what runs is answered; a second Ctrl-C is obeyed.

        It may come in the midst of anything, so the event loop does the rest.
        """
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True
        asyncio.get_running_loop().call_soon_threadsafe(self._finish, signal.Signals(sig).name)

    def _finish(self, name: str) -> None:
        self._tell(f"{name}: finishes what is running")
        batcher = getattr(self._app.state, "batcher", None)
        if batcher is not None:
            batcher.drain()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say where."""
        await super().startup(sockets or await self._bound())
        if self.started:
            for server in self.servers:
                for one in server.sockets:
                    host, port = one.getsockname()[:2]
                    shown = f"[{host}]" if ":" in host else host
                    self._tell(f"listens on http://{shown}:{port}")

    async def _bound(self) -> list[socket.socket]:
        """Sockets at the address; what is wrong with it is told in one sentence."""
        host, port = self.config.host, self.config.port
        loop = asyncio.get_running_loop()
        try:
            there = await loop.create_server(asyncio.Protocol, host, port, start_serving=False)
        except OSError as error:
            known = error.errno is not None and error.errno > 0  # asyncio's own words vary
            why = os.strerror(error.errno or 0).lower() if known else error.strerror or str(error)
            raise ConfigError(f"cannot listen on {host}:{port}: {why}") from None
        sockets = [one.dup() for one in there.sockets]
        there.close()
        return sockets


def serve(settings: ServeConfig, tell: Callable[[str], None]) -> None:
    """Load the model, listen, answer until a signal comes."""
    token = find_token(settings.server.token_file)
    folders = settings.model.folders or (Path(SHIPPED_NAME),)
    headliner = Headliner.load(
        *folders, precision=settings.model.precision, device=settings.model.device
    )
    app = create_app(headliner, settings, token, _card(model_folder(folders[0])))
    config = configured(app, settings.server, LOGGING)
    server = Server(config, app, tell)
    asyncio.run(server.serve())
    if server.force_exit:
        os._exit(128 + signal.SIGINT)  # without waiting for the thread that still searches


def configured(
    app: FastAPI, server: Address, logging: dict[str, Any] | None = None
) -> uvicorn.Config:
    """How uvicorn runs the application."""
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
        http=_Connection,
        ws="none",
    )


def _card(folder: Path) -> str | None:
    path = folder / CARD
    return path.read_text(encoding="utf-8") if path.is_file() else None
