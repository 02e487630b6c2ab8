"""The price of a request, and the limits of a caller."""

from typing import Any

import pytest

pytest.importorskip("uvicorn")

from ledeline.config import SearchConfig
from ledeline.config.section import BadValue
from ledeline.inference.options import Options
from ledeline.inference.source_text import SourceText
from ledeline.server.callers import CallerLimits, TooManyRequests
from ledeline.server.price import (
    TooDear,
    check_min_length,
    check_price,
    pair_price,
    text_price,
    text_prices,
)
from ledeline.server.settings import CallersConfig, LimitsConfig

BEAM_20 = SearchConfig()


def most(num_subwords: int, search: SearchConfig = BEAM_20, **more: Any) -> float:
    return text_price(num_subwords, search, **more).most


class TestPrice:
    def test_it_grows_with_all_that_costs(self) -> None:
        plain = most(40)
        assert most(41) > plain
        assert most(40, SearchConfig(beam=21)) > plain
        assert most(40, SearchConfig(min_length=80)) > plain  # 81 steps instead of 80
        assert most(40, explain=True) > plain
        assert most(40, heat_map=True) > most(40, explain=True)

    def test_a_smaller_max_length_makes_it_cheaper(self) -> None:
        cheap = most(512, SearchConfig(max_length=20))
        assert cheap < most(512) / 20
        assert most(40, SearchConfig(max_length=500)) == most(40)  # 80 steps at most anyway

    def test_what_is_expected_is_at_most_the_price(self) -> None:
        for search in (BEAM_20, SearchConfig(max_length=3), SearchConfig(min_length=400)):
            for size in (1, 40, 512):
                price = text_price(size, search)
                assert 0 < price.expected <= price.most

    def test_a_text_without_words_costs_next_to_nothing(self) -> None:
        assert most(0, SearchConfig(beam=50, min_length=500), heat_map=True) == 1

    def test_usual_requests_are_allowed(self) -> None:
        limits = LimitsConfig()
        assert limits.texts * most(50, num_checked=20) < limits.price
        assert most(512, heat_map=True, num_checked=20) < limits.price
        assert limits.texts * pair_price(50, 20).most < limits.price

    def test_above_the_limit_both_are_named(self) -> None:
        check_price(100.0, 100)
        with pytest.raises(TooDear, match="the request costs 101, and 100 is the limit; send"):
            check_price(101.0, 100)


class TestChecks:
    def test_each_headline_that_is_checked_costs(self) -> None:
        plain, some, all_ = (most(40, num_checked=number) for number in (0, 5, 20))
        assert plain < some < all_
        assert 1.2 < all_ / plain < 1.5  # about a third more
        assert most(40, num_checked=5, followed=True) > some

    def test_no_more_of_a_headline_costs_than_is_read(self) -> None:
        def of_checks(length: int) -> float:
            search = SearchConfig(max_length=length)
            return most(300, search, num_checked=20) - most(300, search)

        assert of_checks(20) < of_checks(63) == pytest.approx(of_checks(500))

    @pytest.mark.parametrize(
        ("options", "number"),
        [
            ({"check": False, "rank": "score"}, 0),
            ({"check": True, "rank": "score"}, 2),
            ({"check": True, "rank": "support"}, 7),
        ],
    )
    def test_as_many_are_checked_as_are_ranked(self, options: Any, number: int) -> None:
        search, sources = SearchConfig(beam=7, n_best=2), [SourceText("a", ids=(5,) * 40)]
        (found,) = text_prices(
            sources, Options(search=search, **options), heat_map=False, followed=False
        )
        assert found == text_price(40, search, num_checked=number)

    def test_each_hypothesis_that_is_ranked_once_more_costs(self) -> None:
        search, sources = SearchConfig(beam=7), [SourceText("a", ids=(5,) * 40)]
        plain, ranked = (
            text_prices(
                sources, Options(search=search), heat_map=False, followed=False, rescored=rescored
            )[0]
            for rescored in (False, True)
        )
        assert plain == text_price(40, search)
        assert ranked == text_price(40, search, num_rescored=7)
        assert ranked.most - plain.most > 7 * 40 * 4  # the text is read and written for each
        longer = most(80, search, num_rescored=7) - most(80, search)
        assert longer > ranked.most - plain.most

    def test_a_pair_costs_by_both_of_its_texts(self) -> None:
        assert pair_price(40, 10).most < pair_price(41, 10).most < pair_price(41, 11).most
        assert pair_price(0, 10).most == pair_price(40, 0).most == 1
        assert pair_price(40, 10).expected == pair_price(40, 10).most

    def test_what_to_do_is_said(self) -> None:
        with pytest.raises(TooDear, match="101, and 100 is the limit; send fewer pairs"):
            check_price(101.0, 100, "send fewer pairs")


