"""`/v1/check`, and what is checked of the headlines of `/v1/headlines`."""

import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

pytest.importorskip("uvicorn")

from ledeline.inference.checks.checker import Checker
from ledeline.inference.checks.checking import Checking
from ledeline.server.settings import CallersConfig, LimitsConfig

pytestmark = pytest.mark.usefixtures("one_thread")

HUNGRY: Final = {
    "lede": "About 282 million people went hungry last year, the UN said.",
    "headline": "28m people went hungry",
}
RAIN: Final = {"lede": "Rain fell in Oslo on Monday.", "headline": "Rain falls in Oslo"}
NEAR: Final = 2e-4  # supports have four decimals


@pytest.fixture(scope="module")
def server(serve: Callable[..., Any]) -> Iterator[Any]:
    with serve() as running:
        yield running


@pytest.fixture(scope="module")
def checker() -> Checker:
    return Checker.load()


class Holding:
    """Lets checks wait for `go` at each step, and fail if told to."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.go, self.fails, self.begun = threading.Event(), False, list[Checking]()
        advance = Checking.advance

        def held(checking: Checking) -> None:
            if checking not in self.begun:
                self.begun.append(checking)
            assert self.go.wait(60)
            if self.fails:
                raise ValueError("cannot check")
            advance(checking)

        patch.setattr(Checking, "advance", held)


@pytest.fixture
def holding(monkeypatch: pytest.MonkeyPatch) -> Iterator[Holding]:
    made = Holding(monkeypatch)
    yield made
    made.go.set()


class TestCheck:
    def test_one_pair(self, server: Any, checker: Checker) -> None:
        found = server.ask("/v1/check", HUNGRY)
        assert found.status == 200
        (one,) = found.json["checks"]
        (doubt,) = one["doubts"]
        assert (doubt["words"], doubt["kind"], doubt["why"]) == (
            "28m",
            "number",
            "the lede has 282 million",
        )
        assert HUNGRY["headline"][doubt["start"] : doubt["end"]] == "28m"
        assert one == checker.check(**HUNGRY).as_dict()

    def test_many_in_their_order(self, server: Any, checker: Checker) -> None:
        pairs = [RAIN, HUNGRY, {**RAIN, "headline": ""}, RAIN, {**HUNGRY, "lede": "漢字"}]
        found = server.ask("/v1/check", {"pairs": pairs}).json["checks"]
        alone = [checker.check(**pair) for pair in pairs]
        assert [len(one["doubts"]) for one in found] == [len(one.doubts) for one in alone]
        for one, wanted in zip(found, alone, strict=True):
            assert one["support"] == pytest.approx(wanted.support, abs=NEAR)
        assert found[2] == {"support": None, "doubts": []}

    def test_long_texts(self, server: Any) -> None:  # these are read in a thread
        pair = {"lede": "Rain fell in Oslo. " * 250, "headline": "Rain falls " * 40}
        assert server.ask("/v1/check", {"pairs": [pair] * 3}).status == 200

    def test_others_are_told_apart_from_headlines(
        self, server: Any, holding: Holding, until: Any
    ) -> None:
        """Both wait and run at the same time, and each gets what it asked for."""
        check = Asked(lambda: server.ask("/v1/check", HUNGRY))
        until(lambda: bool(holding.begun))
        headline = server.asking({"texts": [HUNGRY["lede"]], "beam": 2, "max_length": 3})
        holding.go.set()
        assert list(headline.answer.json) == ["headlines"]
        assert list(check.answer.json) == ["checks"]


class Asked:
    """A request on its way, in a thread."""

    def __init__(self, ask: Callable[[], Any]) -> None:
        self._found: list[Any] = []
        self._thread = threading.Thread(target=lambda: self._found.append(ask()))
        self._thread.start()

    @property
    def answer(self) -> Any:
        self._thread.join(60)
        return self._found[0]


@pytest.fixture(scope="module")
def small(serve: Callable[..., Any]) -> Iterator[Any]:
    with serve(limits=LimitsConfig(texts=2, characters=40, price=150)) as running:
        yield running


class TestLimits:
    @pytest.mark.parametrize(
        ("asked", "sentence"),
        [
            ({}, "the body: must have a lede and a headline, or pairs of them"),
            ({"lede": "a"}, "the body: must have a lede and a headline"),
            ({"headline": "a"}, "the body: must have a lede and a headline"),
            ({"pairs": [RAIN], "lede": "a"}, "the body: must have a lede and a headline"),
            ({"pairs": []}, "pairs: has 0, and at least 1 is needed"),
            ({"pairs": [RAIN] * 3}, "pairs: has 3, and 2 is the limit"),
            ({"pairs": [RAIN, {"lede": "a"}]}, "pairs.1.headline: is missing"),
            ({"pairs": [{**RAIN, "text": "a"}]}, "pairs.0.text: there is no such field"),
            ({"pairs": [["a", "b"]]}, "pairs.0: must be a JSON object"),
            ({"pairs": {"lede": "a"}}, "pairs: must be a list"),
            ({**RAIN, "lede": 5}, "lede: must be a string"),
            ({**RAIN, "beam": 5}, "beam: there is no such field"),
            ({**RAIN, "lede": "a" * 41}, "lede: is longer than 40 characters"),
            ({"pairs": [{**RAIN, "headline": "a" * 41}]}, "pairs.0.headline: is longer than 40"),
            ({**RAIN, "lede": "\ud800"}, "lede: is not valid Unicode"),
            (
                {"pairs": [{"lede": "xq " * 13, "headline": "qx " * 13}] * 2},
                "the request costs",
            ),
        ],
    )
    def test_beyond_them_it_is_refused(self, small: Any, asked: Any, sentence: str) -> None:
        found = small.ask("/v1/check", asked)
        assert (found.status, found.detail[: len(sentence)]) == (422, sentence)
        assert "beam" not in found.detail or "beam" in asked

    def test_a_headline_is_short(self, server: Any) -> None:
        found = server.ask("/v1/check", {**RAIN, "headline": "a" * 501})
        assert found.detail == "headline: is longer than 500 characters, which is the limit"

    def test_a_token_is_needed(self, serve: Callable[..., Any]) -> None:
        with serve(token="a-token-that-nobody-guesses") as running:
            assert running.ask("/v1/check", RAIN).status == 401

    def test_pairs_count_as_texts_of_a_caller(self, serve: Callable[..., Any]) -> None:
        with serve(callers=CallersConfig(texts_in_work=2)) as running:
            assert running.ask("/v1/check", {"pairs": [RAIN] * 2}).status == 200
            assert running.ask("/v1/check", {"pairs": [RAIN] * 3}).status == 429


class TestSharing:
    def test_a_caller_who_leaves_is_given_up(
        self, server: Any, holding: Holding, until: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        given_up = []
        give_up = Checking.give_up
        monkeypatch.setattr(
            Checking, "give_up", lambda one, rows: (given_up.append(rows), give_up(one, rows))
        )
        body = b'{"lede": "Rain fell in Oslo.", "headline": "Rain falls"}'
        head = "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        with server.open() as caller:
            caller.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            until(lambda: bool(holding.begun))
        until(lambda: not server.app.state.batcher._schedule.unfinished())
        holding.go.set()
        until(lambda: bool(given_up) and server.load == (0, 0))
        (checking,) = holding.begun
        assert checking.done
        assert checking.results == [None]

    def test_headlines_go_on_between_the_steps_of_many_checks(
        self, server: Any, holding: Holding
    ) -> None:
        """While one caller's checks take their steps, another's headline is written."""
        holding.go.set()
        checks = Asked(lambda: server.ask("/v1/check", {"pairs": [HUNGRY] * 64}))
        assert server.headlines({"texts": ["Rain fell."], "beam": 2, "max_length": 3}).status == 200
        assert len(checks.answer.json["checks"]) == 64
        assert len(holding.begun) > 1  # slices

    def test_a_failure_is_that_of_its_request(self, server: Any, holding: Holding) -> None:
        holding.go.set()
        holding.fails = True
        found = server.ask("/v1/check", HUNGRY)
        assert (found.status, "282" in found.detail) == (500, False)
        holding.fails = False
        assert server.ask("/v1/check", HUNGRY).status == 200

    def test_the_time_is_limited(self, serve: Callable[..., Any], holding: Holding) -> None:
        with serve(limits=LimitsConfig(seconds=0.3)) as running:
            found = running.ask("/v1/check", HUNGRY)
            assert (found.status, "not ready in time" in found.detail) == (504, True)
            holding.go.set()

    def test_the_checker_is_loaded_once(self, serve: Callable[..., Any]) -> None:
        with serve() as running:
            loaded, load = [], running.headliner.checker
            running.headliner.checker = lambda: (loaded.append(1), load())[1]
            asking = [Asked(lambda: running.ask("/v1/check", RAIN)) for _ in range(3)]
            assert [one.answer.status for one in asking] == [200] * 3
            assert running.ask("/v1/check", RAIN).status == 200
            assert len(loaded) <= 3  # by those who came before it was there


class TestHeadlines:
    def test_a_small_model_is_not_checked_by_default(self, server: Any) -> None:
        asked = {"texts": [HUNGRY["lede"]], "beam": 3, "n_best": 2, "max_length": 8}
        (found,) = server.headlines(asked).json["headlines"]
        assert not {"support", "doubts"} & {*found, *found["alternatives"][0]}

    def test_it_is_when_that_is_asked_for(self, server: Any, headliner: Any) -> None:
        asked = {"texts": [HUNGRY["lede"]], "beam": 3, "n_best": 2, "max_length": 8}
        (found,) = server.headlines({**asked, "check": True}).json["headlines"]
        assert 0 <= found["support"] <= 1
        assert found["alternatives"][0]["support"] == found["support"]
        assert all({"support", "doubts"} <= one.keys() for one in found["alternatives"])

    def test_what_has_too_little_support_is_left_out(self, server: Any) -> None:
        asked = {"texts": [HUNGRY["lede"]], "beam": 3, "max_length": 8, "min_support": 1}
        (found,) = server.headlines(asked).json["headlines"]
        assert found["headline"] == ""
        assert "left out" in [one["kind"] for one in found["warnings"]]

    @pytest.mark.parametrize(
        ("option", "sentence"),
        [
            ({"rank": "best"}, "rank: must be 'support' or 'score'"),
            ({"min_support": 1.5}, "min_support: must be at most 1"),
            ({"min_support": -1}, "min_support: must be at least 0"),
            ({"min_support": "1"}, "min_support: must be a number"),
            ({"check": 1}, "check: must be true or false"),
            ({"check": False, "min_support": 0.5}, "min_support = 0.5: needs check"),
            ({"check": False, "rank": "support"}, 'rank = "support": needs check'),
        ],
    )
    def test_options_that_are_refused(self, server: Any, option: Any, sentence: str) -> None:
        found = server.headlines({"texts": ["Rain fell."], **option})
        assert (found.status, found.detail) == (422, sentence)

    def test_not_a_number(self, server: Any) -> None:
        body, kind = b'{"texts": ["a"], "min_support": NaN}', {"Content-Type": "application/json"}
        assert server.ask("/v1/headlines", body=body, headers=kind).status in (400, 422)
