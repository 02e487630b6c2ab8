"""Whose turn it is, and which texts go together."""

from collections import Counter
from collections.abc import Sequence

import pytest

pytest.importorskip("uvicorn")

from ledeline.config import SearchConfig
from ledeline.inference.checks.checking import PairText
from ledeline.inference.options import Options
from ledeline.inference.source_text import SourceText
from ledeline.server.schedule import FairSchedule, QueuedRequest, Slice, SliceLimits

WIDE = SliceLimits(texts=16, subwords=10_000, hypotheses=10_000)


def request(
    *names: str,
    caller: str = "one",
    length: int = 10,
    price: float = 100.0,
    arrived: float = 0.0,
    options: Options | None = None,
    heat_map: bool = False,
) -> QueuedRequest:
    made = QueuedRequest(caller, options or Options(), heat_map, 100.0, arrived)
    for name in names:
        made.add(SourceText(name, ids=(5,) * length), price)
    return made


def names(batch: Slice | None) -> list[str]:
    assert batch is not None
    sources = [one.source for one in batch.texts]
    return [str(one.text) for one in sources if isinstance(one, SourceText)]


def scheduled(*requests: QueuedRequest, limits: SliceLimits = WIDE, **more: float) -> FairSchedule:
    schedule = FairSchedule(limits, more.get("window", 0.0), int(more.get("slices", 100)), 4)
    for one in requests:
        schedule.add(one)
    return schedule


def all_slices(schedule: FairSchedule, num_idle: int = 1) -> list[list[str]]:
    found = []
    while (batch := schedule.next(1.0, num_idle).batch) is not None:
        found.append(names(batch))
        for text in batch.texts:
            text.request.put(text, b"")
        schedule.finish(batch)
    return found


class TestTogether:
    def test_texts_of_one_request_up_to_the_limit(self) -> None:
        many = [str(number) for number in range(40)]
        assert [len(one) for one in all_slices(scheduled(request(*many)))] == [16, 16, 8]

    @pytest.mark.parametrize(
        ("limits", "sizes"),
        [
            (SliceLimits(16, 45, 10_000), [4, 4, 2]),  # 10 sub-words each
            (SliceLimits(16, 5, 10_000), [1] * 10),  # a single one is always allowed
            (SliceLimits(16, 10_000, 60), [3, 3, 3, 1]),  # beam 20
            (SliceLimits(16, 10_000, 5), [1] * 10),
        ],
    )
    def test_steps_stay_short(self, limits: SliceLimits, sizes: list[int]) -> None:
        found = all_slices(scheduled(request(*"abcdefghij"), limits=limits))
        assert [len(one) for one in found] == sizes

    def test_padding_counts(self) -> None:
        texts = request("a", "b", "c", length=10)
        texts.add(SourceText("d", ids=(5,) * 20), 100.0)
        found = all_slices(scheduled(texts, limits=SliceLimits(16, 60, 10_000)))
        assert found == [["a", "b", "c"], ["d"]]

    def test_lengths_are_similar(self) -> None:
        short, long = request("a", "b"), request("c", "d", length=100, arrived=1.0)
        assert all_slices(scheduled(short, long)) == [["a", "b"], ["c", "d"]]

    def test_options_are_the_same(self) -> None:
        other = Options(search=SearchConfig(beam=3))
        requests = request("a"), request("b", options=other), request("c", heat_map=True)
        assert sorted(all_slices(scheduled(*requests))) == [["a"], ["b"], ["c"]]

    def test_pairs_are_not_searched_and_have_limits_of_their_own(self) -> None:
        pairs = QueuedRequest("one", None, False, 100.0, 0.0)
        for name in "bcdef":
            pairs.add(PairText(name, "", (5,) * 10, (5,)), 100.0)
        schedule = FairSchedule(WIDE, 0.0, 100, 4, SliceLimits(16, 25, 2))
        schedule.add(request("a", "a"))
        schedule.add(pairs)
        found = []
        while (batch := schedule.next(1.0).batch) is not None:
            found.append((batch.options is None, len(batch.texts)))
            schedule.finish(batch)
        assert sorted(found) == [(False, 2), (True, 1), (True, 2), (True, 2)]

    def test_single_texts_of_many_requests_go_together(self) -> None:
        schedule = scheduled(*(request(str(number)) for number in range(20)))
        assert [len(one) for one in all_slices(schedule)] == [16, 4]

    def test_a_single_text_is_not_searched_with_many_of_another_request(self) -> None:
        many = [str(number) for number in range(30)]
        schedule = scheduled(request(*many), request("single", arrived=1.0))
        first = all_slices(schedule)[0]
        assert "single" in first
        assert len(first) == 2

    def test_nor_with_many_requests_of_another_caller(self) -> None:
        many = [request(str(number), caller="many") for number in range(30)]
        schedule = scheduled(*many, request("single", arrived=1.0))
        (first,) = [one for one in all_slices(schedule) if "single" in one]
        assert len(first) <= 2

    def test_two_with_many_texts_share_a_slice(self) -> None:
        requests = [request(*[name] * 30, caller=name) for name in "ab"]
        assert Counter(all_slices(scheduled(*requests))[0]) == {"a": 8, "b": 8}

    def test_idle_threads_share_what_there_is(self) -> None:
        schedule = scheduled(request(*"abcdefghij"))
        assert len(names(schedule.next(1.0, 2).batch)) == 5
        assert len(names(schedule.next(1.0, 1).batch)) == 5

    def test_but_not_in_crumbs(self) -> None:
        assert len(names(scheduled(request(*"abcdef")).next(1.0, 2).batch)) == 6

    def test_a_text_waits_for_others_but_not_if_the_slice_is_full(self) -> None:
        schedule = scheduled(request("a", arrived=1.0), window=0.5)
        assert schedule.next(1.2).batch is None
        assert schedule.next(1.2).wait == pytest.approx(0.3)
        assert names(schedule.next(1.5).batch) == ["a"]
        assert len(names(scheduled(request(*["b"] * 16), window=9.0).next(0.0).batch)) == 16


