"""What a server meets that anybody can reach, over real sockets; afterwards it is alive."""

import gzip
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from ledeline.server.settings import LimitsConfig, ServerConfig

pytestmark = pytest.mark.usefixtures("one_thread")

ONE = {"texts": ["Rain fell."], "beam": 1, "max_length": 3}
JSON = "application/json"
NOT_JSON = "the body is not JSON in UTF-8"
NO_OBJECT = "the body: must be a JSON object, sent as application/json"
TOO_LARGE = "the body has more than 1000000 bytes, which is the limit"
MEGABYTES = b" " * 10_000_000


@pytest.fixture(scope="module")
def running(serve) -> Iterator[Any]:
    with serve() as server:
        yield server


@pytest.fixture
def server(running, until) -> Iterator[Any]:
    """The server, which must be as well afterwards as it was before."""
    yield running
    assert running.headlines(ONE).status == 200
    until(lambda: running.load == (0, 0))


def head(*fields: str, way: str = "POST /v1/headlines HTTP/1.1") -> bytes:
    return "\r\n".join((way, "Host: localhost", *fields, "", "")).encode("latin-1")


def post(body: bytes, kind: str | None = JSON, *fields: str) -> bytes:
    named = () if kind is None else (f"Content-Type: {kind}",)
    return head(*named, f"Content-Length: {len(body)}", *fields) + body


def chunked(*parts: bytes) -> Iterator[bytes]:
    yield head(f"Content-Type: {JSON}", "Transfer-Encoding: chunked")
    for part in parts:
        yield b"%x\r\n%s\r\n" % (len(part), part)
    yield b"0\r\n\r\n"


def asked(**more: Any) -> bytes:
    return json.dumps({**ONE, **more}).encode()


def with_text(text: bytes) -> bytes:
    return b'{"beam": 1, "max_length": 3, "texts": ["%s"]}' % text


def with_beam(number: bytes) -> bytes:
    return b'{"texts": ["Rain fell."], "beam": %s}' % number


# What is sent, and the status and the beginning of the sentence that come back.
BODIES: dict[str, tuple[bytes, int, str]] = {
    "10 MB": (MEGABYTES, 413, TOO_LARGE),
    "100,000 brackets": (b"[" * 100_000, 400, NOT_JSON),
    "100,000 brackets, closed": (b"[" * 100_000 + b"]" * 100_000, 400, NOT_JSON),
    "100,000 brackets as a text": (
        b'{"texts": [' + b"[" * 100_000 + b"]" * 100_000 + b"]}",
        400,
        NOT_JSON,
    ),
    "100,000 nested objects": (b'{"a":' * 100_000, 400, NOT_JSON),
    "bytes that are not UTF-8": (with_text(b"Rain \xff\xfe fell."), 400, NOT_JSON),
    "UTF-8 cut off": (with_text(b"Rain \xe2\x82"), 400, NOT_JSON),
    "a NUL byte in a text": (with_text(b"Rain \x00 fell."), 400, NOT_JSON),
    "nothing but NUL bytes": (b"\x00" * 100, 400, NOT_JSON),
    "UTF-16": (asked().decode().encode("utf-16"), 400, NOT_JSON),
    "UTF-16 without a mark": (asked().decode().encode("utf-16-le"), 400, NOT_JSON),
    "UTF-32": (asked().decode().encode("utf-32"), 400, NOT_JSON),
    "a mark before UTF-8": (asked().decode().encode("utf-8-sig"), 400, NOT_JSON),
    "half a character, escaped": (
        with_text(rb"Rain \ud800 fell."),
        422,
        "texts.0: is not valid Unicode",
    ),
    "half a character as a name": (
        rb'{"texts": ["a"], "\udfff": 1}',
        422,
        "the body: is not valid Unicode",
    ),
    "10,000 words": (asked(texts=["word " * 10_000]), 422, "texts.0: is longer than 5000"),
    "a whole number of 400 digits": (with_beam(b"9" * 400), 422, "beam: must be at most 50"),
    "minus such a number": (with_beam(b"-" + b"9" * 400), 422, "beam: must be at least 1"),
    "a whole number of 100,000 digits": (with_beam(b"9" * 100_000), 400, NOT_JSON),
    "1e400": (with_beam(b"1e400"), 422, "beam: must be a whole number"),
    "NaN": (with_beam(b"NaN"), 422, "beam: must be a whole number"),
    "-Infinity": (with_beam(b"-Infinity"), 422, "beam: must be a whole number"),
    "a key twice, the last is wrong": (b'{"texts": ["a"], "texts": 1}', 422, "texts: must be a"),
    "a name of 900,000 characters": (
        b'{"texts": ["a"], "%s": 1}' % (b"b" * 900_000),
        422,
        "b" * 60 + ": there is",
    ),
    "HTML as a name": (b'{"texts": ["a"], "<script>": 1}', 422, "<script>: there is no such field"),
    "a name of Python's": (b'{"texts": ["a"], "__class__": 1}', 422, "__class__: there is no"),
    "nothing": (b"", 422, "the body: is missing"),
    "a space": (b" ", 400, NOT_JSON),
    "null": (b"null", 422, "the body: "),
    "a number": (b"1", 422, NO_OBJECT),
    "JSON cut off": (asked()[:-1], 400, NOT_JSON),
    "JSON and more": (asked() + b"x", 400, NOT_JSON),
    "gzip": (gzip.compress(asked()), 400, NOT_JSON),
    "100,000 texts": (asked(texts=["a"] * 100_000), 422, "texts: has 100000, and 64 is the limit"),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies(server, name: str) -> None:
    body, status, sentence = BODIES[name]
    found = server.raw(post(body))
    assert found is not None
    assert found.status == status
    assert found.detail.startswith(sentence)
    assert len(found.body) < 500
    assert found.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "multipart/form-data; boundary=x", "json", ""]
)
def test_content_types(server, kind: str | None) -> None:
    found = server.raw(post(asked(), kind))
    assert (found.status, found.detail) == (422, NO_OBJECT)


