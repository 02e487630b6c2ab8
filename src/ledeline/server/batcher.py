"""The texts of many callers, searched by a few threads.

Admitted requests wait in a `FairSchedule`, which shares the time. Each thread takes a slice of
texts, searches for a few milliseconds, and asks again whose turn it is. When a caller leaves or its
time is over, its texts are given up at the next step. One lock guards the schedule; callers live in
the event loop, and are answered there.
"""

import asyncio
import time
from collections.abc import Collection, Sequence
from concurrent.futures import Executor
from threading import Condition
from typing import Any, Final, NamedTuple, Protocol

from ledeline.inference.checks.check import Check
from ledeline.inference.checks.checking import PairText
from ledeline.inference.headline import Headline
from ledeline.inference.options import Options
from ledeline.inference.source_text import SourceText
from ledeline.server.admission import Admission, AdmissionLimits, ServiceUnavailable
from ledeline.server.callers import CallerLimits
from ledeline.server.schedule import FairSchedule, QueuedRequest, Slice

_TURN: Final = 0.010  # seconds of work until the next question whose turn it is


class StepwiseGeneration(Protocol):
    """Headlines or checks in the making, as `Generation` and `Checking` of `ledeline.inference`."""

    done: bool

    @property
    def results(self) -> list[Any]:
        """One for each text; None: not yet, or given up."""

    def advance(self) -> None:
        """Take a step."""

    def give_up(self, rows: Collection[int]) -> None:
        """Make nothing of these texts."""


class HeadlineSource(Protocol):
    """What the batcher asks for headlines and checks."""

    def begin(self, texts: Sequence[Any], options: Options | None) -> StepwiseGeneration:
        """Begin to generate headlines or, without options, to check; nothing is computed yet."""

    def encode(self, result: Headline | Check, *, heat_map: bool) -> bytes:
        """A headline or a check as callers get it."""


class BatchObserver(Protocol):
    """Is told about every slice, for the metrics."""

    def observe_batch(self, num_texts: int, num_given_up: int, seconds: float) -> None:
        """Count a slice that has ended."""


class Load(NamedTuple):
    """How many texts wait and how many are searched."""

    waiting: int
    running: int


