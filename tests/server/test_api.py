import json
import logging
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from cpu_facts import same_bits_in_any_batch
from ledeline import __version__
from ledeline.config import SearchConfig
from ledeline.inference.headline import Headline
from ledeline.inference.headliner import Headliner, Options
from ledeline.server.middleware import SECURITY_HEADERS
from ledeline.server.schemas import headline_as_dict
from ledeline.server.settings import BatchingConfig, LimitsConfig, ServerConfig
from ledeline.synth.newsroom import generate

pytestmark = pytest.mark.usefixtures("one_thread")

LEDES = [story.lede for story in generate(6, 7)]
TOKEN = "a-token-that-nobody-guesses"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
ONE = {"texts": ["Rain fell."], "beam": 2, "max_length": 5}
PAGE_FILES = ["/", "/page/page.css", "/page/page.js", "/page/examples.json"]
ROUTES = ["/health", "/ready", "/metrics", "/v1/model", "/openapi.json", *PAGE_FILES]


@pytest.fixture(scope="module")
def server(serve) -> Iterator[Any]:
    with serve() as running:
        yield running


@pytest.fixture(scope="module")
def guarded(serve) -> Iterator[Any]:
    with serve(token=TOKEN) as running:
        yield running


@pytest.fixture
def held(server) -> Iterator[Any]:
    """The server, whose headliner waits until `headliner.go` is set."""
    server.headliner.batches.clear()
    server.headliner.go.clear()
    yield server
    server.headliner.go.set()
    server.headliner.poison = None


# --- headlines ----------------------------------------------------------------------------------


class TestHeadlines:
    @same_bits_in_any_batch
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"beam": 1},
            {"beam": 5, "n_best": 5},
            {"beam": 3, "explain": True},
            {"beam": 4, "n_best": 2, "explain": True, "min_length": 3, "max_length": 9},
            {"beam": 3, "max_length": 12, "block_ngrams": 2},
        ],
    )
    def test_they_are_those_of_the_headliner_alone(
        self, server, headliner: Headliner, options: dict[str, Any]
    ) -> None:
        texts = [*LEDES, "", "Dvořák 漢字", "漢字", "x" * 300, " Rain\n fell.\r\n", "\x00"]
        found = server.headlines({"texts": texts, **options})
        assert found.status == 200
        search = SearchConfig(**{key: one for key, one in options.items() if key != "explain"})
        wanted = Options(search=search, explain=options.get("explain", False))
        alone = headliner.generate_batch(texts, wanted)
        assert found.json == {"headlines": [one.as_dict() for one in alone]}
        assert server.headliner.options[-1] == wanted

    def test_they_do_not_depend_on_other_callers(self, held, headliner: Headliner, until) -> None:
        callers = [held.asking({"texts": ["Snow fell."]})]
        until(lambda: held.load == (0, 1))
        asked = [["Rain fell.", ""], ["", "Hail fell."], ["Wind blew.", "漢字", ""]]
        callers += [held.asking({"texts": texts}) for texts in asked]
        until(lambda: held.load == (7, 1))
        held.headliner.go.set()
        answers = [caller.answer for caller in callers]
        assert any({"Rain fell.", "Hail fell."} <= {*one} for one in held.headliner.batches)
        for texts, found in zip(asked, answers[1:], strict=True):
            alone = [one.as_dict() for one in headliner.generate_batch(texts)]
            assert found.json == {"headlines": alone}

    def test_nor_do_their_reasons(self, held, headliner: Headliner, until) -> None:
        asked = {"beam": 3, "explain": True}
        callers = [held.asking({"texts": ["Snow fell."]})]
        until(lambda: held.load == (0, 1))
        callers += [held.asking({"texts": [text], **asked}) for text in LEDES]
        until(lambda: held.load == (len(LEDES), 1))
        held.headliner.go.set()
        for text, caller in zip(LEDES, callers[1:], strict=True):
            (found,) = caller.answer.json["headlines"]
            alone = headliner(text, beam=3, explain=True).as_dict()
            words, exact = found["alignment"].pop("words"), alone["alignment"].pop("words")
            assert found == alone
            for word, one in zip(words, exact, strict=True):
                for share in ("spm", "attention"):  # of sums in another order
                    assert word.pop(share) == pytest.approx(one.pop(share), abs=1e-3)
                assert word == one

    def test_a_heat_map_has_a_share_for_each_two_words(self, server, headliner: Headliner) -> None:
        asked = {"texts": [LEDES[0], ""], "beam": 3, "heat_map": True}
        found, nothing = server.headlines(asked).json["headlines"]
        assert "alignment" not in nothing
        alignment = headliner(LEDES[0], beam=3, explain=True).alignment
        assert alignment is not None
        heat_map = found["alignment"].pop("heat_map")
        assert found["alignment"] == alignment.as_dict()
        assert heat_map["source"] == list(alignment.source)
        assert heat_map["headline"] == list(alignment.headline)
        for name in ("attention", "spm"):
            rows = heat_map[name]
            assert len(rows) == len(alignment.headline)
            assert {len(row) for row in rows} == {len(alignment.source)}
            for row, exact in zip(rows, getattr(alignment, name), strict=True):
                assert row == pytest.approx(exact, abs=1e-5)
        assert "heat_map" not in json.dumps(server.headlines({**asked, "heat_map": False}).json)

    def test_others_do_not_wait_while_one_is_written_down(
        self, server, monkeypatch: pytest.MonkeyPatch, until
    ) -> None:
        began, go = threading.Event(), threading.Event()

        def slow(headline: Headline, *, heat_map: bool) -> dict[str, Any]:
            began.set()
            assert go.wait(60)
            return headline_as_dict(headline, heat_map=heat_map)

        monkeypatch.setattr("ledeline.server.responses.headline_as_dict", slow)
        asking = server.asking({**ONE, "heat_map": True})
        until(began.is_set)
        assert server.ask("/health").status == 200
        go.set()
        assert asking.answer.status == 200

    def test_a_system_without_spm_has_none(self, make_model) -> None:
        headline = Headliner.load(make_model(spm=False))(LEDES[0], beam=2, explain=True)
        assert headline_as_dict(headline, heat_map=True)["alignment"]["heat_map"]["spm"] is None

    def test_html_comes_back_as_text(self, server) -> None:
        text = "<script>alert(1)</script> Rain & snow fell."
        found = server.headlines({**ONE, "texts": [text]})
        assert found.json["headlines"][0]["source"] == text
        assert found.headers["x-content-type-options"] == "nosniff"


