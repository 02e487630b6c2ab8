"""Callers, threads and slices; what goes first is in test_schedule.py."""

import asyncio
import gc
import threading
from collections.abc import Callable, Collection, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ledeline.config import SearchConfig
from ledeline.inference.checks.check import Check
from ledeline.inference.headline import Headline
from ledeline.inference.headliner import Options
from ledeline.inference.source_text import SourceText
from ledeline.server.admission import MIN_RETRY_AFTER, AdmissionLimits, ServiceUnavailable
from ledeline.server.batcher import Batcher, Load
from ledeline.server.callers import CallerLimits, TooManyRequests
from ledeline.server.schedule import FairSchedule, SliceLimits
from ledeline.server.settings import CallersConfig

PLAIN = Options()
EXPLAINED = Options(explain=True)
PATIENCE = 60  # seconds until a test gives up


class Story:
    """Headlines in the making: two steps, or one that waits until it may go on."""

    def __init__(self, writer: "Writer", texts: tuple[str, ...]) -> None:
        self.done, self.results = False, list[Headline | None]([None] * len(texts))
        self._writer, self._texts, self._steps = writer, texts, 0
        self.given_up: set[int] = set()

    def advance(self) -> None:
        self._writer.threads.add(threading.current_thread().name)
        assert self._writer.go.wait(PATIENCE)
        self._steps += 1
        self._writer.num_steps += 1
        if self._writer.fails(self._texts):
            raise ValueError(f"cannot write about {len(self._texts)} texts")
        if self._steps >= self._writer.steps_of(self._texts):
            self.done = True
            for row, text in enumerate(self._texts[: self._writer.most_answers]):
                if row not in self.given_up:
                    self.results[row] = Headline(text, f"{text}!")

    def give_up(self, rows: Collection[int]) -> None:
        self.given_up |= set(rows)
        self._writer.given_up += [self._texts[row] for row in rows]
        self.done = self.done or len(self.given_up) == len(self._texts)