class TestMinLength:
    def test_a_headline_is_no_longer_than_its_text(self) -> None:
        sources = [SourceText("a", ids=(5,) * 9), SourceText(""), SourceText("b", ids=(5,) * 4)]
        check_min_length(sources, SearchConfig(min_length=4))
        sentence = "min_length = 5: must be at most 4, the number of sub-words of text 3"
        with pytest.raises(BadValue, match=sentence):
            check_min_length(sources, SearchConfig(min_length=5))


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class TestCallers:
    def test_without_settings_there_are_no_limits(self) -> None:
        limits = CallerLimits(CallersConfig())
        for _ in range(1000):
            limits.check("one", 64, 10_000)

    def test_texts_in_work(self) -> None:
        limits = CallerLimits(CallersConfig(texts_in_work=10))
        limits.check("one", 4, 6)
        sentence = "7 of your texts are in work, and 10 is the limit of a caller"
        with pytest.raises(TooManyRequests, match=sentence):
            limits.check("one", 4, 7)

    def test_a_rate_with_a_burst(self) -> None:
        clock = Clock()
        limits = CallerLimits(CallersConfig(texts_per_second=2.0, burst=10), clock)
        for _ in range(10):
            limits.check("one", 1, 0)
        sentence = "you have sent more than 2 texts a second, which is the limit"
        with pytest.raises(TooManyRequests, match=sentence) as refused:
            limits.check("one", 5, 0)
        assert refused.value.retry_after == 3  # 2.5 s
        limits.check("other", 10, 0)
        clock.now += 2.5
        limits.check("one", 5, 0)
        with pytest.raises(TooManyRequests):
            limits.check("one", 1, 0)
        clock.now += 1000.0
        for _ in range(10):
            limits.check("one", 1, 0)
        with pytest.raises(TooManyRequests):
            limits.check("one", 1, 0)

    def test_what_is_refused_does_not_count(self) -> None:
        clock = Clock()
        limits = CallerLimits(CallersConfig(texts_per_second=1.0, burst=1), clock)
        limits.check("one", 1, 0)
        for _ in range(100):
            with pytest.raises(TooManyRequests):
                limits.check("one", 1, 0)
        clock.now += 1.0
        limits.check("one", 1, 0)

    def test_a_request_larger_than_the_burst_is_allowed_after_a_pause(self) -> None:
        clock = Clock()
        limits = CallerLimits(CallersConfig(texts_per_second=1.0, burst=2), clock)
        limits.check("one", 8, 0)
        with pytest.raises(TooManyRequests) as refused:
            limits.check("one", 8, 0)
        clock.now += refused.value.retry_after
        limits.check("one", 8, 0)

    def test_not_everybody_is_remembered(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("ledeline.server.callers._MAX_REMEMBERED", 10)
        limits = CallerLimits(CallersConfig(texts_per_second=1.0))
        for number in range(100):
            limits.check(str(number), 1, 0)
        assert len(limits._full_again) == 10


def test_recombining_costs_something_for_each_hypothesis() -> None:
    plain, recombined = SearchConfig(beam=8), SearchConfig(beam=8, recombine=5)
    assert text_price(30, SearchConfig(beam=8, recombine=0)) == text_price(30, plain)
    assert text_price(30, plain).most < text_price(30, recombined).most
    assert text_price(30, recombined).most < 2 * text_price(30, plain).most
