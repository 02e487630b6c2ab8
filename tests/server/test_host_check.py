"""Which hosts the server answers to, and whose pages may call it."""

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("uvicorn")

from ledeline.server.host_check import WRONG_HOST, WRONG_ORIGIN, parse_authority
from ledeline.server.settings import ServerConfig

pytestmark = pytest.mark.usefixtures("one_thread")

TOKEN = "a-token-that-nobody-guesses"
ONE = {"texts": ["Rain fell."], "beam": 1, "max_length": 3}


def get(path: str, *fields: str, version: str = "1.1") -> bytes:
    return "\r\n".join((f"GET {path} HTTP/{version}", *fields, "", "")).encode("latin-1")


@pytest.fixture(scope="module")
def server(serve) -> Iterator[Any]:
    with serve() as running:
        yield running


@pytest.fixture(scope="module")
def named(serve) -> Iterator[Any]:
    names = ServerConfig(hosts=("Desk.example", ".news.example", "*.wire.example", "hub_1"))
    with serve(server=names) as running:
        yield running


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("desk.example", "desk.example", None),
        ("DESK.Example.:080", "desk.example", 80),
        ("127.0.0.1:8000", "127.0.0.1", 8000),
        ("[::1]:8000", "::1", 8000),
        ("[::FFFF:127.0.0.1]", "::ffff:127.0.0.1", None),
        ("hub_1:1", "hub_1", 1),
    ],
)
def test_a_host_is_taken_apart(text: str, host: str, port: int | None) -> None:
    assert parse_authority(text) == (host, port)


NO_HOSTS = [
    "",
    ".",
    ":80",
    "user@localhost",
    "localhost@evil.example",
    "evil.example#localhost",
    "evil.example/localhost",
    "localhost:",
    "localhost:80:80",
    "localhost:123456",
    "localhost, evil.example",
    "local host",
    "::1",
    "[::1",
    "[::1]x",
    "[evil.example]",
    "[::1%25eth0]",
    "löcalhost",
    "localhost\x00",
    "локалхост",
]


@pytest.mark.parametrize("text", NO_HOSTS)
def test_and_nothing_else_is_one(text: str) -> None:
    assert parse_authority(text) is None


OURS = ["localhost", "LOCALHOST:8000", "localhost.", "a.b.localhost:1", "127.0.0.1", "10.1.2.3:99"]
OURS += ["127.0.0.1.", "[::1]:8000", "[2001:db8::1]"]
FOREIGN = ["evil.example", "evil.example:8000", "localhost.evil.example", "notlocalhost", "x.local"]
FOREIGN += ["127.0.0.1.evil.example", "0x7f.1", "2130706433", ".localhost.x"]


class TestHost:
    @pytest.mark.parametrize("host", OURS)
    def test_ours(self, server, host: str) -> None:
        for path in ("/", "/v1/model", "/metrics", "/openapi.json"):
            assert server.raw(get(path, f"Host: {host}")).status == 200

    @pytest.mark.parametrize("host", [*FOREIGN, *NO_HOSTS[3:13]])
    def test_others_are_refused(self, server, host: str) -> None:
        for path in ("/", "/v1/model", "/metrics", "/openapi.json", "/nothing"):
            found = server.raw(get(path, f"Host: {host}"))
            if found.status == 400:  # it is not even a header
                assert " " in host or "\x00" in host
                continue
            assert (found.status, found.detail) == (421, WRONG_HOST)
            assert "server.hosts" in found.detail
            assert found.headers["x-content-type-options"] == "nosniff"
        for path in ("/health", "/ready"):
            assert server.raw(get(path, f"Host: {host}")).status in (200, 400)

    def test_a_body_is_not_looked_at(self, server) -> None:
        found = server.headlines(ONE, headers={"Host": "evil.example"})
        assert found.status == 421
        assert server.headliner.batches == []

    def test_rebinding_is_no_way_in(self, server) -> None:
        headers = {"Host": "evil.example:80", "Origin": "http://evil.example:80"}
        assert server.headlines(ONE, headers=headers).status == 421

    def test_without_any_only_an_old_caller(self, server) -> None:
        assert server.raw(get("/v1/model", version="1.0")).status == 200
        assert server.raw(get("/v1/model")).status == 400

    def test_two_of_them(self, server) -> None:
        for hosts in (("localhost", "evil.example"), ("evil.example", "localhost")):
            sent = get("/v1/model", *(f"Host: {host}" for host in hosts))
            assert server.raw(sent).status == 400

    @pytest.mark.parametrize(
        ("host", "ours"),
        [
            ("desk.example", True),
            ("DESK.EXAMPLE.:443", True),
            ("hub_1:8000", True),
            ("a.news.example", True),
            ("a.b.wire.example", True),
            ("news.example", False),
            ("a.desk.example", False),
            ("evilnews.example", False),
            ("desk.example.evil.example", False),
            ("evil.example", False),
            ("localhost", True),
        ],
    )
    def test_names_can_be_added(self, named, host: str, ours: bool) -> None:
        assert named.raw(get("/v1/model", f"Host: {host}")).status == (200 if ours else 421)

    @pytest.mark.parametrize("hosts", [(), ("desk.example",)])
    def test_with_a_token_names_are_checked_if_there_are_any(
        self, serve, hosts: tuple[str, ...]
    ) -> None:
        with serve(token=TOKEN, server=ServerConfig(hosts=hosts)) as server:
            for host, ours in (("desk.example", True), ("other.example", not hosts)):
                sent = get("/v1/model", f"Host: {host}", f"Authorization: Bearer {TOKEN}")
                assert server.raw(sent).status == (200 if ours else 421)