class Writer:
    """Writes headlines at once, or when it may; tells what it was given."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, ...]] = []
        self.options: list[Options | None] = []
        self.given_up: list[str] = []
        self.threads: set[str] = set()
        self.num_steps = 0
        self.most_answers: int | None = None
        self.go = threading.Event()
        self.go.set()
        self.fails: Callable[[Sequence[str]], bool] = lambda _: False
        self.steps_of: Callable[[Sequence[str]], int] = lambda _: 2

    def begin(self, texts: Sequence[Any], options: Options | None) -> Story:
        texts = tuple(str(one.text) for one in texts)
        self.batches.append(texts)
        self.options.append(options)
        return Story(self, texts)

    def encode(self, result: Headline | Check, *, heat_map: bool) -> bytes:
        assert isinstance(result, Headline)
        return result.text.encode() + b"?" * heat_map


class Watcher:
    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.given_up = 0

    def observe_batch(self, num_texts: int, num_given_up: int, seconds: float) -> None:
        assert seconds >= 0
        self.sizes.append(num_texts)
        self.given_up += num_given_up


class Desk:
    """A batcher with its writer, and callers."""

    def __init__(
        self,
        writer: Writer,
        *,
        most: int = 100,
        seconds: float = PATIENCE,
        texts: int = 64,
        window: float = 0.0,
        threads: int = 1,
        drain_seconds: float = PATIENCE,
        **callers: Any,
    ) -> None:
        self.writer, self.watcher = writer, Watcher()
        self._schedule = FairSchedule(SliceLimits(texts, 10_000, 10_000), window, 8, 4)
        limits = AdmissionLimits(most, seconds)
        of_caller = CallerLimits(CallersConfig(**callers))
        self.batcher = Batcher(
            writer, self._schedule, limits, of_caller, self.watcher, drain_seconds
        )
        self.batcher.start(ThreadPoolExecutor(threads, "headlines"), threads)
        self.callers: list[asyncio.Task[list[str]]] = []

    def call(
        self, *texts: str, options: Options = PLAIN, price: float = 1.0, caller: str = ""
    ) -> "asyncio.Task[list[str]]":
        async def calling() -> list[str]:
            ledes = [SourceText(text, ids=(5, 6, 7)) for text in texts]
            prices = [price] * len(texts)
            found = await self.batcher.submit(ledes, prices, options, caller=caller)
            return [one.decode() for one in found]

        task = asyncio.create_task(calling())
        self.callers.append(task)
        return task

    async def busy(self) -> "asyncio.Task[list[str]]":
        """A caller whose text is being worked on until `writer.go` is set."""
        self.writer.go.clear()
        caller = self.call("busy")
        await self.is_in_a_step()
        return caller

    async def is_in_a_step(self) -> None:
        """Wait until a thread is in its first step: what comes now, it sees after that."""
        await until(lambda: bool(self.writer.threads))

    async def rests(self) -> None:
        """Wait until there is nothing to do, and what ended is counted (in the same lock)."""
        await until(lambda: self._schedule.is_empty and self.batcher.load == Load(0, 0))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.001)


@pytest.fixture
def run() -> Callable[..., None]:
    """Runs a story around a desk; afterwards nothing is left of it: no task, thread or warning."""

    def running(story: Callable[[Desk], Coroutine[Any, Any, None]], **settings: Any) -> None:
        complaints: list[dict[str, Any]] = []

        async def whole() -> None:
            asyncio.get_running_loop().set_exception_handler(
                lambda _, what: complaints.append(what)
            )
            desk = Desk(Writer(), **settings)
            try:
                await story(desk)
            finally:
                desk.writer.go.set()
                await desk.batcher.close()
            assert desk.batcher.load == Load(0, 0)
            await asyncio.gather(*desk.callers, return_exceptions=True)
            assert asyncio.all_tasks() == {asyncio.current_task()}

        before = set(threading.enumerate())
        gc.freeze()  # what there was before, so that collecting takes no time
        asyncio.run(whole())
        gc.collect()  # of a future whose exception nobody asked for
        gc.unfreeze()
        assert complaints == []
        assert {one for one in set(threading.enumerate()) - before if one.is_alive()} == set()

    return running


class TestBatches:
    def test_texts_of_several_callers_are_worked_on_together(self, run) -> None:
        async def story(desk: Desk) -> None:
            await desk.busy()
            callers = [desk.call("a", "b"), desk.call("c", "d", caller="other")]
            await until(lambda: desk.batcher.load == Load(4, 1))
            desk.writer.go.set()
            assert [await one for one in callers] == [["a!", "b!"], ["c!", "d!"]]
            assert sorted(desk.writer.batches[1]) == ["a", "b", "c", "d"]
            assert desk.watcher.sizes == [1, 4]

        run(story)

    def test_what_comes_while_a_batch_runs_is_the_next_one(self, run) -> None:
        async def story(desk: Desk) -> None:
            first = await desk.busy()
            others = [desk.call(text) for text in "abc"]
            await until(lambda: desk.batcher.load == Load(3, 1))
            desk.writer.go.set()
            assert await first == ["busy!"]
            assert [await one for one in others] == [["a!"], ["b!"], ["c!"]]
            assert desk.writer.batches == [("busy",), ("a", "b", "c")]

        run(story)

    def test_a_text_waits_a_moment_for_others(self, run) -> None:
        async def story(desk: Desk) -> None:
            for number in (1, 2):
                first = desk.call("a")
                for _ in range(5):  # a while later, in steps of the event loop
                    await asyncio.sleep(0)
                second = desk.call("b")
                assert await first + await second == ["a!", "b!"]
                assert desk.writer.batches == [("a", "b")] * number

        run(story, window=0.5)

    def test_options_are_never_mixed(self, run) -> None:
        async def story(desk: Desk) -> None:
            beam = Options(search=SearchConfig(beam=3))
            same = Options(search=SearchConfig(beam=3))
            await desk.busy()
            asked = [("a", PLAIN), ("b", beam), ("c", EXPLAINED), ("d", PLAIN), ("e", same)]
            callers = [desk.call(text, options=options) for text, options in asked]
            await until(lambda: desk.batcher.load.waiting == 5)
            desk.writer.go.set()
            assert [await one for one in callers] == [[f"{text}!"] for text, _ in asked]
            assert desk.writer.batches == [("busy",), ("a", "d"), ("b", "e"), ("c",)]
            assert desk.writer.options == [PLAIN, PLAIN, beam, EXPLAINED]

        run(story)

    def test_batches_have_a_size_and_answers_keep_the_order(self, run) -> None:
        async def story(desk: Desk) -> None:
            asked = [str(number) for number in range(10)]
            assert await desk.call(*asked) == [f"{text}!" for text in asked]
            assert [len(batch) for batch in desk.writer.batches] == [4, 4, 2]
            assert desk.watcher.sizes == [4, 4, 2]

        run(story, texts=4)

    @pytest.mark.parametrize("threads", [1, 3])
    def test_threads_share_the_work(self, run, threads: int) -> None:
        async def story(desk: Desk) -> None:
            desk.writer.go.clear()
            callers = [desk.call(text) for text in "abcdef"]
            await until(lambda: desk.batcher.load.running == threads)
            desk.writer.go.set()
            await asyncio.gather(*callers)
            assert len(desk.writer.threads) == threads
            assert threading.current_thread().name not in desk.writer.threads

        run(story, texts=1, threads=threads)

    def test_many_callers_and_threads_get_their_own_answers(self, run) -> None:
        async def story(desk: Desk) -> None:
            desk.writer.fails = lambda given: "poison" in given
            callers = {
                text: desk.call(text, f"{text} again", caller=text[-1])
                for text in map(str, range(100))
            }
            spoilt = desk.call("x", "poison")
            for text, one in callers.items():
                assert await one == [f"{text}!", f"{text} again!"]
            with pytest.raises(ValueError, match="cannot write"):
                await spoilt

        run(story, texts=7, threads=4, most=1000)

    def test_no_text_has_no_answers(self, run) -> None:
        async def story(desk: Desk) -> None:
            assert await desk.call() == []

        run(story)


class TestTurns:
    def test_a_long_search_lets_a_short_one_of_another_caller_pass(self, run) -> None:
        async def story(desk: Desk) -> None:
            desk.writer.steps_of = lambda given: 10**9 if "long" in given else 2
            long = desk.call("long", price=1000.0, caller="one")
            await until(lambda: desk.writer.num_steps > 10)
            for number in range(3):
                assert await desk.call(f"{number}", caller="other") == [f"{number}!"]
            assert not long.done()

        run(story)

    def test_so_does_one_of_the_same_caller(self, run) -> None:
        async def story(desk: Desk) -> None:
            desk.writer.steps_of = lambda given: 10**9 if "long" in given else 2
            long = desk.call("long", price=1000.0)
            await until(lambda: desk.writer.num_steps > 10)
            assert await desk.call("short") == ["short!"]
            assert not long.done()

        run(story)

    def test_a_long_one_comes_to_its_end_all_the_same(self, run) -> None:
        async def story(desk: Desk) -> None:
            desk.writer.steps_of = lambda given: 3000 if "long" in given else 2
            long = desk.call("long", price=1000.0, caller="one")
            while not long.done():
                await desk.call("short", caller="other")
            assert await long == ["long!"]

        run(story)


class TestAdmission:
    def test_a_full_queue_refuses_at_once_and_says_when_to_come_back(self, run) -> None:
        async def story(desk: Desk) -> None:
            await desk.busy()
            waiting = desk.call("a", "b")
            await until(lambda: desk.batcher.load == Load(2, 1))
            with pytest.raises(ServiceUnavailable, match="2 texts are waiting already") as refused:
                await desk.call("c", "d")
            assert refused.value.retry_after >= MIN_RETRY_AFTER
            assert desk.batcher.load == Load(2, 1)
            fits = desk.call("c")
            await until(lambda: desk.batcher.load == Load(3, 1))
            desk.writer.go.set()
            assert await waiting + await fits == ["a!", "b!", "c!"]
            assert await desk.call(*"xyz") == ["x!", "y!", "z!"]

        run(story, most=3)

    def test_the_caller_with_most_texts_makes_room_for_another(self, run) -> None:
        async def story(desk: Desk) -> None:
            await desk.busy()
            many = [desk.call("a", "b", caller="many") for _ in range(2)]
            await until(lambda: desk.batcher.load.waiting == 4)
            single = desk.call("single", caller="other")
            with pytest.raises(ServiceUnavailable, match="the queue is full, and others came"):
                await many[1]
            desk.writer.go.set()
            assert await single == ["single!"]
            assert await many[0] == ["a!", "b!"]

        run(story, most=4)

    def test_a_caller_makes_room_for_its_own_cheap_text(self, run) -> None:
        async def story(desk: Desk) -> None:
            await desk.busy()
            dear = desk.call("a", "b", price=10.0)
            await until(lambda: desk.batcher.load.waiting == 2)
            cheap = desk.call("c", price=1.0)
            with pytest.raises(ServiceUnavailable, match="others came first"):
                await dear
            desk.writer.go.set()
            assert await cheap == ["c!"]

        run(story, most=2)

    def test_more_texts_than_ever_fit(self, run) -> None:
        async def story(desk: Desk) -> None:
            with pytest.raises(ServiceUnavailable, match="no more than 3 texts can wait"):
                await desk.call(*"abcd")
            assert desk.batcher.load == Load(0, 0)
            assert desk.writer.batches == []

        run(story, most=3)

    def test_what_cannot_be_in_time_is_refused(self, run) -> None:
        async def story(desk: Desk) -> None:
            with pytest.raises(
                ServiceUnavailable, match=r"would take about \d+ s, and 60 s is the"
            ):
                await desk.call("a", price=1e9)
            assert desk.writer.batches == []
            assert await desk.call("b") == ["b!"]

        run(story)

    def test_the_work_of_another_counts_only_as_far_as_it_goes_before(self, run) -> None:
        async def story(desk: Desk) -> None:
            await desk.busy()
            desk.call("much", price=4e5, caller="one")  # of 6e5 that fit
            await until(lambda: desk.batcher.load.waiting == 1)
            with pytest.raises(ServiceUnavailable, match="would take"):
                await desk.call("more", price=4e5, caller="other")
            small = desk.call("small", price=1e4, caller="other")
            await until(lambda: desk.batcher.load.waiting == 2)
            desk.writer.go.set()
            assert await small == ["small!"]

        run(story)

    def test_what_has_become_hopeless_is_not_begun(self, run) -> None:
        async def story(desk: Desk) -> None:
            await desk.busy()
            late = desk.call("late", price=5000.0)  # half a second, as reckoned at first
            await until(lambda: desk.batcher.load.waiting == 1)
            await asyncio.sleep(0.6)
            desk.writer.go.set()
            with pytest.raises(TimeoutError):
                await late
            assert desk.writer.batches == [("busy",)]

        run(story, seconds=1.0)

    def test_a_caller_has_a_limit_of_texts(self, run) -> None:
        async def story(desk: Desk) -> None:
            await desk.busy()
            first = desk.call("a", "b", caller="one")
            await until(lambda: desk.batcher.load.waiting == 2)
            with pytest.raises(TooManyRequests, match="2 of your texts are in work, and 3 is the"):
                await desk.call("c", "d", caller="one")
            other = desk.call("c", "d", caller="other")
            desk.writer.go.set()
            assert await first + await other == ["a!", "b!", "c!", "d!"]
            assert await desk.call("c", "d", caller="one") == ["c!", "d!"]

        run(story, texts_in_work=3)

    def test_a_queue_that_stays_full_makes_it_busy(self, run, monkeypatch) -> None:
        monkeypatch.setattr("ledeline.server.admission._BUSY_AFTER", 0.05)

        async def story(desk: Desk) -> None:
            await desk.busy()
            assert not desk.batcher.is_busy
            desk.call(*"abcd")
            await until(lambda: desk.batcher.load.waiting == 4)
            assert not desk.batcher.is_busy
            await until(lambda: desk.batcher.is_busy)
            desk.writer.go.set()
            await until(lambda: not desk.batcher.is_busy)

        run(story, most=4)


class TestCallersThatLeave:
    def test_one_that_is_cancelled_gives_its_places_back(self, run) -> None:
        async def story(desk: Desk) -> None:
            await desk.busy()
            leaves, stays = desk.call("a", "b"), desk.call("c")
            await until(lambda: desk.batcher.load == Load(3, 1))
            leaves.cancel()
            with pytest.raises(asyncio.CancelledError):
                await leaves
            assert desk.batcher.load == Load(1, 1)
            comes = desk.call("d", "e")  # there is room again
            await until(lambda: desk.batcher.load == Load(3, 1))
            desk.writer.go.set()
            assert await stays + await comes == ["c!", "d!", "e!"]
            assert {text for one in desk.writer.batches for text in one} == {"busy", *"cde"}

        run(story, most=3)

    def test_one_whose_time_is_over_is_given_up(self, run) -> None:
        async def story(desk: Desk) -> None:
            desk.writer.steps_of = lambda _: 10**9
            with pytest.raises(TimeoutError):
                await desk.call("endless")
            await desk.rests()
            assert desk.writer.given_up == ["endless"]
            assert desk.watcher.given_up == 1

        run(story, seconds=0.1)

    def test_one_that_leaves_while_its_text_is_searched(self, run) -> None:
        async def story(desk: Desk) -> None:
            desk.writer.steps_of = lambda given: 10**9 if "leaves" in given else 2
            leaves = desk.call("leaves")
            await until(lambda: desk.writer.num_steps > 10)
            leaves.cancel()
            await desk.rests()
            assert desk.writer.given_up == ["leaves"]
            assert await desk.call("c") == ["c!"]

        run(story)

    def test_one_that_leaves_in_the_last_step_of_a_turn(self, run) -> None:
        async def story(desk: Desk) -> None:
            desk.writer.steps_of = lambda _: 10**9
            leaves = await desk.busy()
            await asyncio.sleep(0.02)  # longer than a turn, so that this step ends it
            leaves.cancel()
            await asyncio.wait([leaves])
            desk.writer.go.set()
            await desk.rests()
            assert (desk.writer.num_steps, desk.writer.given_up) == (1, ["busy"])
            assert desk.watcher.given_up == 1

        run(story)

    def test_the_others_of_its_slice_go_on(self, run) -> None:
        async def story(desk: Desk) -> None:
            await desk.busy()
            leaves, stays = desk.call("a"), desk.call("b")
            await until(lambda: desk.batcher.load == Load(2, 1))
            desk.writer.steps_of = lambda given: (
                2 if desk.writer.given_up or "a" not in given else 10**9
            )
            desk.writer.go.set()
            await until(lambda: desk.writer.batches[-1] == ("a", "b"))
            leaves.cancel()
            assert await stays == ["b!"]
            assert desk.writer.given_up == ["a"]

        run(story)

    def test_a_slice_that_was_put_aside_is_given_up_at_once(self, run) -> None:
        async def story(desk: Desk) -> None:
            desk.writer.steps_of = lambda given: 10**9 if "long" in given else 2
            long = desk.call("long", price=1000.0, caller="one")
            await until(lambda: desk.writer.num_steps > 10)
            desk.writer.go.clear()  # the thread waits in a step of one or the other
            short = desk.call("short", caller="other")
            await until(lambda: desk.batcher.load != Load(0, 1))
            desk.writer.go.set()
            await short
            long.cancel()
            await desk.rests()
            assert desk.writer.given_up == ["long"]

        run(story)

    def test_one_that_leaves_with_texts_running_and_waiting(self, run) -> None:
        async def story(desk: Desk) -> None:
            desk.writer.go.clear()
            leaves = desk.call("a", "b", "c", "d")
            await desk.is_in_a_step()
            assert desk.batcher.load == Load(2, 2)
            leaves.cancel()
            await asyncio.wait([leaves])
            assert desk.batcher.load == Load(0, 2)  # until the step ends
            desk.writer.go.set()
            assert await desk.call("e") == ["e!"]
            assert desk.writer.batches == [("a", "b"), ("e",)]
            assert desk.writer.given_up == ["a", "b"]

        run(story, texts=2)

    def test_all_leave_in_the_window(self, run) -> None:
        async def story(desk: Desk) -> None:
            leaves = desk.call("a")
            await until(lambda: desk.batcher.load == Load(1, 0))
            leaves.cancel()
            await asyncio.wait([leaves])
            assert desk.batcher.load == Load(0, 0)
            assert await desk.call("b") == ["b!"]
            assert desk.writer.batches == [("b",)]

        run(story, window=0.05)


class TestFailures:
    def test_one_text_spoils_only_its_own_answer(self, run) -> None:
        async def story(desk: Desk) -> None:
            await desk.busy()
            desk.writer.fails = lambda given: "poison" in given
            callers = [desk.call("a"), desk.call("poison"), desk.call("c")]
            await until(lambda: desk.batcher.load == Load(3, 1))
            desk.writer.go.set()
            await asyncio.wait(callers)
            assert await callers[0] == ["a!"]
            assert isinstance(callers[1].exception(), ValueError)
            assert await callers[2] == ["c!"]
            assert desk.writer.batches[1] == ("a", "poison", "c")
            assert await desk.call("d") == ["d!"]

        run(story)

    def test_a_caller_with_two_of_them_gets_one_error(self, run) -> None:
        async def story(desk: Desk) -> None:
            desk.writer.fails = lambda given: "poison" in given
            with pytest.raises(ValueError, match="cannot write about 1 texts"):
                await desk.call("poison", "a", "poison", *["b"] * 5)
            assert await desk.call("c") == ["c!"]

        run(story, texts=3)

    def test_too_few_answers_are_a_failure_that_the_others_survive(self, run) -> None:
        async def story(desk: Desk) -> None:
            desk.writer.most_answers = 0
            for _ in range(2):
                with pytest.raises(RuntimeError, match="no result"):
                    await desk.call("a", "b")
            desk.writer.most_answers = None
            assert await desk.call("c") == ["c!"]

        run(story)


class TestTheEnd:
    def test_waiting_ones_are_refused_and_running_ones_answered(self, run) -> None:
        async def story(desk: Desk) -> None:
            running = await desk.busy()
            waiting = [desk.call("a", "b"), desk.call("c", options=EXPLAINED)]
            await until(lambda: desk.batcher.load == Load(3, 1))
            assert desk.batcher.is_open
            desk.batcher.drain()
            assert not desk.batcher.is_open
            assert desk.batcher.load == Load(0, 1)
            for one in waiting:
                with pytest.raises(ServiceUnavailable, match="shutting down"):
                    await one
            with pytest.raises(ServiceUnavailable, match="shutting down"):
                await desk.call("late")
            assert not running.done()
            desk.writer.go.set()
            assert await running == ["busy!"]
            assert desk.writer.batches == [("busy",)]

        run(story)

    def test_what_cannot_end_in_time_is_given_up_at_once(self, run) -> None:
        async def story(desk: Desk) -> None:
            desk.writer.steps_of = lambda _: 10**9
            dear = desk.call("dear", price=1e5)  # ten seconds, as reckoned at first
            await until(lambda: desk.writer.num_steps > 10)
            desk.batcher.drain()
            with pytest.raises(ServiceUnavailable, match="shutting down"):
                await dear
            await desk.rests()
            assert desk.writer.given_up == ["dear"]

        run(story, drain_seconds=1.0)

    def test_closing_gives_up_what_runs(self, run) -> None:
        async def story(desk: Desk) -> None:
            desk.writer.steps_of = lambda _: 10**9
            running = desk.call("endless")
            await until(lambda: desk.writer.num_steps > 10)
            await desk.batcher.close()
            with pytest.raises(ServiceUnavailable, match="shutting down"):
                await running
            assert desk.writer.given_up == ["endless"]

        run(story)

    def test_closing_one_that_never_worked_or_is_closed_already(self, run) -> None:
        async def story(desk: Desk) -> None:
            await desk.batcher.close()
            await desk.batcher.close()

        run(story)

    def test_draining_in_the_window(self, run) -> None:
        async def story(desk: Desk) -> None:
            caller = desk.call("a")
            await until(lambda: desk.batcher.load == Load(1, 0))
            desk.batcher.drain()
            with pytest.raises(ServiceUnavailable, match="shutting down"):
                await caller
            assert desk.writer.batches == []

        run(story, window=0.05)

    def test_draining_when_a_caller_has_just_left(self, run) -> None:
        async def story(desk: Desk) -> None:
            await desk.busy()
            leaves = desk.call("a", "b")
            await until(lambda: desk.batcher.load == Load(2, 1))
            leaves.cancel()
            desk.batcher.drain()
            await asyncio.wait([leaves])
            assert leaves.cancelled() or isinstance(leaves.exception(), ServiceUnavailable)

        run(story)
