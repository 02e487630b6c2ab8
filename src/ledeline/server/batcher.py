"""Texts of many callers, worked on together.

All that waits is known to the event loop alone, so nothing here needs a lock; the search itself
runs in one thread beside it. While a batch is worked on, the next one gathers by itself; between
two that are not full there is a moment, so that callers just answered can come back: else they fall
into groups that wait for each other.
"""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from ledeline.inference.headline import Headline
from ledeline.inference.headliner import Options
from ledeline.server.settings import Batching

SECONDS_TO_RETRY: Final = 1.0  # at least, as what is told to those who are sent away
MOST_WINDOWS: Final = 5  # that a batch waits while others keep coming


class Refused(Exception):
    """There is no room, or no time: come back after so many seconds."""

    def __init__(self, sentence: str, seconds: float) -> None:
        super().__init__(sentence)
        self.seconds = max(seconds, SECONDS_TO_RETRY)


class Answering(Protocol):
    """What writes the headlines; its warnings count the texts from `first`."""

    def __call__(
        self, texts: Sequence[object], options: Options, *, first: int = 1
    ) -> list[Headline]:
        """One headline for each text, in order."""


class Watching(Protocol):
    """Who counts what goes on."""

    def batch(self, num_texts: int, seconds: float) -> None:
        """A batch of so many texts was answered."""


@dataclass(eq=False)
class _Waiting:
    text: str
    number: int  # among the texts of its caller, from 1
    options: Options
    answer: "asyncio.Future[Headline]"


class Load(NamedTuple):
    """What there is to do."""

    waiting: int  # texts
    running: int


class Batcher:
    """Answers texts, some at a time, each as if it were alone."""

    def __init__(
        self, answers: Answering, settings: Batching, most_waiting: int, watching: Watching
    ) -> None:
        self._answers, self._settings, self._most = answers, settings, most_waiting
        self._watching = watching
        self._queue: deque[_Waiting] = deque()
        self._running = 0
        self._arrived = asyncio.Event()
        self._closed = False
        self._seconds_a_text = 0.05  # lately
        self._thread = ThreadPoolExecutor(1, "headlines")
        self._worker: asyncio.Task[None] | None = None

    @property
    def load(self) -> Load:
        """What there is to do now."""
        return Load(len(self._queue), self._running)

    @property
    def is_open(self) -> bool:
        """Whether texts are taken."""
        return not self._closed

    async def submit(
        self, texts: Sequence[str], options: Options, seconds: float
    ) -> list[Headline]:
        """The headlines of texts; `Refused`, or `TimeoutError` where they are not there in time.

        Whoever is cancelled, or runs out of time, gives the places of its texts back at once.
        """
        if self._closed:
            raise Refused("the server is shutting down", SECONDS_TO_RETRY)
        if len(texts) > self._most:
            raise Refused(f"no more than {self._most} texts can wait", SECONDS_TO_RETRY)
        if len(self._queue) + len(texts) > self._most:
            wait = self._seconds_a_text * len(self._queue)
            raise Refused(f"{len(self._queue)} texts are waiting already", wait)
        loop = asyncio.get_running_loop()
        mine = [
            _Waiting(text, number, options, loop.create_future())
            for number, text in enumerate(texts, start=1)
        ]
        self._queue.extend(mine)
        self._begin()
        self._arrived.set()
        try:
            async with asyncio.timeout(seconds):
                return list(await asyncio.gather(*(one.answer for one in mine)))
        finally:
            self._forget(mine)

    def _forget(self, mine: Sequence[_Waiting]) -> None:
        """Take back what is not needed any more; what runs already runs to its end."""
        left = {one for one in mine if not one.answer.done() or one.answer.cancelled()}
        if left:
            self._queue = deque(one for one in self._queue if one not in left)
        for one in left:
            one.answer.cancel()

    # --- the work -----------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())

    async def _work(self) -> None:
        lately = 1
        while not self._closed:
            await self._arrived.wait()
            await self._gather(lately)
            while batch := self._take():
                await self._run(batch)
                lately = len(batch) + len(self._queue)
                await self._gather(lately)
            self._arrived.clear()

    async def _gather(self, lately: int) -> None:
        """Wait a moment for others: until there are as many as lately, or nobody comes."""
        for _ in range(MOST_WINDOWS):
            there = len(self._queue)
            if there >= self._settings.texts or self._closed:
                return
            await asyncio.sleep(self._settings.window_ms / 1000)
            if len(self._queue) >= lately or len(self._queue) == there:
                return

    def _take(self) -> list[_Waiting]:
        """The texts that wait longest, with one kind of options."""
        if not self._queue:
            return []
        options = self._queue[0].options
        same = [one for one in self._queue if one.options == options]
        taken = same[: self._settings.texts]
        gone = set(taken)
        self._queue = deque(one for one in self._queue if one not in gone)
        return taken

    async def _run(self, batch: list[_Waiting]) -> None:
        loop, began = asyncio.get_running_loop(), time.perf_counter()
        self._running = len(batch)
        try:
            answers = await loop.run_in_executor(self._thread, self._answer, batch)
        finally:
            self._running = 0
        seconds = time.perf_counter() - began
        self._seconds_a_text += 0.2 * (seconds / len(batch) - self._seconds_a_text)
        self._watching.batch(len(batch), seconds)
        for one, answer in zip(batch, answers, strict=True):
            if one.answer.done():
                continue  # the caller went away meanwhile
            if isinstance(answer, Exception):
                one.answer.set_exception(answer)
            else:
                one.answer.set_result(answer)

    def _answer(self, batch: Sequence[_Waiting]) -> Sequence[Headline | Exception]:
        """The answers; where one text spoils the batch, each is tried alone."""
        texts, options = [one.text for one in batch], batch[0].options
        try:
            answers = self._answers(texts, options, first=batch[0].number)
            numbers = range(batch[0].number, batch[0].number + len(batch))
            return [
                # a text without a headline is told by its number, which is that of its caller
                answer if answer or one.number == number else self._alone(one)
                for one, number, answer in zip(batch, numbers, answers, strict=True)
            ]
        except Exception as error:
            if len(batch) == 1:
                return [error]
            return [answer for one in batch for answer in self._answer([one])]

    def _alone(self, one: _Waiting) -> Headline:
        return self._answers([one.text], one.options, first=one.number)[0]

    # --- the end ------------------------------------------------------------------------------

    def drain(self) -> None:
        """Take nothing more, and send away what waits; what runs is answered."""
        self._closed = True
        for one in self._queue:
            if not one.answer.done():
                one.answer.set_exception(Refused("the server is shutting down", SECONDS_TO_RETRY))
        self._queue.clear()
        self._arrived.set()

    async def close(self) -> None:
        """Drain, and wait for what runs."""
        self.drain()
        if self._worker is not None:
            await self._worker
        self._thread.shutdown()