class Batcher:
    """Searches texts in slices; each text gets the headline it would get alone."""

    def __init__(
        self,
        source: HeadlineSource,
        schedule: FairSchedule,
        limits: AdmissionLimits,
        caller_limits: CallerLimits,
        observer: BatchObserver,
        drain_seconds: float = 0.0,
    ) -> None:
        self._source, self._schedule, self._observer = source, schedule, observer
        self._limits, self._drain_seconds = limits, drain_seconds
        self._admission = Admission(schedule, limits, caller_limits)
        self._changed = Condition()
        self._threads: Executor | None = None
        self._num_idle = 0
        self._closed = self._ended = False

    def start(self, threads: Executor, num_threads: int) -> None:
        """Let so many threads of a pool work until `close`, which shuts it down."""
        self._threads, self._admission.num_threads = threads, num_threads
        for _ in range(num_threads):
            threads.submit(self._work)

    @property
    def load(self) -> Load:
        """The current load."""
        with self._changed:
            return Load(self._schedule.num_waiting, self._schedule.num_searched)

    @property
    def is_open(self) -> bool:
        """Whether texts are accepted."""
        return not self._closed

    @property
    def is_busy(self) -> bool:
        """Whether the queue has been full for a while."""
        with self._changed:
            return self._admission.is_busy

    async def submit(
        self,
        sources: Sequence[SourceText | PairText],
        prices: Sequence[float],
        options: Options | None,
        *,
        caller: str = "",
        heat_map: bool = False,
    ) -> list[bytes]:
        """Write the headlines of texts, which have these expected prices; each comes encoded.

        Without options the texts are pairs, and are checked.
        Raises `ServiceUnavailable`, `TooManyRequests` or `TimeoutError`. When the caller is
        cancelled or runs out of time, its texts are given up.
        """
        reply, now = _Reply(asyncio.get_running_loop()), time.monotonic()
        seconds = self._limits.seconds
        request = QueuedRequest(caller, options, heat_map, now + seconds, now, reply)
        for source, price in zip(sources, prices, strict=True):
            request.add(source, price)
        if not request.texts:
            return []
        with self._changed:
            self._admit(request)
        try:
            async with asyncio.timeout(seconds):
                await reply.future
            return [request.results[one.position] for one in request.texts]
        finally:
            with self._changed:
                self._leave(request)

    def _admit(self, request: QueuedRequest) -> None:
        if self._closed:
            raise ServiceUnavailable("the server is shutting down")
        for loser in self._admission.check(request):
            self._fail(loser, ServiceUnavailable("the queue is full, and others came first"))
        self._schedule.add(request)
        self._admission.note_fullness()
        self._changed.notify_all()

    # --- the end of a request -----------------------------------------------------------------

    def _leave(self, request: QueuedRequest) -> None:
        """Forget a request that nobody waits for; slices that are put aside drop it at once."""
        for one in self._schedule.remove(request):
            if one in self._schedule.aside:
                self._drop_rows(one)
        self._changed.notify_all()

    def _drop_rows(self, batch: Slice) -> None:
        """Give up the texts of a slice that nobody waits for; it must not be running."""
        rows, batch.dropped = batch.dropped, []
        if batch.generation is not None:
            batch.generation.give_up(rows)
        if next(batch.live, None) is None:
            self._schedule.finish(batch)
            self._count(batch)

    def _fail(self, request: QueuedRequest, error: Exception) -> None:
        request.reply.fail(error)
        self._leave(request)

    # --- threads ------------------------------------------------------------------------------

    def _work(self) -> None:
        """Take turns until the end; what a thread does."""
        while (batch := self._next_slice()) is not None:
            began = time.perf_counter()
            failure: Exception | None = None
            try:
                self._take_turn(batch, began + _TURN)
            except Exception as error:
                failure = error
            with self._changed:
                self._schedule.charge(batch, time.perf_counter() - began)
                self._end_turn(batch, failure)
                for one in {text.request for text in batch.texts}:
                    if not one.num_unfinished:
                        one.reply.succeed()
                self._changed.notify_all()

    def _next_slice(self) -> Slice | None:
        """Wait for a slice; None at the end."""
        with self._changed:
            self._num_idle += 1
            try:
                while not self._ended:
                    now = time.monotonic()
                    self._fail_hopeless(now)
                    batch, wait = self._schedule.next(now, self._num_idle)
                    if batch is not None:
                        return batch
                    self._changed.wait(wait)
                return None
            finally:
                self._num_idle -= 1

    def _fail_hopeless(self, now: float) -> None:
        """Do not begin what cannot be ready in time."""
        for one in list(self._schedule.requests()):
            if not one.has_begun and self._admission.is_hopeless(one, now):
                self._fail(one, TimeoutError())

    def _take_turn(self, batch: Slice, until: float) -> None:
        """Search until the turn is over; once all is found, encode the results."""
        if batch.generation is None:
            sources = [one.source for one in batch.texts]
            batch.generation = self._source.begin(sources, batch.options)
        generation: StepwiseGeneration = batch.generation
        is_over = False
        while not is_over:
            if batch.dropped:
                with self._changed:
                    rows, batch.dropped = batch.dropped, []
                generation.give_up(rows)
            if not generation.done:
                generation.advance()
            elif not self._encode_next(batch):
                return
            is_over = time.perf_counter() >= until

    def _encode_next(self, batch: Slice) -> bool:
        """Encode the next result of a slice; False if none is left."""
        for row, text in enumerate(batch.texts):
            if text.batch is not batch:
                continue
            result = batch.generation.results[row]
            if result is None:
                raise RuntimeError("a text has no result")
            encoded = self._source.encode(result, heat_map=text.request.heat_map)
            batch.generation.results[row] = None
            with self._changed:
                if text.batch is batch:  # its caller has not left
                    text.batch = None
                    text.request.put(text, encoded)
            return True
        return False

    def _end_turn(self, batch: Slice, failure: Exception | None) -> None:
        """Put the slice aside, or end it."""
        if failure is None and (batch.dropped or next(batch.live, None) is not None):
            self._schedule.put_aside(batch)
            if batch.dropped:
                self._drop_rows(batch)
            return
        if failure is not None and len(batch.texts) > 1:
            self._schedule.split(batch)  # a text that fails spoils only its own request
        else:
            self._schedule.finish(batch)
            for text in list(batch.live):
                assert failure is not None
                self._fail(text.request, failure)
        self._count(batch)

    def _count(self, batch: Slice) -> None:
        given_up = sum(one.position not in one.request.results for one in batch.texts)
        if not given_up:
            self._admission.observe(sum(one.price for one in batch.texts), batch.seconds)
        self._observer.observe_batch(len(batch.texts), given_up, batch.seconds)
        self._admission.note_fullness()

    # --- the end ------------------------------------------------------------------------------

    def drain(self) -> None:
        """Accept no more texts, refuse those that wait, and give up what cannot end in time."""
        with self._changed:
            self._closed = True
            for one in self._schedule.unfinished():
                late = self._admission.seconds(one.remaining) > self._drain_seconds
                if late or not one.has_begun:
                    self._fail(one, ServiceUnavailable("the server is shutting down"))

    def give_up(self) -> None:
        """Accept no more texts, and give up all others."""
        with self._changed:
            self._closed = True
            for one in self._schedule.unfinished():
                self._fail(one, ServiceUnavailable("the server is shutting down"))

    async def close(self) -> None:
        """Give up everything, and wait for the threads to end."""
        self.give_up()
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        if self._threads is not None:
            await asyncio.to_thread(self._threads.shutdown)


class _Reply:
    """Answers a caller in the event loop, from any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.future: asyncio.Future[None] = loop.create_future()
        self.future.add_done_callback(lambda one: one.cancelled() or one.exception())
        self._loop = loop

    def succeed(self) -> None:
        """All headlines are there."""
        self._loop.call_soon_threadsafe(self._resolve, None)

    def fail(self, error: Exception) -> None:
        """There will be no headlines."""
        self._loop.call_soon_threadsafe(self._resolve, error)

    def _resolve(self, error: Exception | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(None)
        else:
            self.future.set_exception(error)
