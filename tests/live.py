"""A server that really listens, and curl commands of pages as requests to it."""

import re
import shlex
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import uvicorn
from fastapi import FastAPI

TOKEN = "only-for-this-test"


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    text: str


@contextmanager
def listening(app: FastAPI, prefix: str = "") -> Iterator[str]:
    """The address of an application that listens until the end of the block."""
    config = uvicorn.Config(app, port=0, log_level="critical", ws="none", root_path=prefix)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        for _ in range(600):
            if server.started:
                break
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.05)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def fetch(request: Request | str) -> Answer:
    """What a server answers, whatever its status."""
    try:
        with urlopen(request, timeout=60) as answer:
            return Answer(answer.status, answer.headers, answer.read().decode())
    except HTTPError as error:
        with error:
            return Answer(error.code, error.headers, error.read().decode())


def curl_commands(text: str) -> list[str]:
    """The commands in a block of a shell; those that go on after a backslash are one line."""
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [line for line in lines if line.startswith("curl ")]


def curl_request(command: str, variables: Mapping[str, str] | None = None) -> Request:
    """A curl command as a request."""
    for name, value in (variables or {}).items():
        command = command.replace(f"${name}", value)
    _, *words = shlex.split(re.sub(r"\\\n\s*", "", command), comments=True)
    url, method, data, headers = "", None, None, {}
    while words:
        word = words.pop(0)
        if word == "-H":
            name, _, value = words.pop(0).partition(": ")
            headers[name] = value
        elif word == "-d":
            data = words.pop(0).encode()
        elif word == "-X":
            method = words.pop(0)
        elif not word.startswith("-"):
            url = word if "://" in word else f"http://{word}"
    return Request(url, data, headers, method=method)