# --- limits -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(serve) -> Iterator[Any]:
    limits = LimitsConfig(texts=3, characters=20, body_bytes=1000, beam=7, n_best=4, waiting=3)
    with serve(limits=limits) as running:
        yield running


class TestLimits:
    @pytest.mark.parametrize(
        ("asked", "sentence"),
        [
            ({"texts": ["a"] * 4}, "texts: has 4, and 3 is the limit"),
            ({"texts": []}, "texts: has 0, and at least 1 is needed"),
            (
                {"texts": ["a", "b" * 21]},
                "texts.1: is longer than 20 characters, which is the limit",
            ),
            ({"texts": ["a"], "beam": 8}, "beam: must be at most 7"),
            ({"texts": ["a"], "beam": 0}, "beam: must be at least 1"),
            ({"texts": ["a"], "n_best": 5}, "n_best: must be at most 4"),
            ({"texts": ["a"], "beam": 2, "n_best": 3}, "n_best = 3: must be at most beam"),
            ({"texts": ["a"], "min_length": 3, "max_length": 2}, "max_length = 2: must be at"),
            ({"texts": ["a"], "max_length": 513}, "max_length: must be at most 512"),
            ({"texts": ["a"], "block_ngrams": -1}, "block_ngrams: must be at least 0"),
            ({}, "texts: is missing"),
            ({"texts": ["a"], "bean": 8}, "bean: there is no such field"),
            ({"texts": ["a"], "b" * 600: 8}, f"{'b' * 60}: there is no such field"),
            ({"texts": "a"}, "texts: must be a list"),
            ({"texts": [1]}, "texts.0: must be a string"),
            ({"texts": ["a"], "beam": "3"}, "beam: must be a whole number"),
            ({"texts": ["a"], "beam": 2.5}, "beam: must be a whole number"),
            ({"texts": ["a"], "beam": 8.0}, "beam: must be at most 7"),
            ({"texts": ["a"], "explain": 1.0}, "explain: must be true or false"),
            ({"texts": ["a"], "beam": True}, "beam: must be a whole number"),
            ({"texts": ["a"], "explain": 1}, "explain: must be true or false"),
            (["a"], "the body: must be a JSON object"),
        ],
    )
    def test_what_is_beyond_is_refused_by_name(self, small, asked: Any, sentence: str) -> None:
        found = small.headlines(asked)
        assert found.status == 422
        assert found.detail.startswith(sentence)
        assert small.headliner.batches == []

    def test_what_just_fits_is_answered(self, small) -> None:
        found = small.headlines({"texts": ["b" * 20] * 3, "beam": 7, "n_best": 4})
        assert found.status == 200
        small.headliner.batches.clear()

    @pytest.mark.parametrize("size", [1000, 1001])
    def test_a_body_of_just_so_many_bytes(self, small, size: int) -> None:
        body = b'{"texts": ["a"]}'.ljust(size)
        found = small.ask("/v1/headlines", body=body, headers={"Content-Type": "application/json"})
        if size > 1000:
            assert found.status == 413
            assert found.detail == "the body has more than 1000 bytes, which is the limit"
        else:
            assert found.status == 200
        small.headliner.batches.clear()

    def test_the_default_beam_is_within_the_limit(self, small) -> None:
        assert small.headlines({"texts": ["a"]}).status == 200
        assert small.headliner.options[-1].search.beam == 7
        small.headliner.batches.clear()

    def test_more_headlines_than_the_largest_beam_are_refused(self, serve) -> None:
        with serve(limits=LimitsConfig(beam=3)) as running:
            found = running.headlines({"texts": ["a"], "n_best": 4})
            assert found.status == 422
            assert found.detail.startswith("n_best = 4: must be at most beam, which is 3")
            assert running.headlines({"texts": ["a"], "n_best": 3}).status == 200

    def test_they_are_told(self, small) -> None:
        limits = small.ask("/v1/model").json["limits"]
        assert limits["texts"] == 3
        assert limits["beam"] == 7
        schema = small.ask("/openapi.json").json["components"]["schemas"]["HeadlinesRequest"]
        assert schema["properties"]["texts"]["maxItems"] == 3
        (beam,) = [one for one in schema["properties"]["beam"]["anyOf"] if one["type"] == "integer"]
        assert (beam["minimum"], beam["maximum"]) == (1, 7)

    def test_a_full_queue_is_told_with_the_seconds_to_wait(self, small, until) -> None:
        small.headliner.go.clear()
        running = small.asking(ONE)
        until(lambda: small.load == (0, 1))
        waiting = small.asking({**ONE, "texts": ["a", "b"]})
        until(lambda: small.load == (2, 1))
        found = small.headlines({**ONE, "texts": ["c", "d"]})
        assert found.status == 503
        assert found.detail == "2 texts are waiting already"
        assert int(found.headers["retry-after"]) >= 1
        assert small.ask("/health").status == 200
        small.headliner.go.set()
        assert [running.answer.status, waiting.answer.status] == [200, 200]
        small.headliner.batches.clear()


