"""Dynamic batching: texts of many callers are searched together.

Only the event loop touches the queue, so no lock is needed; the search runs in a thread of its own.
While one batch runs, the next one fills up by itself. Before a batch that is not full there is a
short pause, so that callers who have just been answered can send their next text. Without it they
would split into groups that wait for each other.
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
from ledeline.server.settings import BatchingConfig

MIN_RETRY_AFTER: Final = 1.0  # seconds
MAX_WINDOWS: Final = 5  # that a batch waits while more texts keep arriving
_SMOOTHING: Final = 0.2  # of the running mean of the seconds per text


class ServiceUnavailable(Exception):
    """The queue is full, or the server is shutting down; retry after `retry_after` seconds."""

    def __init__(self, message: str, retry_after: float = MIN_RETRY_AFTER) -> None:
        super().__init__(message)
        self.retry_after = max(retry_after, MIN_RETRY_AFTER)


class GenerateBatch(Protocol):
    """Writes headlines, as `Headliner.generate_batch` does."""

    def __call__(
        self, texts: Sequence[object], options: Options, *, first: int = 1
    ) -> list[Headline]:
        """One headline for each text, in order; warnings number the texts from `first`."""


class BatchObserver(Protocol):
    """Is told about every batch, for the metrics."""

    def observe_batch(self, num_texts: int, seconds: float) -> None:
        """Count a batch that has ended."""


@dataclass(eq=False)
class _QueuedText:
    text: str
    number: int  # among the texts of its request, from 1
    options: Options
    headline: "asyncio.Future[Headline]"


class Load(NamedTuple):
    """How many texts are queued and how many are being searched."""

    waiting: int
    running: int


class Batcher:
    """Collects texts into batches; each text gets the headline it would get alone."""

    def __init__(
        self,
        generate_batch: GenerateBatch,
        settings: BatchingConfig,
        max_waiting: int,
        observer: BatchObserver,
    ) -> None:
        self._generate_batch, self._settings = generate_batch, settings
        self._max_waiting, self._observer = max_waiting, observer
        self._queue: deque[_QueuedText] = deque()
        self._running = 0
        self._arrived = asyncio.Event()
        self._closed = False
        self._seconds_per_text = 0.05  # a running mean
        self._thread = ThreadPoolExecutor(1, "headlines")
        self._worker: asyncio.Task[None] | None = None

    @property
    def load(self) -> Load:
        """The current load."""
        return Load(len(self._queue), self._running)

    @property
    def is_open(self) -> bool:
        """Whether texts are accepted."""
        return not self._closed

    async def submit(
        self, texts: Sequence[str], options: Options, seconds: float
    ) -> list[Headline]:
        """Write the headlines of texts within so many seconds.

        Raises `ServiceUnavailable`, or `TimeoutError`. When the caller is cancelled or runs out of
        time, its texts leave the queue at once.
        """
        self._check_room(len(texts))
        loop = asyncio.get_running_loop()
        queued = [
            _QueuedText(text, number, options, loop.create_future())
            for number, text in enumerate(texts, start=1)
        ]
        self._queue.extend(queued)
        if self._worker is None:
            self._worker = asyncio.create_task(self._run_batches())
        self._arrived.set()
        try:
            async with asyncio.timeout(seconds):
                return list(await asyncio.gather(*(one.headline for one in queued)))
        finally:
            self._remove_unfinished(queued)

    def _check_room(self, num_texts: int) -> None:
        if self._closed:
            raise ServiceUnavailable("the server is shutting down")
        if num_texts > self._max_waiting:
            raise ServiceUnavailable(f"no more than {self._max_waiting} texts can wait")
        num_waiting = len(self._queue)
        if num_waiting + num_texts > self._max_waiting:
            wait = self._seconds_per_text * num_waiting
            raise ServiceUnavailable(f"{num_waiting} texts are waiting already", wait)

    def _remove_unfinished(self, queued: Sequence[_QueuedText]) -> None:
        """Take texts off the queue that nobody waits for; a batch that runs is finished."""
        left = {one for one in queued if not one.headline.done() or one.headline.cancelled()}
        if left:
            self._queue = deque(one for one in self._queue if one not in left)
        for one in left:
            one.headline.cancel()

    # --- batches ------------------------------------------------------------------------------

    async def _run_batches(self) -> None:
        """Run batch after batch; the worker task."""
        recent = 1  # texts that were there lately, and may come again
        while not self._closed:
            await self._arrived.wait()
            await self._wait_for_more(recent)
            while batch := self._next_batch():
                await self._run(batch)
                recent = len(batch) + len(self._queue)
                await self._wait_for_more(recent)
            self._arrived.clear()

    async def _wait_for_more(self, recent: int) -> None:
        """Wait until the queue is as long as it was recently, or until no more texts arrive."""
        for _ in range(MAX_WINDOWS):
            length = len(self._queue)
            if length >= self._settings.texts or self._closed:
                return
            await asyncio.sleep(self._settings.window_ms / 1000)
            if len(self._queue) >= recent or len(self._queue) == length:
                return

    def _next_batch(self) -> list[_QueuedText]:
        """Take the oldest text, and the next ones that have the same options."""
        if not self._queue:
            return []
        options = self._queue[0].options
        same = [one for one in self._queue if one.options == options]
        batch = same[: self._settings.texts]
        taken = set(batch)
        self._queue = deque(one for one in self._queue if one not in taken)
        return batch

    async def _run(self, batch: list[_QueuedText]) -> None:
        """Search a batch in the thread, and give the callers their headlines."""
        loop, began = asyncio.get_running_loop(), time.perf_counter()
        self._running = len(batch)
        try:
            results = await loop.run_in_executor(self._thread, self._generate, batch)
        finally:
            self._running = 0
        seconds = time.perf_counter() - began
        self._seconds_per_text += _SMOOTHING * (seconds / len(batch) - self._seconds_per_text)
        self._observer.observe_batch(len(batch), seconds)
        for one, result in zip(batch, results, strict=True):
            if one.headline.done():
                continue  # the caller has disconnected
            if isinstance(result, Exception):
                one.headline.set_exception(result)
            else:
                one.headline.set_result(result)

    def _generate(self, batch: Sequence[_QueuedText]) -> Sequence[Headline | Exception]:
        """The headlines of a batch; if the search fails, each text is tried alone."""
        texts, first = [one.text for one in batch], batch[0].number
        try:
            headlines = self._generate_batch(texts, batch[0].options, first=first)
            return [
                # A warning names the text's number in its own request, which may be another here.
                headline if headline or one.number == number else self._generate_alone(one)
                for number, (one, headline) in enumerate(
                    zip(batch, headlines, strict=True), start=first
                )
            ]
        except Exception as error:
            if len(batch) == 1:
                return [error]
            return [result for one in batch for result in self._generate([one])]

    def _generate_alone(self, one: _QueuedText) -> Headline:
        return self._generate_batch([one.text], one.options, first=one.number)[0]

    # --- the end ------------------------------------------------------------------------------

    def drain(self) -> None:
        """Accept no more texts and refuse those that wait; the running batch is finished."""
        self._closed = True
        for one in self._queue:
            if not one.headline.done():
                one.headline.set_exception(ServiceUnavailable("the server is shutting down"))
        self._queue.clear()
        self._arrived.set()

    async def close(self) -> None:
        """Drain, and wait for the running batch."""
        self.drain()
        if self._worker is not None:
            await self._worker
        self._thread.shutdown()