class TestTurns:
    def test_the_cheaper_request_of_a_caller_goes_first(self) -> None:
        dear = request("dear", price=50_000.0, length=200)
        cheap = request("cheap", price=300.0, arrived=1.0)
        assert all_slices(scheduled(dear, cheap)) == [["cheap"], ["dear"]]

    def test_among_equals_the_oldest(self) -> None:
        other = Options(explain=True)
        late, early = request("late", arrived=0.5), request("early", options=other)
        assert all_slices(scheduled(late, early)) == [["early"], ["late"]]

    def test_a_request_that_is_half_done_goes_before_one_of_its_size(self) -> None:
        half, whole = request("a", "b", price=5000.0), request("c", "d", price=5000.0)
        limits = SliceLimits(1, 100, 100)
        assert all_slices(scheduled(half, whole, limits=limits)) == [["a"], ["b"], ["c"], ["d"]]

    def test_callers_have_equal_time(self) -> None:
        """Whatever their requests cost, and however many they have."""
        requests = [request(*["a"] * 50, caller="a", price=900.0)]
        requests += [request("b", caller="b") for _ in range(500)]
        schedule = scheduled(*requests, limits=SliceLimits(1, 100, 100))
        time = Counter[str]()
        for _ in range(200):
            batch = schedule.next(1.0).batch
            (name,) = names(batch)
            assert batch is not None
            seconds = 9 if name == "a" else 1
            time[name] += seconds
            schedule.charge(batch, seconds)
            batch.texts[0].request.put(batch.texts[0], b"")
            schedule.finish(batch)
        assert 0.9 < time["a"] / time["b"] < 1.1

    def test_a_short_one_goes_before_a_slice_that_was_put_aside(self) -> None:
        schedule = scheduled(request("long", caller="a", price=50_000.0))
        long = schedule.next(1.0).batch
        assert long is not None
        schedule.charge(long, 1.0)
        schedule.put_aside(long)
        schedule.add(request("short", caller="b"))
        short = schedule.next(1.0).batch
        assert names(short) == ["short"]
        assert schedule.next(1.0).batch is long  # for another thread

    def test_one_who_comes_anew_has_no_claim_to_the_past(self) -> None:
        schedule = scheduled(request(*["old"] * 50, caller="old"), limits=SliceLimits(1, 100, 100))
        first = schedule.next(1.0).batch
        assert first is not None
        schedule.charge(first, 1000.0)
        schedule.finish(first)
        schedule.add(request(*["new"] * 50, caller="new"))
        found = Counter[str]()
        for _ in range(40):
            batch = schedule.next(1.0).batch
            assert batch is not None
            found[names(batch)[0]] += 1
            schedule.charge(batch, 1.0)
            schedule.finish(batch)
        assert abs(found["new"] - found["old"]) <= 2

    def test_one_who_leaves_and_comes_again_does_not_begin_anew(self) -> None:
        schedule = scheduled(
            request(*["stays"] * 50, caller="stays"), limits=SliceLimits(1, 100, 100)
        )
        found = Counter[str]()
        for _ in range(40):
            if not any(one.caller == "again" for one in schedule.requests()):
                schedule.add(request("again", caller="again"))
            batch = schedule.next(1.0).batch
            assert batch is not None
            found[names(batch)[0]] += 1
            schedule.charge(batch, 1.0)
            schedule.finish(batch)
        assert abs(found["stays"] - found["again"]) <= 2

    def test_only_so_many_slices_are_begun(self) -> None:
        other = Options(explain=True)
        schedule = scheduled(request("a"), request("b", options=other), slices=1)
        first = schedule.next(1.0).batch
        assert schedule.next(1.0).batch is None
        assert first is not None
        schedule.put_aside(first)
        assert schedule.next(1.0).batch is first
        schedule.finish(first)
        assert schedule.next(1.0).batch is not None

    def test_nothing_is_remembered_of_thousands_who_have_left(self) -> None:
        schedule = scheduled(request(*["stays"] * 2000, caller="stays"))
        for number in range(1000):
            schedule.add(request("x", caller=str(number)))
            batch = schedule.next(1.0).batch
            assert batch is not None
            schedule.charge(batch, 0.01)
            schedule.finish(batch)
        assert len(schedule._seconds) < 100