TEXTS = {
    "right-to-left marks": "\u202eRain\u202c \u200ffell\u2066.",
    "HTML": "<img src=x onerror=alert(1)> Rain & 'snow' \"fell\".",
    "NUL, escaped": "Rain \x00 fell.",
    "line ends": "Rain\r\nSet-Cookie: a=b\u2028\u2029fell.",
    "words up to the limit": "word " * 1000,
    "one word up to the limit": "x" * 5000,
    "signs put together": "e\u0301" * 100 + "\u0300" * 1000,
    "beyond the first plane": "😀🎉𝔘 fell.",
    "escapes of a terminal": "\x1b[31mRain\x07 fell.",
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts_come_back_as_they_are(server, name: str) -> None:
    text = TEXTS[name]
    found = server.raw(post(asked(texts=[text])))
    assert found.status == 200
    assert found.json["headlines"][0]["source"] == text.rstrip("\r\n")
    assert found.headers["content-type"] == JSON
    assert found.headers["x-content-type-options"] == "nosniff"
    assert found.body.isascii()


def test_a_long_text_says_that_it_was_cut(server) -> None:
    (found,) = server.headlines({**ONE, "texts": ["word " * 1000]}).json["headlines"]
    assert "cut" in [one["kind"] for one in found["warnings"]]


def test_the_last_of_two_keys_counts(server) -> None:
    found = server.raw(post(b'{"texts": ["a"], "beam": 1, "texts": ["b"]}'))
    assert [one["source"] for one in found.json["headlines"]] == ["b"]


# --- bodies that are too large ------------------------------------------------------------------


@pytest.mark.parametrize("way", ["with its length", "in chunks"])
def test_a_caller_that_sends_10_megabytes_can_send_all_and_read_why(
    server, answer_from, way: str
) -> None:
    parts = chunked(*[MEGABYTES[:100_000]] * 100) if way == "in chunks" else [post(MEGABYTES)]
    with server.open() as caller:
        for part in parts:
            caller.sendall(part)  # a connection that is closed meanwhile would be an error here
        found = answer_from(caller)
    assert (found.status, found.detail) == (413, TOO_LARGE)
    assert found.headers["connection"] == "close"


def test_chunks_without_end(server) -> None:
    with server.open() as caller, suppress(BrokenPipeError, ConnectionResetError):
        caller.sendall(next(chunked()))
        for _ in range(10_000):  # a gigabyte, if it were taken
            caller.sendall(b"%x\r\n%s\r\n" % (100_000, MEGABYTES[:100_000]))
        pytest.fail("all of it was taken")


def test_a_caller_that_asks_before_it_sends_is_told_at_once(server) -> None:
    found = server.raw(head("Content-Length: 2000000", "Expect: 100-continue"))
    assert (found.status, found.detail) == (413, TOO_LARGE)


def test_a_caller_that_asks_before_it_sends_what_it_may(server, answer_from) -> None:
    body = asked()
    fields = (f"Content-Type: {JSON}", f"Content-Length: {len(body)}", "Expect: 100-continue")
    with server.open() as caller:
        caller.sendall(head(*fields))
        assert caller.recv(1000).startswith(b"HTTP/1.1 100")
        caller.sendall(body)
        assert answer_from(caller).status == 200


def test_a_body_without_the_token_is_not_looked_at(serve, answer_from) -> None:
    with serve(token="a-token-that-nobody-guesses") as server, server.open() as caller:
        caller.sendall(post(MEGABYTES))
        assert answer_from(caller).status == 401


# --- HTTP itself --------------------------------------------------------------------------------

# Here it is the connection that answers, or the router.
HEADS: dict[str, tuple[bytes, int]] = {
    "a header of 1 MB": (head("X: " + "x" * 1_000_000), 400),
    "200,000 headers": (head(*["X: x"] * 200_000), 400),
    "a path of 10 kB": (head(way=f"GET /{'x' * 10_000} HTTP/1.1"), 404),
    "a path of 60 kB": (head(way=f"GET /{'x' * 60_000} HTTP/1.1"), 400),
    "a path of 1 MB": (head(way=f"GET /{'x' * 1_000_000} HTTP/1.1"), 400),
    "line ends in a path": (head(way="GET /%0d%0aSet-Cookie:%20a=b HTTP/1.1"), 404),
    "NUL in a header": (head("X: \x00"), 400),
    "a header over two lines": (head("X: a\r\n b", way="GET /health HTTP/1.1"), 200),
    "a header without a name": (head(": x"), 400),
    "a space before the colon": (head("Content-Length : 5"), 400),
    "no host": (b"GET /health HTTP/1.1\r\n\r\n", 400),
    "two hosts": (head("Host: there", way="GET /health HTTP/1.1"), 400),
    "two lengths": (head("Content-Length: 5", "Content-Length: 6"), 400),
    "a length below zero": (head("Content-Length: -1"), 400),
    "a length that is no number": (head("Content-Length: many"), 400),
    "a length of 100 digits": (head("Content-Length: " + "9" * 100), 400),
    "an unknown transfer encoding": (head("Transfer-Encoding: gzip, chunked"), 400),
    "chunks that are none": (head("Transfer-Encoding: chunked") + b"many\r\n", 400),
    "HTTP/0.9": (b"GET /\r\n\r\n", 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 404),
    "HTTP/9.9": (head(way="GET /health HTTP/9.9"), 200),
    "TLS": (bytes.fromhex("16030100a5010000a10303") + b"\x00" * 160, 400),
    "a method that is none": (head(way="BREW /health HTTP/1.1"), 405),
    "another site in the path": (head(way="GET http://other.example/health HTTP/1.1"), 404),
    "a web socket": (
        head("Connection: Upgrade", "Upgrade: websocket", way="GET /health HTTP/1.1"),
        200,
    ),
    "CONNECT": (head(way="CONNECT other.example:443 HTTP/1.1"), 404),
    "an asterisk": (head(way="OPTIONS * HTTP/1.1"), 404),
    "a forged sender": (
        head("X-Forwarded-For: <script>, , 999.9.9.9", way="GET /health HTTP/1.1"),
        200,
    ),
}


@pytest.mark.parametrize("name", HEADS)
def test_heads(server, name: str) -> None:
    sent, status = HEADS[name]
    found = server.raw(sent)
    if found is None:  # ended before the caller had sent all of it
        assert len(sent) > 500_000
        return
    assert found.status == status
    assert "set-cookie" not in found.headers
    assert b"Traceback" not in found.body


def test_a_host_that_is_html_stays_text(server) -> None:
    for path in ("/docs", "/", "/openapi.json", "/nothing"):
        sent = f'GET {path} HTTP/1.1\r\nHost: "><script>x</script>\r\n\r\n'
        found = server.raw(sent.encode())
        assert found.status == 421
        assert "script" not in found.headers.get("location", "")
        assert b"<script>x" not in found.body


def test_an_http_1_0_caller_is_answered_and_left(server) -> None:
    body = asked()
    sent = f"POST /v1/headlines HTTP/1.0\r\nContent-Type: {JSON}\r\nContent-Length: {len(body)}"
    with server.open() as caller:
        caller.sendall(sent.encode() + b"\r\n\r\n" + body)
        found = everything(caller)  # it ends by itself
    assert found.startswith(b"HTTP/1.1 200 ")
    assert found.endswith(b"]}]}")


def test_requests_sent_together_are_answered_one_after_the_other(server) -> None:
    wanted = ["first", "second", "third"]
    with server.open() as caller:
        caller.sendall(
            b"".join(post(asked(texts=[text])) for text in wanted)
            + head("Connection: close", way="GET /health HTTP/1.1")
        )
        found = everything(caller)
    answers = found.split(b"HTTP/1.1 200 OK")[1:]
    assert len(answers) == 4
    for text, answer in zip(wanted, answers, strict=False):
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["headlines"][0]["source"] == text


def test_a_length_beside_chunks_is_refused_and_smuggles_nothing(server) -> None:
    hidden = head(way="GET /metrics HTTP/1.1")
    for way in ("POST /v1/headlines HTTP/1.1", "GET /health HTTP/1.0"):
        sent = head("Content-Length: 4", "Transfer-Encoding: chunked", way=way)
        with server.open() as caller:
            caller.sendall(sent + b"0\r\n\r\n" + hidden)
            found = everything(caller)  # the connection is closed, too
        assert found.count(b"HTTP/1.1 ") == 1
        assert found.startswith(b"HTTP/1.1 400 ")
        assert b"Content-Length and Transfer-Encoding cannot be sent together" in found
        assert b"ledeline_requests" not in found


def everything(caller: socket.socket) -> bytes:
    found = b""
    with suppress(ConnectionResetError):
        while piece := caller.recv(65536):
            found += piece
    return found


# --- slow ones, and many ------------------------------------------------------------------------


class TestSlow:
    def test_a_body_byte_by_byte_is_cut_off_while_others_are_served(self, serve) -> None:
        with serve(limits=LimitsConfig(seconds=2.0)) as server, server.open() as slow:
            slow.sendall(head(f"Content-Type: {JSON}", "Content-Length: 1000"))
            slow.setblocking(False)
            found, served = b"", 0
            began = time.monotonic()
            while not found.endswith(b"}"):
                assert time.monotonic() < began + 60
                with suppress(BlockingIOError):
                    found += slow.recv(65536)
                with suppress(BrokenPipeError, ConnectionResetError):
                    slow.sendall(b" ")
                served += server.headlines(ONE).status == 200
            assert served
            assert found.startswith(b"HTTP/1.1 408 ")
            assert b"connection: close" in found
            detail = json.loads(found.partition(b"\r\n\r\n")[2])["detail"]
            assert detail == "the body did not arrive within 2 s"

    def test_a_head_that_does_not_end(self, serve) -> None:
        address = ServerConfig(keep_alive_seconds=1)
        with serve(server=address) as server, server.open() as slow:
            slow.sendall(b"POST /v1/headlines HTTP/1.1\r\nHost: ")
            with suppress(BrokenPipeError, ConnectionResetError):
                for _ in range(600):
                    slow.sendall(b"x")
                    time.sleep(0.1)
                pytest.fail("it was waited for")
            assert server.headlines(ONE).status == 200

    def test_a_head_that_does_not_end_after_a_late_answer(self, serve, answer_from, until) -> None:
        address = ServerConfig(keep_alive_seconds=1)
        with serve(server=address) as server, server.open() as slow:
            server.headliner.go.clear()
            slow.sendall(post(asked()))
            began = time.monotonic()
            until(lambda: server.load == (0, 1) and time.monotonic() > began + 1.2)
            server.headliner.go.set()
            assert answer_from(slow).status == 200
            with suppress(BrokenPipeError, ConnectionResetError):
                for _ in range(600):
                    slow.sendall(b"G")
                    time.sleep(0.1)
                pytest.fail("it was waited for")

    def test_200_connections_that_say_nothing_are_closed(self, serve, until) -> None:
        with serve(server=ServerConfig(keep_alive_seconds=1)) as server, ExitStack() as stack:
            idle = [stack.enter_context(server.open()) for _ in range(200)]
            assert server.headlines(ONE).status == 200
            for one in idle:
                assert one.recv(1) == b""
            until(lambda: len(server.server.server_state.connections) == 0)

    def test_a_caller_that_does_not_read_its_answer(self, server) -> None:
        with server.open() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            more = {"heat_map": True, "max_length": 100, "min_length": 100}
            deaf.sendall(post(asked(texts=["Rain fell. " * 100] * 4, **more)) * 3)
            assert server.headlines(ONE).status == 200

    def test_a_server_that_stops_does_not_wait_for_idle_callers(self, serve) -> None:
        with ExitStack() as stack:
            with serve() as server:
                idle = [stack.enter_context(server.open()) for _ in range(10)]
                assert server.headlines(ONE).status == 200
            for one in idle:
                assert one.recv(1) == b""