class TestOrigin:
    @pytest.mark.parametrize(
        ("origin", "host", "may"),
        [
            ("http://localhost:8000", "localhost:8000", True),
            ("HTTP://LocalHost:8000", "localhost.:8000", True),
            ("http://127.0.0.1", "127.0.0.1", True),
            ("http://127.0.0.1", "127.0.0.1:80", True),
            ("https://127.0.0.1", "127.0.0.1:443", True),
            ("http://[::1]:8000", "[::1]:8000", True),
            ("http://localhost:3000", "localhost:8000", False),
            ("http://localhost", "localhost:8000", False),
            ("http://127.0.0.1:8000", "localhost:8000", False),
            ("http://evil.example", "localhost", False),
            ("http://localhost@evil.example", "localhost", False),
            ("http://localhost.evil.example", "localhost", False),
            ("http://localhost/", "localhost", False),
            ("chrome-extension://localhost", "localhost", False),
            ("file://", "localhost", False),
            ("localhost", "localhost", False),
            ("null", "localhost", False),
            ("", "localhost", False),
        ],
    )
    def test_pages_of_the_server_itself(self, server, origin: str, host: str, may: bool) -> None:
        fields = (f"Host: {host}", f"Origin: {origin}")
        for path in ("/v1/model", "/"):
            found = server.raw(get(path, *fields))
            assert found.status == (200 if may else 403)
            assert may or found.detail == WRONG_ORIGIN

    def test_every_one_of_two_counts(self, server) -> None:
        fields = ("Host: localhost", "Origin: http://localhost", "Origin: http://evil.example")
        assert server.raw(get("/v1/model", *fields)).status == 403

    def test_a_token_does_not_help(self, serve) -> None:
        with serve(token=TOKEN) as server:
            headers = {"Authorization": f"Bearer {TOKEN}", "Origin": "http://evil.example"}
            assert server.headlines(ONE, headers=headers).status == 403
            assert server.headliner.batches == []

    def test_a_proxy_that_does_not_pass_the_name_on(self, named) -> None:
        for origin, may in (("https://desk.example", True), ("https://other.example", False)):
            found = named.raw(get("/v1/model", "Host: 127.0.0.1:8000", f"Origin: {origin}"))
            assert found.status == (200 if may else 403)

    def test_a_named_site_may_ask_first(self, serve) -> None:
        sites = ServerConfig(origins=("https://Desk.example/", "https://wire.example:8443"))
        with serve(server=sites) as server:
            for origin, may in (
                ("https://desk.example", True),
                ("https://wire.example:8443", True),
                ("https://wire.example", False),
                ("http://desk.example", False),
                ("null", False),
            ):
                asks = {"Origin": origin, "Access-Control-Request-Method": "POST"}
                before = server.ask("/v1/headlines", method="OPTIONS", headers=asks)
                found = server.headlines(ONE, headers={"Origin": origin})
                assert [before.status, found.status] == ([200, 200] if may else [403, 403])
                for one in (before, found):
                    allowed = one.headers.get("access-control-allow-origin")
                    assert allowed == (origin if may else None)
