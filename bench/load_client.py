"""The callers of bench/load.py: a process that asks a server over and over.

A job comes as JSON on the standard input, what was found goes as JSON to the standard output. Each
caller has a connection that stays, sends one text, waits for the answer, and takes the next text.
Nothing but what that takes is done meanwhile, for the server has the same processor: requests are
made before, and answers are read after.
"""

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Job:
    """What is to be asked."""

    host: str
    port: int
    server: int  # its process
    texts: list[str]
    beam: int
    callers: int
    warm_up: float  # seconds before anything counts
    seconds: float  # after that
    most: int  # requests; whichever comes first ends it
    sample: int = 0  # requests between two looks at the memory; 0: none


class Connection:
    """One that stays open."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def ask(self, request: bytes) -> bytes:
        """The body of the answer."""
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        found = LENGTH.search(head)
        body = await self._reader.readexactly(int(found[1]) if found else 0)
        if b" 200 " not in head[:16]:
            raise SystemExit(f"{head.splitlines()[0].decode()}: {body[:200].decode()}")
        return body

    def close(self) -> None:
        """End it."""
        self._writer.close()


class Callers:
    """All of them, and what they found."""

    def __init__(self, job: Job) -> None:
        self._job, self._requests = job, [requested(text, job.beam) for text in job.texts]
        self._next: Iterator[int] = iter(range(job.most))
        self._over = False
        self.answers: list[tuple[float, float, int, bytes]] = []  # began, ended, text, body
        self.resident: list[tuple[int, int]] = []  # answers so far, bytes of the server

    async def run(self) -> dict[str, Any]:
        """Ask until time or number is over."""
        job = self._job
        callers = asyncio.gather(*[self._call() for _ in range(job.callers)])
        await asyncio.wait([callers], timeout=job.warm_up)
        before = await self._look()
        await asyncio.wait([callers], timeout=job.seconds)
        after = await self._look()
        self._over = True
        await callers
        ends = [ended for _, ended, *_ in self.answers]
        # Answers come in batches: the time from the last one before to the last one within.
        last = [
            max((end for end in ends if end <= one["time"]), default=one["time"])
            for one in (before, after)
        ]
        return {
            "counted": {name: after[name] - before[name] for name in before},
            "took": last[1] - last[0],
            "latencies": [
                ended - began for began, ended, *_ in self.answers if last[0] < ended <= last[1]
            ],
            "answers": [(text, json.loads(body)) for *_, text, body in self.answers],
            "resident": self.resident,
        }

    async def _connect(self) -> Connection:
        return Connection(*await asyncio.open_connection(self._job.host, self._job.port))

    async def _call(self) -> None:
        connection, clock = await self._connect(), time.perf_counter
        while not self._over and (number := next(self._next, None)) is not None:
            text = number % len(self._requests)
            began = clock()
            body = await connection.ask(self._requests[text])
            self.answers.append((began, clock(), text, body))
            if self._job.sample and not len(self.answers) % self._job.sample:
                self.resident.append((len(self.answers), resident(self._job.server)))
        connection.close()

    async def _look(self) -> dict[str, float]:
        """What the server has counted, and the seconds of processor that both have taken."""
        connection = await self._connect()
        page = await connection.ask(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        connection.close()
        lines = (line.split() for line in page.decode().splitlines() if line[0] != "#")
        counted = {line[0]: float(line[-1]) for line in lines}
        return {
            "time": time.perf_counter(),
            "texts": counted["ledeline_batch_texts_sum"],
            "batches": counted["ledeline_batch_texts_count"],
            "search": counted["ledeline_batch_seconds_sum"],
            "server": processor(self._job.server),
            "client": processor(os.getpid()),
            "machine": busy(),
        }


def requested(text: str, beam: int) -> bytes:
    body = json.dumps({"texts": [text], "beam": beam}).encode()
    head = (
        "POST /v1/headlines HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def processor(process: int) -> float:
    """Seconds of processor of a process until now."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def busy() -> float:
    """Seconds of processor of all processes until now, and what neighbours took away."""
    user, nice, system, _, _, *others = Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    return sum(map(int, (user, nice, system, *others))) / TICKS


def resident(process: int) -> int:
    """Bytes of memory of a process."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    job = Job(**json.load(sys.stdin))
    json.dump(asyncio.run(Callers(job).run()), sys.stdout)
