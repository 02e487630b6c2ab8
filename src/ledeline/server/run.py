"""The server as a process: it listens, and ends well."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final

import uvicorn
from fastapi import FastAPI

from ledeline.errors import ConfigError
from ledeline.headliner import Headliner
from ledeline.model.files import SHIPPED_NAME, found
from ledeline.server.app import create_app
from ledeline.server.settings import ServeConfig, find_token

CARD: Final = "card.md"
# Warnings and, if wanted, a line for each request; paths only, for texts are in bodies.
LOGGING: Final = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(message)s"}},
    "handlers": {"err": {"class": "logging.StreamHandler", "formatter": "line"}},
    "loggers": {
        "uvicorn.error": {"handlers": ["err"], "level": "WARNING", "propagate": False},
        "uvicorn.access": {"handlers": ["err"], "level": "INFO", "propagate": False},
    },
}


class _Server(uvicorn.Server):
    """Tells the application at once that the end is near, not when all callers are done."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, tell: Callable[[str], None]) -> None:
        super().__init__(config)
        self._app, self._tell = app, tell

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal: what waits is sent away, what runs is answered."""
        self._tell(f"{signal.Signals(sig).name}: finishes what is running")
        batcher = getattr(self._app.state, "batcher", None)
        if batcher is not None:
            batcher.drain()
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        """Listen, and say where."""
        await super().startup(sockets)  # type: ignore[arg-type]
        if self.started:
            for server in self.servers:
                for one in server.sockets:
                    host, port = one.getsockname()[:2]
                    shown = f"[{host}]" if ":" in host else host
                    self._tell(f"listens on http://{shown}:{port}")


def serve(settings: ServeConfig, tell: Callable[[str], None]) -> None:
    """Load the model, listen, answer until a signal comes."""
    token = find_token(settings.server.token_file)
    folders = settings.model.folders or (Path(SHIPPED_NAME),)
    headliner = Headliner.load(
        *folders, precision=settings.model.precision, device=settings.model.device
    )
    app = create_app(headliner, settings, token, _card(found(folders[0])))
    server = settings.server
    config = uvicorn.Config(
        app,
        host=server.host,
        port=server.port,
        access_log=server.access_log,
        log_config=LOGGING,
        server_header=False,
        forwarded_allow_ips=list(server.proxies),
        limit_concurrency=server.connections,
        timeout_keep_alive=server.keep_alive_seconds,
        timeout_graceful_shutdown=server.shutdown_seconds,
        ws="none",
    )
    try:
        asyncio.run(_Server(config, app, tell).serve())
    except SystemExit:  # what uvicorn does where it cannot listen; it has logged why
        raise ConfigError(f"cannot listen on {server.host}:{server.port}; name another") from None


def _card(folder: Path) -> str | None:
    path = folder / CARD
    return path.read_text(encoding="utf-8") if path.is_file() else None