def test_an_answer_that_is_not_there_in_time(serve) -> None:
    with serve(limits=LimitsConfig(seconds=0.5)) as server:
        server.headliner.go.clear()
        found = server.headlines(ONE)
        assert found.status == 504
        assert "in time" in found.detail
        assert server.load == (0, 1)
        server.headliner.go.set()


# --- callers that leave -------------------------------------------------------------------------


def request_bytes(asked: Any) -> bytes:
    body = json.dumps(asked).encode()
    head = (
        "POST /v1/headlines HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def test_a_caller_that_goes_away_gives_its_places_back(held, until) -> None:
    running = held.asking(ONE)
    until(lambda: held.load == (0, 1))
    with held.open() as leaves:
        leaves.sendall(request_bytes({**ONE, "texts": ["leaves"] * 3}))
        until(lambda: held.load == (3, 1))
    until(lambda: held.load == (0, 1))
    held.headliner.go.set()
    assert running.answer.status == 200
    assert held.headlines(ONE).status == 200
    assert not any("leaves" in batch for batch in held.headliner.batches)
    until(lambda: b'path="/v1/headlines",status="499"' in held.ask("/metrics").body)


def test_a_caller_whose_text_is_running_goes_away(held, until) -> None:
    with held.open() as leaves:
        leaves.sendall(request_bytes(ONE))
        until(lambda: held.load == (0, 1))
    held.headliner.go.set()
    until(lambda: held.load == (0, 0))
    assert held.headlines(ONE).status == 200


def test_a_caller_that_leaves_in_the_midst_of_its_body(server) -> None:
    with server.open() as leaves:
        leaves.sendall(request_bytes(ONE)[:-5])
    assert server.headlines(ONE).status == 200


# --- the token ----------------------------------------------------------------------------------


class TestToken:
    @pytest.mark.parametrize("path", ["/v1/headlines", "/v1/model", "/metrics", "/v1/nothing"])
    @pytest.mark.parametrize(
        "sent",
        [
            None,
            "",
            "Bearer",
            "Bearer ",
            f"Bearer {TOKEN}x",
            f"Bearer {TOKEN[:-1]}",
            f"Bearer {TOKEN.upper()}",
            f"Basic {TOKEN}",
            TOKEN,
            "Bearer é",
        ],
    )
    def test_without_it_nobody_comes_in(self, guarded, path: str, sent: str | None) -> None:
        headers = {} if sent is None else {"Authorization": sent}
        found = guarded.ask(path, ONE if path == "/v1/headlines" else None, headers=headers)
        assert found.status == 401
        assert "Authorization: Bearer" in found.detail
        assert found.headers["www-authenticate"] == "Bearer"
        assert guarded.headliner.batches == []

    @pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
    def test_with_it_all_is_open(self, guarded, scheme: str) -> None:
        headers = {"Authorization": f"{scheme} {TOKEN}"}
        assert guarded.headlines(ONE, headers=headers).status == 200
        guarded.headliner.batches.clear()
        for path in ("/v1/model", "/metrics"):
            assert guarded.ask(path, headers=headers).status == 200

    def test_what_tells_nothing_is_open(self, guarded) -> None:
        for path in ("/health", "/ready", "/openapi.json", *PAGE_FILES):
            assert guarded.ask(path).status == 200, path

    def test_it_is_told_nowhere(self, guarded) -> None:
        for path in ROUTES:
            assert TOKEN.encode() not in guarded.ask(path, headers=BEARER).body

    @pytest.mark.parametrize("path", ["//v1/model", "/V1/model", "/v1//model", "/x/../v1/model"])
    def test_odd_paths_lead_to_nothing(self, guarded, path: str) -> None:
        assert guarded.ask(path).status in (401, 404)

    def test_a_question_of_a_browser_needs_none_and_does_nothing(self, guarded) -> None:
        assert guarded.ask("/v1/headlines", method="OPTIONS").status == 405

    @pytest.mark.parametrize("prefix", ["/desk", "/desk/", "/v1", "/v1/model", "/metrics"])
    def test_a_prefix_is_no_way_around(self, serve, prefix: str) -> None:
        with serve(token=TOKEN, server=ServerConfig(prefix=prefix)) as server:
            assert server.ask("/health").status == 200
            for path in ("/v1/model", "/metrics"):
                assert server.ask(path).status == 401
                assert server.ask(path, headers=BEARER).status == 200
                for sent in (prefix, prefix.rstrip("/"), prefix * 2):
                    assert server.ask(sent + path).status in (401, 404)


# --- headers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "more", "status"),
    [
        *((path, {}, 200) for path in ROUTES),
        ("/docs", {}, 308),
        ("/v1/headlines", {"asked": ONE}, 200),
        ("/v1/headlines", {"asked": {"texts": []}}, 422),
        ("/v1/headlines", {"body": b"{"}, 422),
        ("/v1/headlines", {"body": b"{", "headers": {"Content-Type": "application/json"}}, 400),
        ("/v1/headlines", {}, 405),
        ("/v1/headlines", {"body": b" " * 1_000_001}, 413),
        ("/v1/headlines/", {"asked": ONE}, 404),
        ("/nothing", {}, 404),
        ("/page/nothing", {}, 404),
        ("/v1/headlines", {"asked": {"texts": ["poison"]}}, 500),
    ],
)
def test_every_answer_has_the_headers(server, path: str, more: dict[str, Any], status) -> None:
    server.headliner.poison = "poison"
    found = server.ask(path, **more)
    assert found.status == status
    for name, value in SECURITY_HEADERS.items():
        assert found.headers[name] == value
    assert "server" not in found.headers
    assert not any(name.startswith("access-control") for name in found.headers)
    if status >= 400:
        assert found.detail


