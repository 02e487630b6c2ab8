"""From the texts of a request to the body of its answer: read, priced, searched, encoded."""

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from ledeline.inference.generation import Generation
from ledeline.inference.headline import Headline
from ledeline.inference.headliner import MIN_SOURCES_PER_THREAD, Headliner
from ledeline.inference.options import Options
from ledeline.inference.source_text import SourceText
from ledeline.inference.threads import num_threads, single_threaded
from ledeline.server.admission import AdmissionLimits, ServiceUnavailable
from ledeline.server.batcher import Batcher
from ledeline.server.callers import CallerLimits
from ledeline.server.memory import bound_memory, keep_memory_small
from ledeline.server.metrics import Metrics
from ledeline.server.price import check_min_length, check_price, text_prices
from ledeline.server.responses import encode_headline, join_headlines
from ledeline.server.schedule import FairSchedule, SliceLimits
from ledeline.server.schemas import HeadlinesRequest
from ledeline.server.settings import ServeConfig

# A slice is so small that its longest step, in which all its texts are read, takes a core some
# 40 ms. A GPU does much more in that time.
_SUBWORDS: Final = {"cpu": 640, "cuda": 2**14}
_HYPOTHESES: Final = {"cpu": 320, "cuda": 2**12}
_READ_AT_ONCE: Final = 5000  # characters; more are read in a thread, so that others are answered
_MAX_READING: Final = 16  # requests that are read in the thread


class HeadlineService:
    """Answers requests for headlines."""

    def __init__(self, headliner: Headliner, settings: ServeConfig, metrics: Metrics) -> None:
        bound_memory()
        self._headliner, self._limits = headliner, settings.limits
        device = "cpu" if headliner.on_cpu else "cuda"
        self._num_threads = num_threads() if headliner.on_cpu else 1
        batching = settings.batching
        limits = SliceLimits(batching.texts, _SUBWORDS[device], _HYPOTHESES[device])
        schedule = FairSchedule(
            limits, batching.window_ms / 1000, 4 * self._num_threads + 4, MIN_SOURCES_PER_THREAD
        )
        admission = AdmissionLimits(settings.limits.waiting, settings.limits.seconds)
        callers = CallerLimits(settings.callers)
        self.batcher = Batcher(
            self, schedule, admission, callers, metrics, settings.server.shutdown_seconds
        )
        self._reader = ThreadPoolExecutor(1, "reader")
        self._num_reading = 0
        self._housekeeping: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the threads; an event loop must be running."""
        threads = (
            single_threaded(self._num_threads)
            if self._headliner.on_cpu
            else ThreadPoolExecutor(1, "headlines")
        )
        self.batcher.start(threads, self._num_threads)
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
        """The body of the answer to a request."""
        options = asked.options()
        sources = await self._read(asked.texts, options)
        check_min_length(sources, options.search)
        prices = text_prices(
            sources, options.search, explain=asked.explain, heat_map=asked.heat_map
        )
        num_models = len(self._headliner.models)
        check_price(num_models * sum(one.most for one in prices), self._limits.price)
        expected = [num_models * one.expected for one in prices]
        found = await self.batcher.submit(
            sources, expected, options, caller=caller, heat_map=asked.heat_map
        )
        return join_headlines(found)

    async def _read(self, texts: Sequence[str], options: Options) -> list[SourceText]:
        """The texts as the model reads them; long ones take some milliseconds each."""
        if sum(map(len, texts)) <= _READ_AT_ONCE:
            return self._headliner.read(texts, options)
        if self._num_reading >= _MAX_READING:
            raise ServiceUnavailable("too many long texts are being read")
        self._num_reading += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._reader, self._read_slowly, texts, options)
        finally:
            self._num_reading -= 1

    def _read_slowly(self, texts: Sequence[str], options: Options) -> list[SourceText]:
        """Read texts with pauses as long as the work, in which other threads have the interpreter.

        Without them a search, which needs it for many short moments, would wait for each.
        """
        sources = []
        for number, text in enumerate(texts, start=1):
            began = time.perf_counter()
            sources += self._headliner.read([text], options, first=number)
            time.sleep(time.perf_counter() - began)
        return sources

    # --- for the batcher ----------------------------------------------------------------------

    def begin(self, ledes: Sequence[SourceText], options: Options) -> Generation:
        """Begin to generate headlines; nothing is computed yet."""
        return self._headliner.begin(ledes, options)

    def encode(self, headline: Headline, *, heat_map: bool) -> bytes:
        """A headline as JSON."""
        return encode_headline(headline, heat_map=heat_map)
