"""Who watches a server while bench/attack.py attacks it: a process of its own.

An innocent caller asks once a second whatever comes, each time on a new connection; others look at
/health, /ready and /metrics, and at the memory of the server. Orders come as lines of JSON on the
standard input, and each is answered by a line: so the attackers' work does not delay what is timed.
"""

import asyncio
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

from attack_http import BROKEN, asked, got, posted
from attack_server import GAUGES, counted, forget_peak, memory
from load_client import processor

PAGES: Final = ("/health", "/ready", "/metrics")
PAGE_SECONDS: Final = 0.25  # between two looks at each of them
MEMORY_SECONDS: Final = 0.05
LATE: Final = 1.0  # seconds after which a page is missing, also when watching ends
IDLE_SECONDS: Final = 0.02  # between two looks at the gauges
PATIENCE: Final = 40.0  # seconds that the innocent caller waits for an answer
CALM: Final = 0.1  # seconds, and the cores that a quiet process has in them at most
CALM_CORES: Final = 0.5


class Watch:
    """What is seen from outside."""

    def __init__(self, port: int, process: int, innocent: dict[str, Any], pause: float) -> None:
        self._port, self._process, self._pause = port, process, pause
        self._innocent = posted(innocent)
        self._calling = self._watching = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._asked: set[asyncio.Task[None]] = set()
        self._peak = 0.0
        self._clear()

    def _clear(self) -> None:
        self._latencies: list[float] = []
        self._statuses: Counter[str] = Counter()
        self._worst = dict.fromkeys(PAGES, 0.0)
        self._pages: dict[str, Counter[str]] = {page: Counter() for page in PAGES}

    async def begin(self) -> dict[str, Any]:
        """Start the innocent caller and the looks at the pages; the peak begins anew."""
        self._clear()
        self._calling = self._watching = True
        forget_peak(self._process)
        self._peak = 0.0
        self._start(self._memory())
        self._start(self._call())
        for page in PAGES:
            self._start(self._look(page))
        return {}

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def end(self, grace: float) -> dict[str, Any]:
        """Ask no more; what is not answered after some seconds is hung up. What was found."""
        self._calling = False
        unanswered = self._asked
        if unanswered:
            await asyncio.wait(set(unanswered), timeout=grace)
        self._watching = False
        left = len(self._asked)
        for task in [*self._tasks, *self._asked]:
            task.cancel()
        await asyncio.gather(*self._tasks, *self._asked, return_exceptions=True)
        return {
            "latencies": self._latencies,
            "statuses": dict(self._statuses),
            "unanswered": left,
            "pages": {
                page: {"worst": self._worst[page], "statuses": dict(self._pages[page])}
                for page in PAGES
            },
        }

    async def peak(self) -> dict[str, Any]:
        """The most memory since the last beginning."""
        return {"peak": max(self._peak, memory(self._process)[1])}

    async def idle(self, since: float, bound: float) -> dict[str, Any]:
        """From a moment of the clock, the seconds until nothing runs, by the gauges and the CPU."""
        samples, busy = [(time.monotonic(), processor(self._process))], None
        look = asyncio.create_task(self._until_idle(since + bound))
        while (now := time.monotonic()) < since + bound:
            with suppress(OSError):  # it has ended
                samples.append((now, processor(self._process)))
            busy = _last_busy(samples)
            if look.done() and now > samples[0][0] + 3 * CALM and (busy or 0) < now - 2 * CALM:
                break
            await asyncio.sleep(IDLE_SECONDS)
        gauges = look.result() if look.done() else None
        look.cancel()
        calm = busy is None or busy < samples[-1][0] - CALM
        return {
            "gauges": None if gauges is None else max(0.0, gauges - since),
            "cpu": max(0.0, (busy or since) - since) if calm else None,
        }

    async def _until_idle(self, ends: float) -> float | None:
        """When the gauges first said that nothing runs or waits."""
        while time.monotonic() < ends:
            with suppress(*BROKEN, TimeoutError, KeyError):
                async with asyncio.timeout(2):
                    found = counted((await asked(self._port, got("/metrics"))).body)
                if not any(found[one] for one in GAUGES):
                    return time.monotonic()
            await asyncio.sleep(IDLE_SECONDS)
        return None

    # --- what goes on meanwhile -----------------------------------------------------------------

    async def _memory(self) -> None:
        while True:
            self._peak = max(self._peak, memory(self._process)[0])
            await asyncio.sleep(MEMORY_SECONDS)

    async def _call(self) -> None:
        while self._calling:
            task = asyncio.create_task(self._ask())
            self._asked.add(task)
            task.add_done_callback(self._asked.discard)
            await asyncio.sleep(self._pause)

    async def _ask(self) -> None:
        began, status = time.monotonic(), "hung up"
        try:
            async with asyncio.timeout(PATIENCE):
                status = str((await asked(self._port, self._innocent)).status)
        except BROKEN:
            status = "broken"
        except TimeoutError:
            status = "too late"
        finally:
            self._latencies.append(time.monotonic() - began)
            self._statuses[status] += 1

    async def _look(self, page: str) -> None:
        request = got(page)
        while self._watching:
            began, status = time.monotonic(), "hung up"
            try:
                async with asyncio.timeout(PATIENCE):
                    status = str((await asked(self._port, request)).status)
            except BROKEN:
                status = "broken"
            except TimeoutError:
                status = "too late"
            finally:
                took = time.monotonic() - began
                self._worst[page] = max(self._worst[page], took)
                if status != "hung up" or took > LATE:  # the end of watching is no failure
                    self._pages[page][status] += 1
            await asyncio.sleep(PAGE_SECONDS)


def _last_busy(samples: list[tuple[float, float]]) -> float | None:
    """The end of the last moment in which the process was busy."""
    busy, start = None, 0
    for now, used in samples[1:]:
        while samples[start + 1][0] <= now - CALM:  # ends before this sample
            start += 1
        began, before = samples[start]
        if now - began >= CALM and (used - before) / (now - began) > CALM_CORES:
            busy = now
    return busy


class Watcher:
    """The other process, as bench/attack.py sees it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, **job: Any) -> Self:
        """Start it; the job is what `Watch` is made of."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            "import attack_watch; attack_watch.main()",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
            limit=2**24,
        )
        watcher = cls(process)
        await watcher._send(job)
        return watcher

    async def _send(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        line = await self._process.stdout.readline()
        if not line:
            raise SystemExit("the watching process has ended")
        return dict(json.loads(line))

    async def do(self, order: str, **arguments: float) -> dict[str, Any]:
        """What a method of `Watch` gives."""
        return await self._send({"order": order, **arguments})

    async def end(self) -> None:
        """Let it go."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()


async def _obey() -> None:
    loop = asyncio.get_running_loop()
    watch: Watch | None = None
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        order = json.loads(line)
        if watch is None:
            watch, found = Watch(**order), {}
        else:
            found = await getattr(watch, order.pop("order"))(**order)
        print(json.dumps(found), flush=True)


def main() -> None:
    asyncio.run(_obey())
