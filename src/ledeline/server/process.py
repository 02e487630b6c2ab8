"""The server process: it loads the model, listens, and stops on signals."""

import asyncio
import functools
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, Final

import uvicorn
from fastapi import FastAPI

from ledeline.core.errors import ConfigError
from ledeline.core.shipped import SHIPPED_NAME, model_folder
from ledeline.inference.headliner import Headliner
from ledeline.model.format.description import CARD
from ledeline.server.addresses import is_this_machine
from ledeline.server.app import create_app
from ledeline.server.batcher import Batcher
from ledeline.server.connection import Connection
from ledeline.server.connection_pool import ACCEPT_BURST, RESERVE, ConnectionPool
from ledeline.server.logs import LOGGING, handle_loop_error
from ledeline.server.open_files import fit_open_files
from ledeline.server.settings import ServeConfig, ServerConfig, find_tokens
from ledeline.server.turns import Turns

KERNEL_BACKLOG: Final = 1024  # connections that wait to be accepted
KERNEL_BUFFER: Final = 2**17  # bytes each way; left alone, it grows to megabytes a connection
HEALTH_CONNECTIONS: Final = 32  # at the port for probes
_GRACE_SECONDS: Final = 0.15  # for each of the last steps: answers, callers that are gone, threads
_POLL_SECONDS: Final = 0.02
# A search needs the interpreter for many short moments; another thread gives it up after so long.
_SWITCH_SECONDS: Final = 0.0005


class ServerSetup(uvicorn.Config):
    """uvicorn's configuration, with our settings and the pool of connections."""

    def __init__(self, settings: ServerConfig, pool: ConnectionPool, **options: Any) -> None:
        protocol = functools.partial(Connection, pool=pool, turns=Turns())
        super().__init__(http=protocol, **options)  # type: ignore[arg-type]
        self.settings, self.pool = settings, pool


class Server(uvicorn.Server):
    """uvicorn's server, which drains the batcher as soon as a signal comes, and ends in time.

    uvicorn would tell the application only after all requests are answered.
    """

    config: ServerSetup

    def __init__(self, config: ServerSetup, app: FastAPI, announce: Callable[[str], None]) -> None:
        super().__init__(config)
        self._app, self._announce = app, announce
        self._stop_at: float | None = None
        self.is_overdue = False  # whether something still runs although all time is up

    # --- the beginning ----------------------------------------------------------------------------

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and announce the address."""
        settings, loop = self.config.settings, asyncio.get_running_loop()
        loop.set_exception_handler(handle_loop_error)
        sockets = sockets or await _bind(settings.host, settings.port)
        try:
            health = await _bind(settings.host, settings.health_port)
        except ConfigError:
            for one in sockets:
                one.close()
            raise
        await super().startup(sockets)
        if not self.started:
            return
        pool = ConnectionPool(HEALTH_CONNECTIONS, send_seconds=settings.send_seconds)
        turns = Turns()
        for one in health:
            listener = await loop.create_server(
                lambda: Connection(
                    self.config,
                    self.server_state,
                    self.lifespan.state,
                    pool=pool,
                    turns=turns,
                    operations_only=True,
                ),
                sock=one,
                backlog=ACCEPT_BURST,
            )
            self.servers.append(listener)
        for one in (*sockets, *health):
            one.listen(KERNEL_BACKLOG)
        for one in sockets:
            self._announce(f"listening on {_address(one)}")
        for one in health:
            self._announce(f"health at {_address(one)}")

    # --- the end ----------------------------------------------------------------------------------

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Begin to shut down: refuse waiting texts, answer running ones; obey a second Ctrl-C.

        A signal can interrupt any code, so the event loop does the work.
        """
        if self.should_exit and sig == signal.SIGINT:
            _leave(128 + signal.SIGINT)
        if not self.should_exit:
            loop = asyncio.get_running_loop()
            self._stop_at = loop.time() + self.config.settings.shutdown_seconds
            loop.call_soon_threadsafe(self._drain, signal.Signals(sig).name)
        self.should_exit = True

    def _drain(self, signal_name: str) -> None:
        self._announce(f"{signal_name}: finishing what is running")
        batcher = self._batcher
        if batcher is not None:
            batcher.drain()

    @property
    def _batcher(self) -> Batcher | None:
        """What writes the headlines, once the application has started."""
        return getattr(self._app.state, "batcher", None)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002
        """Wait for answers that are on their way, but no longer than the settings allow."""
        loop = asyncio.get_running_loop()
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        if self._stop_at is None:
            self._stop_at = loop.time() + self.config.settings.shutdown_seconds
        await self._wait_until(self._stop_at)
        if self._batcher is not None:
            self._batcher.give_up()
        await self._wait_until(loop.time() + _GRACE_SECONDS)
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await self._wait_until(loop.time() + _GRACE_SECONDS)
        for task in self.server_state.tasks:
            task.cancel()
        self.is_overdue = bool(self.server_state.tasks)
        try:
            async with asyncio.timeout(_GRACE_SECONDS):
                await self.lifespan.shutdown()
        except TimeoutError:
            self.is_overdue = True

    async def _wait_until(self, time: float) -> None:
        """Wait until all requests are answered and all connections closed, or for the time."""
        loop, state = asyncio.get_running_loop(), self.server_state
        while (state.connections or state.tasks) and loop.time() < time:
            await asyncio.sleep(_POLL_SECONDS)


