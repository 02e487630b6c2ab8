"""From the texts of a request to the body of its answer: read, priced, worked on, encoded."""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

from ledeline.inference.checks.check import Check
from ledeline.inference.checks.checker import Checker
from ledeline.inference.checks.checking import Checking, PairText, read_pair
from ledeline.inference.headline import Headline
from ledeline.inference.headliner import Headliner
from ledeline.inference.options import Options
from ledeline.inference.source_text import SourceText
from ledeline.server.admission import AdmissionLimits, ServiceUnavailable
from ledeline.server.batcher import Batcher, StepwiseGeneration
from ledeline.server.callers import CallerLimits
from ledeline.server.check_schemas import CheckRequest
from ledeline.server.memory import bound_memory, keep_memory_small
from ledeline.server.metrics import Metrics
from ledeline.server.price import (
    FEWER_PAIRS,
    check_min_length,
    check_price,
    pair_price,
    text_prices,
)
from ledeline.server.responses import encode_check, encode_headline, join_checks, join_headlines
from ledeline.server.schedule import FairSchedule, SliceLimits
from ledeline.server.schemas import HeadlinesRequest
from ledeline.server.settings import ServeConfig

# A slice is so small that its longest step takes a core some 40 ms: the first, in which all its
# texts are read (0.09 ms a sub-word), or one that extends all hypotheses (0.12 ms each, 0.3 ms a
# text). A single text of 512 sub-words is read in one step of 80 ms. A GPU does more in that time.
_SUBWORDS: Final = {"cpu": 448, "cuda": 2**14}
_HYPOTHESES: Final = {"cpu": 256, "cuda": 2**12}
_READ_AT_ONCE: Final = 5000  # characters; more are read in a thread, so that others are answered
_MAX_READING: Final = 16  # requests that are read in the thread
T = TypeVar("T")


class HeadlineService:
    """Answers requests for headlines and for checks."""

    def __init__(self, headliner: Headliner, settings: ServeConfig, metrics: Metrics) -> None:
        bound_memory()
        self._headliner, self._limits = headliner, settings.limits
        device = "cpu" if headliner.on_cpu else "cuda"
        self._num_threads = headliner.num_threads
        batching = settings.batching
        limits = SliceLimits(batching.texts, _SUBWORDS[device], _HYPOTHESES[device])
        schedule = FairSchedule(
            limits,
            batching.window_ms / 1000,
            4 * self._num_threads + 4,
            headliner.min_texts_per_thread,
            SliceLimits(batching.texts, _SUBWORDS["cpu"], _HYPOTHESES["cpu"]),  # checks run there
        )
        admission = AdmissionLimits(settings.limits.waiting, settings.limits.seconds)
        callers = CallerLimits(settings.callers)
        self.batcher = Batcher(
            self, schedule, admission, callers, metrics, settings.server.shutdown_seconds
        )
        self._reader = ThreadPoolExecutor(1, "reader")
        self._num_reading = 0
        self._checker: Checker | None = None  # loaded when it is first needed
        self._housekeeping: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the threads; an event loop must be running."""
        self.batcher.start(self._headliner.pool(self._num_threads), self._num_threads)
        self._housekeeping = asyncio.create_task(keep_memory_small(self._is_idle))

    def _is_idle(self) -> bool:
        return not self._num_reading and self.batcher.load == (0, 0)

    async def close(self) -> None:
        """Give up what runs, and end the threads."""
        if self._housekeeping is not None:
            self._housekeeping.cancel()
        await self.batcher.close()
        self._reader.shutdown(wait=False)

    async def answer(self, asked: HeadlinesRequest, caller: str) -> bytes:
        """The body of the answer to a request for headlines."""
        options = self._within_limits(asked.options())
        resolved = self._headliner.resolve_options(options)
        if resolved.check:
            await self._load_checker()
        sources = await self._read(
            sum(map(len, asked.texts)),
            [
                partial(self._read_text, text, number, options)
                for number, text in enumerate(asked.texts, start=1)
            ],
        )
        check_min_length(sources, options.search)
        followed = not self._headliner.is_known_to_verifier
        prices = text_prices(
            sources,
            resolved,
            heat_map=asked.heat_map,
            followed=followed,
            rescored=self._headliner.rescores,
        )
        num_models = len(self._headliner.models)
        check_price(num_models * sum(one.most for one in prices), self._limits.price)
        expected = [num_models * one.expected for one in prices]
        found = await self.batcher.submit(
            sources, expected, options, caller=caller, heat_map=asked.heat_map
        )
        return join_headlines(found)

    def _within_limits(self, options: Options) -> Options:
        """The options; where they leave the beam to the model, at most the largest allowed."""
        if options.search.beam is not None:
            return options
        beam = self._headliner.resolve_options(options).search.beam_size
        if beam <= self._limits.beam:
            return options
        return replace(options, search=replace(options.search, beam=self._limits.beam))

    async def answer_check(self, asked: CheckRequest, caller: str) -> bytes:
        """The body of the answer to a request for checks."""
        given = asked.all_pairs()
        checker = await self._load_checker()
        pairs = await self._read(
            sum(len(one.lede) + len(one.headline) for one in given),
            [partial(read_pair, checker, one.lede, one.headline) for one in given],
        )
        prices = [pair_price(len(one.ids), len(one.headline_ids)) for one in pairs]
        check_price(sum(one.most for one in prices), self._limits.price, FEWER_PAIRS)
        expected = [one.expected for one in prices]
        return join_checks(await self.batcher.submit(pairs, expected, None, caller=caller))

    async def _load_checker(self) -> Checker:
        """What checks; it takes a while to load unless the bundled model is served."""
        if self._checker is None:
            loop = asyncio.get_running_loop()
            self._checker = await loop.run_in_executor(self._reader, self._headliner.checker)
        return self._checker

    def _read_text(self, text: str, number: int, options: Options) -> SourceText:
        return self._headliner.read([text], options, first=number)[0]

    async def _read(self, num_characters: int, reads: Sequence[Callable[[], T]]) -> list[T]:
        """The texts as the model reads them; long ones take some milliseconds each."""
        if num_characters <= _READ_AT_ONCE:
            return [read() for read in reads]
        if self._num_reading >= _MAX_READING:
            raise ServiceUnavailable("too many long texts are being read")
        self._num_reading += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._reader, _read_slowly, reads)
        finally:
            self._num_reading -= 1

    # --- for the batcher ----------------------------------------------------------------------

    def begin(self, texts: Sequence[Any], options: Options | None) -> StepwiseGeneration:
        """Begin to generate headlines or, without options, to check; nothing is computed yet."""
        if options is not None:
            return self._headliner.begin(texts, options)
        assert self._checker is not None  # it has read the pairs
        pairs: Sequence[PairText] = texts
        return Checking(self._checker, pairs)

    def encode(self, result: Headline | Check, *, heat_map: bool) -> bytes:
        """A headline or a check as JSON."""
        if isinstance(result, Check):
            return encode_check(result)
        return encode_headline(result, heat_map=heat_map)


def _read_slowly(reads: Sequence[Callable[[], T]]) -> list[T]:
    """Read texts with pauses as long as the work, in which other threads have the interpreter.

    Without them a search, which needs it for many short moments, would wait for each.
    """
    found = []
    for read in reads:
        began = time.perf_counter()
        found.append(read())
        time.sleep(time.perf_counter() - began)
    return found
