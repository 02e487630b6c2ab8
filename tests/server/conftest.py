"""A server in a thread of this process, with everything a real one has but its signals."""

import asyncio
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

pytest.importorskip("uvicorn")

from fastapi import FastAPI

from ledeline.inference.generation import Generation
from ledeline.inference.headliner import DEFAULT_OPTIONS, Headliner, Options
from ledeline.inference.source_text import SourceText
from ledeline.server.app import create_app
from ledeline.server.process import Server, uvicorn_config
from ledeline.server.settings import ServeConfig, ServerConfig
from live import TOKEN, listening
from serve_process import command

if TYPE_CHECKING:
    from browser import Log, Page

PATIENCE = 60  # seconds until a test gives up; nothing is expected to take as long


class Held(Headliner):
    """A headliner that tells what it is given, waits until it may go on, and fails if told to."""

    def __init__(self, other: Headliner) -> None:
        super().__init__(other.models, other.precision)
        self.batches: list[list[str | None]] = []
        self.options: list[Options] = []
        self.go = threading.Event()
        self.go.set()
        self.poison: object = None

    def begin(self, ledes: Sequence[SourceText], options: Options = DEFAULT_OPTIONS) -> Generation:
        texts = [one.text for one in ledes]
        self.batches.append(texts)
        self.options.append(options)
        generation = super().begin(ledes, options)
        advance = generation.advance

        def held() -> None:
            assert self.go.wait(PATIENCE)
            if self.poison in texts:
                raise ValueError(f"cannot write about {self.poison}")
            advance()

        generation.advance = held  # type: ignore[method-assign]
        return generation


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]  # names in small letters
    body: bytes

    @property
    def json(self) -> Any:
        assert self.headers["content-type"] == "application/json"
        return json.loads(self.body)

    @property
    def detail(self) -> str:
        """Why there is no answer: one sentence, and nothing else."""
        assert list(self.json) == ["detail"]
        sentence = self.json["detail"]
        assert isinstance(sentence, str)
        assert sentence
        assert "\n" not in sentence
        assert "Traceback" not in sentence
        return sentence


class Running(NamedTuple):
    """A server that listens."""

    port: int
    app: Any
    headliner: Held
    server: Server

    def ask(
        self,
        path: str,
        asked: Any = None,
        *,
        method: str | None = None,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Send what is asked as JSON, or a body as it is; without either, GET."""
        fields = dict(headers or {})
        if asked is not None:
            body = json.dumps(asked).encode()
            fields.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            way = method or ("GET" if body is None else "POST")
            connection.request(way, path, body, fields)
            return _read(connection.getresponse())
        finally:
            connection.close()

    def headlines(self, asked: Any, **more: Any) -> Answer:
        return self.ask("/v1/headlines", asked, **more)

    def open(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def raw(self, *parts: bytes) -> Answer | None:
        """Send bytes; the first answer to them, or None where the connection just ends."""
        with self.open() as caller:
            with suppress(BrokenPipeError, ConnectionResetError):
                for part in parts:
                    caller.sendall(part)
            return read_answer(caller)

    @property
    def load(self) -> tuple[int, int]:
        return tuple(self.app.state.batcher.load)

    def asking(self, asked: Any, **more: Any) -> "Asking":
        """The same as `headlines`, in a thread."""
        return Asking(lambda: self.headlines(asked, **more))


class Asking:
    """A request on its way."""

    def __init__(self, ask: Callable[[], Answer]) -> None:
        self._found: list[Answer] = []
        self._thread = threading.Thread(target=lambda: self._found.append(ask()))
        self._thread.start()

    @property
    def answer(self) -> Answer:
        self._thread.join(PATIENCE)
        assert self._found, "no answer"
        return self._found[0]


def _read(response: http.client.HTTPResponse) -> Answer:
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, headers, response.read())


def read_answer(caller: socket.socket) -> Answer | None:
    response = http.client.HTTPResponse(caller)
    try:
        response.begin()
        return _read(response)
    except (http.client.BadStatusLine, ConnectionResetError):
        return None
    finally:
        response.close()


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what will surely be; how long it takes does not matter."""
    ends = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < ends, "it did not happen"
        time.sleep(0.005)


@contextmanager
def _served(headliner: Headliner, settings: ServeConfig, token: str | None) -> Iterator[Running]:
    held = Held(headliner)
    app = create_app(held, settings, () if token is None else (token,))
    said: list[str] = []
    server = Server(uvicorn_config(app, settings.server), app, said.append)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    try:
        wait_until(lambda: bool(said) or not thread.is_alive())
        held.batches.clear()
        held.options.clear()
        yield Running(int(said[0].rpartition(":")[2]), app, held, server)
    finally:
        held.go.set()
        server.should_exit = True
        thread.join(PATIENCE)
        assert not thread.is_alive()


@pytest.fixture(scope="session")
def headliner(model_folder: Path) -> Headliner:
    return Headliner.load(model_folder, device="cpu")


@pytest.fixture(scope="session")
def serve(headliner: Headliner) -> Callable[..., Any]:
    """`with serve(limits=..., batching=..., token=...) as server:`, any section of the settings."""

    def serving(
        token: str | None = None,
        server: ServerConfig | None = None,
        log: bool = False,
        **sections: Any,
    ) -> Any:
        address = replace(server or ServerConfig(), port=0, access_log=log)
        settings = ServeConfig(server=address, **sections)
        return _served(headliner, settings, token)

    return serving


@pytest.fixture(scope="session")
def until() -> Callable[[Callable[[], bool]], None]:
    return wait_until


@pytest.fixture(scope="session")
def answer_from() -> Callable[[socket.socket], Answer | None]:
    return read_answer


@pytest.fixture(scope="module")
def app(headliner: Headliner) -> FastAPI:
    """An application that asks for the token of `live`."""
    return create_app(headliner, tokens=(TOKEN,))


@pytest.fixture(scope="module")
def base(app: FastAPI) -> Iterator[str]:
    """Where it listens."""
    with listening(app) as address:
        yield address


@pytest.fixture
def serving(model_folder: Path) -> Callable[..., Any]:
    """`ledeline serve` with the small model, at any port."""

    def start(*arguments: object, **environment: Any) -> Any:
        return command("serve", "--model", model_folder, "--port", 0, *arguments, **environment)

    return start


@pytest.fixture
def page(blank: "Page", log: "Log", server: Running) -> Iterator["Page"]:
    """The page of the module's server; afterwards nothing is amiss, and all was asked of it."""
    from server_page import address, visit

    visit(blank, address(server))
    yield blank
    assert log.complaints == []
    assert all(one.startswith(address(server)) for one in log.addresses)
    assert len(log.addresses) >= 5