def test_a_refused_caller_gets_them_too(guarded) -> None:
    found = guarded.ask("/v1/model")
    assert {name: found.headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS


@pytest.fixture(scope="module")
def shared(serve) -> Iterator[Any]:
    with serve(token=TOKEN, server=ServerConfig(origins=("https://desk.example",))) as running:
        yield running


class TestOtherSites:
    """Pages of other origins; browsers enforce what these headers say."""

    def test_none_may_call_unless_it_is_named(self, server) -> None:
        found = server.headlines(ONE, headers={"Origin": "https://desk.example"})
        assert not any(name.startswith("access-control") for name in found.headers)

    @pytest.mark.parametrize(
        ("origin", "may"), [("https://desk.example", True), ("https://other.example", False)]
    )
    def test_one_that_is_named_may(self, shared, origin: str, may: bool) -> None:
        asks = {
            "Origin": origin,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization, content-type",
        }
        before = shared.ask("/v1/headlines", method="OPTIONS", headers=asks)
        assert (before.status == 200) == may
        answers = [before]
        for headers in (BEARER, {}):  # a page may also read why it was refused
            found = shared.headlines(ONE, headers={**headers, "Origin": origin})
            assert found.status == ((200 if headers else 401) if may else 403)
            answers.append(found)
        shared.headliner.poison = "Rain fell."
        answers.append(shared.headlines(ONE, headers={**BEARER, "Origin": origin}))
        assert answers[-1].status == (500 if may else 403)
        shared.headliner.poison = None
        for found in answers:
            assert found.headers.get("access-control-allow-origin") == (origin if may else None)
            assert "access-control-allow-credentials" not in found.headers
            assert found.headers["x-content-type-options"] == "nosniff"
        allowed = before.headers.get("access-control-allow-headers", "").lower()
        assert ("authorization" in allowed) == may
        assert ("content-type" in allowed) == may


# --- other routes -------------------------------------------------------------------------------


def test_health_and_readiness(held, until) -> None:
    assert held.ask("/health").json == {"status": "ok"}
    assert held.ask("/ready").json == {"status": "ready"}


def test_a_server_that_shuts_down_is_alive_and_not_ready(serve, until) -> None:
    with serve() as server:
        server.headliner.go.clear()
        running = server.asking(ONE)
        until(lambda: server.load == (0, 1))
        server.app.state.batcher.drain()
        assert server.ask("/health").status == 200
        found = server.ask("/ready")
        assert (found.status, found.json) == (503, {"status": "shutting down"})
        found = server.headlines(ONE)
        assert found.status == 503
        assert found.detail == "the server is shutting down"
        assert int(found.headers["retry-after"]) >= 1
        server.headliner.go.set()
        assert running.answer.status == 200


def test_the_model_is_described(server, headliner: Headliner) -> None:
    about = server.ask("/v1/model").json
    model = headliner.models[0].model
    assert about.pop("limits")["waiting"] == LimitsConfig().waiting
    assert about == {
        "system": model.config.name,
        "profile": "natural",
        "vocabulary": headliner.models[0].tokenizer.vocabulary_size,
        "parameters": model.num_parameters,
        "precision": headliner.precision,
        "device": "cpu",
        "version": __version__,
        "card": None,
    }


def test_what_is_counted(serve) -> None:
    with serve(batching=BatchingConfig(texts=2)) as server:
        server.headliner.poison = "poison"
        for texts in (["a"], ["a", "b", "c"], ["poison"], []):
            server.headlines({**ONE, "texts": texts})
        server.ask("/nothing")
        server.ask("/any/other/nothing")
        found = server.ask("/metrics")
        assert found.headers["content-type"].startswith("text/plain; version=0.0.4")
        lines = set(found.body.decode().splitlines())
        assert {
            'ledeline_requests_total{path="/v1/headlines",status="200"} 2.0',
            'ledeline_requests_total{path="/v1/headlines",status="422"} 1.0',
            'ledeline_requests_total{path="/v1/headlines",status="500"} 1.0',
            'ledeline_requests_total{path="other",status="404"} 2.0',
            "ledeline_texts_total 4.0",
            "ledeline_texts_given_up_total 1.0",
            "ledeline_batch_texts_count 4.0",
            "ledeline_texts_waiting 0.0",
            "ledeline_texts_running 0.0",
        } <= lines


@pytest.mark.parametrize("path", ["/v1/model", "/health", "/ready", "/metrics", "/"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "TRACE"])
def test_other_methods_are_not_allowed(server, path: str, method: str) -> None:
    found = server.ask(path, method=method)
    assert found.status == 405
    assert {"GET"} <= set(found.headers["allow"].split(", ")) <= {"GET", "HEAD"}


@pytest.mark.parametrize(
    "path",
    [
        "/page/../app.py",
        "/page/..%2fapp.py",
        "/page/%2e%2e/app.py",
        "/page/%2e%2e%2fapp.py",
        "/page//etc/passwd",
        "/page/%2fetc%2fpasswd",
        "/page/..\\app.py",
        "/page/page.css%00",
        "/page/page.css/",
        "/page/index.html",
        "/page/",
        "/page",
        "/../settings.py",
        "/docs/../app.py",
        "/page/%ff",
        "//health",
    ],
)
def test_no_path_leads_to_other_files(server, path: str) -> None:
    found = server.ask(path)
    assert found.status == 404
    assert found.detail


def test_a_prefix_that_a_proxy_takes_off(serve) -> None:
    with serve(server=ServerConfig(prefix="/desk")) as server:
        assert server.headlines(ONE).status == 200
        assert server.ask("/openapi.json").json["servers"] == [{"url": "/desk"}]
        assert server.ask("/page/page.css").status == 200


# --- what is not told ---------------------------------------------------------------------------


def test_an_error_of_ours_tells_neither_text_nor_traceback(
    server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.headliner.poison = "Secret plans."
    found = server.headlines({**ONE, "texts": ["Secret plans."]})
    server.headliner.poison = None
    assert found.status == 500
    assert found.detail == "something went wrong here; the server's log has more"
    assert "ValueError" in caplog.text
    assert "in _take_turn" in caplog.text  # where
    assert "Secret" not in caplog.text
    assert server.headlines(ONE).status == 200


def test_texts_are_in_no_log(serve, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with serve() as server:
        for asked in ({"texts": ["Secret plans."]}, {"texts": ["Secret plans."], "beam": 99}):
            server.headlines({**ONE, **asked})
        server.ask("/v1/headlines", body=b'{"texts": ["Secret plans."')
        assert b"Secret" not in server.ask("/metrics").body
    assert "Secret" not in caplog.text


def test_a_wrong_body_is_not_told_back(server) -> None:
    asked = {"texts": ["Secret plans.", 5], "beam": "Secret"}
    assert "Secret" not in server.headlines(asked).detail


def test_connections_are_used_again(server) -> None:
    with server.open() as caller:
        for _ in range(3):
            caller.sendall(request_bytes(ONE))
            assert b" 200 " in _until_end(caller, b"]}]}")


def _until_end(caller: socket.socket, end: bytes) -> bytes:
    found = b""
    while not found.endswith(end):
        piece = caller.recv(65536)
        assert piece
        found += piece
    return found