class TestLeaving:
    def test_waiting_texts_are_gone(self) -> None:
        leaves, stays = request("a", "b"), request("c")
        schedule = scheduled(leaves, stays)
        assert schedule.remove(leaves) == []
        assert (schedule.num_waiting, schedule.num_searched) == (1, 0)
        assert all_slices(schedule) == [["c"]]
        assert schedule.is_empty

    def test_rows_of_slices_are_named_and_count_until_they_are_given_up(self) -> None:
        leaves, stays = request("a"), request("b")
        schedule = scheduled(leaves, stays)
        batch = schedule.next(1.0).batch
        assert batch is not None
        assert schedule.remove(leaves) == [batch]
        assert batch.dropped == [names(batch).index("a")]
        assert [one.source.text for one in batch.live] == ["b"]
        assert schedule.num_searched == 2
        batch.dropped.clear()
        assert schedule.num_searched == 1
        assert schedule.unfinished() == {stays}

    def test_twice_is_once(self) -> None:
        leaves = request("a")
        schedule = scheduled(leaves)
        batch = schedule.next(1.0).batch
        schedule.remove(leaves)
        assert schedule.remove(leaves) == []
        assert batch is not None
        assert batch.dropped == [0]

    def test_a_slice_can_be_split(self) -> None:
        leaves, stays = request("a"), request("b", "c")
        schedule = scheduled(leaves, stays)
        batches: list[Sequence[str]] = []
        batch = schedule.next(1.0).batch
        assert batch is not None
        schedule.remove(leaves)
        schedule.split(batch)
        while (one := schedule.next(1.0).batch) is not None:
            batches.append(names(one))
            schedule.finish(one)
        assert sorted(batches) == [["b"], ["c"]]
