import asyncio
import gc
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from ledeline.config import SearchConfig
from ledeline.inference.headline import Headline, HeadlineWarning
from ledeline.inference.headliner import Options
from ledeline.server.batcher import MIN_RETRY_AFTER, Batcher, Load, ServiceUnavailable
from ledeline.server.settings import BatchingConfig

PLAIN = Options()
EXPLAINED = Options(explain=True)
PATIENCE = 60  # seconds until a test gives up


class Writer:
    """Writes headlines at once, or when it may; tells what it was given."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, ...]] = []
        self.options: list[Options] = []
        self.threads: set[str] = set()
        self.go = threading.Event()
        self.go.set()
        self.fails: Callable[[Sequence[object]], bool] = lambda _: False

    def __call__(
        self, texts: Sequence[object], options: Options, *, first: int = 1
    ) -> list[Headline]:
        self.batches.append(tuple(map(str, texts)))
        self.options.append(options)
        self.threads.add(threading.current_thread().name)
        assert self.go.wait(PATIENCE)
        if self.fails(texts):
            raise ValueError(f"cannot write about {len(texts)} texts")
        return [
            Headline(str(text), f"{text}!")
            if text
            else Headline(
                "", "", warnings=(HeadlineWarning("empty", f"text {number} has no words"),)
            )
            for number, text in enumerate(texts, start=first)
        ]


class Watcher:
    def __init__(self) -> None:
        self.sizes: list[int] = []

    def observe_batch(self, num_texts: int, seconds: float) -> None:
        assert seconds >= 0
        self.sizes.append(num_texts)


class Desk:
    """A batcher with its writer, and callers."""

    def __init__(self, writer: Writer, *, most: int = 100, **batching: Any) -> None:
        self.writer, self.watcher = writer, Watcher()
        settings = BatchingConfig(**{"window_ms": 0.0, **batching})
        self.batcher = Batcher(writer, settings, most, self.watcher)
        self.callers: list[asyncio.Task[list[Headline]]] = []

    def call(
        self, *texts: str, options: Options = PLAIN, seconds: float = PATIENCE
    ) -> "asyncio.Task[list[Headline]]":
        task = asyncio.create_task(self.batcher.submit(texts, options, seconds))
        self.callers.append(task)
        return task

    async def busy(self) -> "asyncio.Task[list[Headline]]":
        """A caller whose text is being worked on until `writer.go` is set."""
        self.writer.go.clear()
        caller = self.call("busy")
        await until(lambda: self.batcher.load == Load(0, 1))
        return caller


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.001)


def texts(answers: Sequence[Headline]) -> list[str]:
    return [one.text for one in answers]


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
            callers = [desk.call("a", "b"), desk.call("c"), desk.call("d", "e", "f")]
            found = [texts(await one) for one in callers]
            assert found == [["a!", "b!"], ["c!"], ["d!", "e!", "f!"]]
            assert desk.writer.batches == [("a", "b", "c", "d", "e", "f")]
            assert desk.watcher.sizes == [6]

        run(story)

    def test_what_comes_while_a_batch_runs_is_the_next_one(self, run) -> None:
        async def story(desk: Desk) -> None:
            first = await desk.busy()
            others = [desk.call(text) for text in "abc"]
            await until(lambda: desk.batcher.load == Load(3, 1))
            desk.writer.go.set()
            assert texts(await first) == ["busy!"]
            assert [texts(await one) for one in others] == [["a!"], ["b!"], ["c!"]]
            assert desk.writer.batches == [("busy",), ("a", "b", "c")]

        run(story)

    @pytest.mark.parametrize("rounds", [1, 2])  # the window is there for the first text ever, too
    def test_the_first_text_waits_for_others(self, run, rounds: int) -> None:
        async def story(desk: Desk) -> None:
            for number in range(1, rounds + 1):
                first = desk.call("a")
                for _ in range(5):  # a while later, in steps of the event loop
                    await asyncio.sleep(0)
                second = desk.call("b")
                assert texts(await first) + texts(await second) == ["a!", "b!"]
                assert desk.writer.batches == [("a", "b")] * number

        run(story, window_ms=500.0)

    def test_a_text_alone_is_answered_after_the_window(self, run) -> None:
        async def story(desk: Desk) -> None:
            assert texts(await desk.call("a")) == ["a!"]
            assert texts(await desk.call("b")) == ["b!"]
            assert desk.writer.batches == [("a",), ("b",)]

        run(story, window_ms=1.0)

    def test_options_are_never_mixed(self, run) -> None:
        async def story(desk: Desk) -> None:
            beam = Options(search=SearchConfig(beam=3))
            same = Options(search=SearchConfig(beam=3))
            await desk.busy()
            asked = [("a", PLAIN), ("b", beam), ("c", EXPLAINED), ("d", PLAIN), ("e", same)]
            callers = [desk.call(text, options=options) for text, options in asked]
            await until(lambda: desk.batcher.load.waiting == 5)
            desk.writer.go.set()
            assert [texts(await one) for one in callers] == [[f"{text}!"] for text, _ in asked]
            assert desk.writer.batches == [("busy",), ("a", "d"), ("b", "e"), ("c",)]
            assert desk.writer.options == [PLAIN, PLAIN, beam, EXPLAINED]

        run(story)

    def test_batches_have_a_size_and_keep_the_order(self, run) -> None:
        async def story(desk: Desk) -> None:
            asked = [str(number) for number in range(10)]
            assert texts(await desk.call(*asked)) == [f"{text}!" for text in asked]
            assert [len(batch) for batch in desk.writer.batches] == [4, 4, 2]
            assert [text for batch in desk.writer.batches for text in batch] == asked
            assert desk.watcher.sizes == [4, 4, 2]

        run(story, texts=4)

    def test_one_thread_does_the_work(self, run) -> None:
        async def story(desk: Desk) -> None:
            await asyncio.gather(*(desk.call(text) for text in "abcdef"))
            assert len(desk.writer.batches) == 6
            assert len(desk.writer.threads) == 1
            assert threading.current_thread().name not in desk.writer.threads

        run(story, texts=1)

    def test_no_text_has_no_answers(self, run) -> None:
        async def story(desk: Desk) -> None:
            assert await desk.call() == []

        run(story)

    def test_warnings_count_the_texts_of_a_caller(self, run) -> None:
        async def story(desk: Desk) -> None:
            callers = [desk.call("a", ""), desk.call("", "b"), desk.call("c", "d", "", "")]
            said = [[[w.message for w in one.warnings] for one in await who] for who in callers]
            assert said == [
                [[], ["text 2 has no words"]],
                [["text 1 has no words"], []],
                [[], [], ["text 3 has no words"], ["text 4 has no words"]],
            ]

        run(story, texts=3)


class TestFairness:
    def test_a_text_behind_a_caller_with_many_waits_for_these_only(self, run) -> None:
        async def story(desk: Desk) -> None:
            await desk.busy()
            desk.call(*(f"many {number}" for number in range(64)))
            single = desk.call("single")
            await until(lambda: desk.batcher.load.waiting == 65)
            more = [desk.call(*["late"] * 5) for _ in range(5)]
            desk.writer.go.set()
            await single
            (place,) = (n for n, batch in enumerate(desk.writer.batches) if "single" in batch)
            assert place <= 1 + 64 // 16  # the one that ran, and those of the many
            await asyncio.gather(*more)

        run(story, texts=16)

    def test_a_text_with_rare_options_is_not_passed_by_for_ever(self, run) -> None:
        async def story(desk: Desk) -> None:
            await desk.busy()
            desk.call(*["many"] * 8)
            rare = desk.call("rare", options=EXPLAINED)
            desk.call(*["many"] * 40)
            await until(lambda: desk.batcher.load.waiting == 49)
            desk.writer.go.set()
            await rare
            assert desk.writer.batches.index(("rare",)) == 3  # busy, and twice four that were there

        run(story, texts=4)


class TestRefusals:
    def test_a_full_queue_refuses_at_once_and_says_when_to_come_back(self, run) -> None:
        async def story(desk: Desk) -> None:
            await desk.busy()
            waiting = desk.call("a", "b")
            await until(lambda: desk.batcher.load == Load(2, 1))
            with pytest.raises(ServiceUnavailable, match="2 texts are waiting already") as refused:
                await desk.batcher.submit(["c", "d"], PLAIN, PATIENCE)
            assert refused.value.retry_after >= MIN_RETRY_AFTER
            assert desk.batcher.load == Load(2, 1)
            fits = desk.call("c")
            await until(lambda: desk.batcher.load == Load(3, 1))
            desk.writer.go.set()
            assert texts(await waiting) + texts(await fits) == ["a!", "b!", "c!"]
            assert texts(await desk.batcher.submit("xyz", PLAIN, PATIENCE)) == ["x!", "y!", "z!"]

        run(story, most=3)

    def test_the_longer_the_queue_the_later(self, run) -> None:
        async def story(desk: Desk) -> None:
            await desk.busy()
            desk.call(*["a"] * 1000)
            await until(lambda: desk.batcher.load.waiting == 1000)
            with pytest.raises(ServiceUnavailable) as refused:
                await desk.batcher.submit(["b"], PLAIN, PATIENCE)
            assert refused.value.retry_after > 10 * MIN_RETRY_AFTER

        run(story, most=1000)

    def test_more_texts_than_ever_fit(self, run) -> None:
        async def story(desk: Desk) -> None:
            with pytest.raises(ServiceUnavailable, match="no more than 3 texts can wait"):
                await desk.batcher.submit("abcd", PLAIN, PATIENCE)
            assert desk.batcher.load == Load(0, 0)
            assert desk.writer.batches == []

        run(story, most=3)


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
            desk.writer.go.set()
            assert texts(await stays) + texts(await comes) == ["c!", "d!", "e!"]
            assert desk.writer.batches == [("busy",), ("c", "d", "e")]

        run(story, most=3)

    def test_one_whose_time_is_over_gives_its_places_back(self, run) -> None:
        async def story(desk: Desk) -> None:
            await desk.busy()
            late, stays = desk.call("a", "b", seconds=0.01), desk.call("c")
            with pytest.raises(TimeoutError):
                await late
            assert desk.batcher.load == Load(1, 1)
            desk.writer.go.set()
            assert texts(await stays) == ["c!"]
            assert desk.writer.batches == [("busy",), ("c",)]

        run(story)

    @pytest.mark.parametrize("fails", [False, True])
    def test_what_runs_when_its_caller_leaves_runs_to_its_end(self, run, fails: bool) -> None:
        async def story(desk: Desk) -> None:
            desk.writer.go.clear()
            desk.writer.fails = lambda given: fails and "a" in given
            leaves, stays = desk.call("a"), desk.call("b")
            await until(lambda: desk.batcher.load == Load(0, 2))
            leaves.cancel()
            with pytest.raises(asyncio.CancelledError):
                await leaves
            assert desk.batcher.load == Load(0, 2)
            desk.writer.go.set()
            assert texts(await stays) == ["b!"]
            assert texts(await desk.call("c")) == ["c!"]

        run(story)

    def test_one_that_leaves_with_texts_running_and_waiting(self, run) -> None:
        async def story(desk: Desk) -> None:
            desk.writer.go.clear()
            leaves = desk.call("a", "b", "c", "d")
            await until(lambda: desk.batcher.load == Load(2, 2))
            leaves.cancel()
            await asyncio.wait([leaves])
            assert desk.batcher.load == Load(0, 2)
            desk.writer.go.set()
            assert texts(await desk.call("e")) == ["e!"]
            assert desk.writer.batches == [("a", "b"), ("e",)]

        run(story, texts=2)

    def test_all_leave_in_the_window(self, run) -> None:
        async def story(desk: Desk) -> None:
            leaves = desk.call("a")
            await until(lambda: desk.batcher.load == Load(1, 0))
            leaves.cancel()
            await asyncio.wait([leaves])
            assert desk.batcher.load == Load(0, 0)
            assert texts(await desk.call("b")) == ["b!"]
            assert desk.writer.batches == [("b",)]

        run(story, window_ms=50.0)


class TestFailures:
    def test_one_text_spoils_only_its_own_answer(self, run) -> None:
        async def story(desk: Desk) -> None:
            desk.writer.fails = lambda given: "poison" in given
            callers = [desk.call("a", "b"), desk.call("poison"), desk.call("c")]
            await asyncio.wait(callers)
            assert texts(callers[0].result()) == ["a!", "b!"]
            assert isinstance(callers[1].exception(), ValueError)
            assert texts(callers[2].result()) == ["c!"]
            assert desk.watcher.sizes == [4]
            assert texts(await desk.call("d")) == ["d!"]

        run(story)

    def test_a_caller_with_two_of_them_gets_one_error(self, run) -> None:
        async def story(desk: Desk) -> None:
            desk.writer.fails = lambda given: "poison" in given
            with pytest.raises(ValueError, match="cannot write about 1 texts"):
                await desk.call("poison", "a", "poison", *["b"] * 5)
            assert texts(await desk.call("c")) == ["c!"]

        run(story, texts=3)

    def test_the_numbers_stay_right_when_each_is_tried_alone(self, run) -> None:
        async def story(desk: Desk) -> None:
            desk.writer.fails = lambda given: len(given) > 1
            answers = await desk.call("a", "b", "")
            assert [w.message for w in answers[2].warnings] == ["text 3 has no words"]

        run(story)

    def test_too_few_answers_are_a_failure_that_the_others_survive(self, run) -> None:
        async def story(desk: Desk) -> None:
            short = Batcher(
                lambda given, options, *, first=1: [], BatchingConfig(), 9, desk.watcher
            )
            for _ in range(2):
                with pytest.raises(ValueError, match="zip"):
                    await short.submit(["a", "b"], PLAIN, PATIENCE)
            await short.close()

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
                await desk.batcher.submit(["late"], PLAIN, PATIENCE)
            assert not running.done()
            desk.writer.go.set()
            assert texts(await running) == ["busy!"]
            assert desk.writer.batches == [("busy",)]

        run(story)

    def test_closing_waits_for_what_runs(self, run) -> None:
        async def story(desk: Desk) -> None:
            running = await desk.busy()
            closing = asyncio.create_task(desk.batcher.close())
            await until(lambda: not desk.batcher.is_open)
            assert not closing.done()
            desk.writer.go.set()
            await closing
            await asyncio.sleep(0)
            assert texts(await running) == ["busy!"]

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

        run(story, window_ms=50.0)

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