async def _bind(host: str, port: int | None) -> list[socket.socket]:
    """Bind an address if there is a port; an error becomes one sentence."""
    if port is None:
        return []
    loop = asyncio.get_running_loop()
    try:
        listener = await loop.create_server(asyncio.Protocol, host, port, start_serving=False)
    except OSError as error:
        known = error.errno is not None and error.errno > 0  # asyncio's own text varies
        why = os.strerror(error.errno or 0).lower() if known else error.strerror or str(error)
        raise ConfigError(f"cannot listen on {host}:{port}: {why}") from None
    sockets = [one.dup() for one in listener.sockets]
    listener.close()
    for one in sockets:  # connections inherit it
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL_BUFFER)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, KERNEL_BUFFER)
    return sockets


def _address(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _leave(status: int) -> None:
    """End the process at once, whatever still runs."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # a signal may come while it is being written to
            stream.flush()
    os._exit(status)


def serve(settings: ServeConfig, announce: Callable[[str], None]) -> None:
    """Load the model, listen, and answer requests until a signal comes."""
    tokens = find_tokens(settings.server.token_file)
    if not tokens and not is_this_machine(settings.server.host):
        announce(
            f"{settings.server.host} lets other machines in, and no token is needed; "
            "see server.token_file"
        )
    folders = settings.model.folders or (Path(SHIPPED_NAME),)
    headliner = Headliner.load(
        *folders, precision=settings.model.precision, device=settings.model.device
    )
    app = create_app(headliner, settings, tokens, _card(model_folder(folders[0])))
    gc.collect()
    gc.freeze()  # else every full collection looks at all modules again, which takes milliseconds
    sys.setswitchinterval(_SWITCH_SECONDS)
    fitting, reserve = fit_open_files(settings.server, announce)
    config = uvicorn_config(app, fitting, LOGGING, reserve)
    asyncio.run(_run(Server(config, app, announce)))


async def _run(server: Server) -> None:
    await server.serve()
    if server.is_overdue:
        _leave(0)  # without waiting for threads


def uvicorn_config(
    app: FastAPI,
    server: ServerConfig,
    logging: dict[str, Any] | None = None,
    reserve: int = RESERVE,
) -> ServerSetup:
    """Translate the `[server]` settings for uvicorn."""
    pool = ConnectionPool(server.connections, reserve, send_seconds=server.send_seconds)
    return ServerSetup(
        server,
        pool,
        app=app,
        host=server.host,
        port=server.port,
        access_log=False,  # ResponseMiddleware writes the log
        log_config=logging,
        server_header=False,
        proxy_headers=bool(server.proxies),
        forwarded_allow_ips=list(server.proxies),
        backlog=ACCEPT_BURST,
        timeout_keep_alive=server.keep_alive_seconds,
        root_path=server.prefix.rstrip("/"),
        ws="none",
    )


def _card(folder: Path) -> str | None:
    path = folder / CARD
    return path.read_text(encoding="utf-8") if path.is_file() else None
