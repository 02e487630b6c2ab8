"""What a server takes, and the dearest of it: the search of bench/attack.py over all options.

A body is allowed if it is not refused. The dearest one is that which makes the server compute
longest, by the CPU time of its process, each body alone. A new server refuses by price; those that
it allows although they take long show where its price is wrong.
"""

import asyncio
import json
import random
import re
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

from attack_http import BROKEN, Answer, asked, posted
from attack_kinds import KNOBS, long_text, wished_bodies
from attack_server import Attacked, scratch
from load_client import processor
from rows import Column, Rows, Table

PRICED: Final = re.compile(r"the request costs ([\d,.]+), and ([\d,.]+) is the limit")
ALLOWED: Final = 1.0  # seconds without an answer after which a body is not refused any more
TRIES: Final = 10  # while a server has no room
FITS: Final = 12  # steps until a body is small enough
LITTLE: Final = 0.2  # seconds; what takes less says nothing about prices
CUT: Final = 40.0  # seconds after which we hang up

Candidate = dict[str, Any]
SPACE: Final[dict[str, tuple[Any, ...]]] = {
    "kind": ("ledes", "repeated word", "random letters", "one word", "unknown signs"),
    "characters": (5000, 2500, 1000, 200, 20),
    "texts": (64, 16, 4, 1),
    "beam": (50, 20, 5, 1),
    "n_best": (1, 10),
    "min_length": (1, 16, 64, 128, 256, 512),
    "max_length": (None, 8, 64, 512),
    "block_ngrams": (None, 0, 1, 2, 5),
    "explain": (False, True),
    "heat_map": (False, True),
}
PLAIN: Final = {name: values[0] for name, values in SPACE.items()}
STARTS: Final[tuple[Candidate, ...]] = (
    {**PLAIN, "min_length": 512},
    {**PLAIN, "characters": 20, "min_length": 512},
    {**PLAIN, "characters": 200, "min_length": 64},
    {**PLAIN, "beam": 5},
    {**PLAIN, "beam": 1, "heat_map": True, "min_length": 128},
    {**PLAIN, "kind": "random letters", "block_ngrams": 0},
)
SEARCHED: Final = (
    Column("seconds", "CPU, s", ".2f"),
    Column("wall", "answered, s", ".2f"),
    Column("status", "status"),
    Column("price", "price", ",.0f"),
    Column("ratio", "CPU, \u00b5s a unit", ".1f"),
    Column("bytes", "body, bytes", ",d"),
    Column("shown", "options"),
)


class Verdict(NamedTuple):
    """What a server says to a body."""

    allowed: bool
    price: float | None = None
    limit: float | None = None
    detail: str = ""


def priced(detail: str) -> tuple[float | None, float | None]:
    """Price and limit, as a refusal names them."""
    found = PRICED.search(detail)
    if not found:
        return None, None
    price, limit = (float(one.replace(",", "").rstrip(".")) for one in found.groups())
    return price, limit


class Probe:
    """A server that is asked what it takes; a new one where the last computes on and on."""

    def __init__(self, options: Any, folder: Path, *settings: str) -> None:
        self._options, self._folder, self._settings = options, folder, settings
        self._server: Attacked | None = None

    async def server(self) -> Attacked:
        """One that is idle."""
        if self._server is not None and not await self._server.is_idle(2):
            self._server.kill()
            self._server = None
        if self._server is None:
            self._server = await Attacked.start(self._options, self._folder, self._settings)
        return self._server

    async def verdict(self, body: dict[str, Any]) -> Verdict:
        """Whether it takes a body; it hangs up then."""
        answer = await self._asked(posted(body), ALLOWED)
        if answer is None or answer.status != 422:
            return Verdict(True)
        return Verdict(False, *priced(answer.detail), answer.detail)

    async def _asked(self, request: bytes, seconds: float) -> Answer | None:
        for _ in range(TRIES):
            server = await self.server()
            try:
                async with asyncio.timeout(seconds):
                    answer = await asked(server.port, request, self._options.source)
            except TimeoutError:
                return None
            except BROKEN:
                await asyncio.sleep(1)
                continue
            if answer.status not in (429, 503):
                return answer
            await asyncio.sleep(max(1.0, min(answer.retry_after, 5.0)))
        return None

    async def seconds(self, body: dict[str, Any], bound: float) -> tuple[float, float, str]:
        """The CPU time of a body, the time until its answer, and the answer's status."""
        server = await self.server()
        before, began = processor(server.pid), time.monotonic()
        answer = await self._asked(posted(body), bound)
        wall = time.monotonic() - began
        await server.is_idle(2)
        used = processor(server.pid) - before
        return used, wall, "cut" if answer is None else str(answer.status)

    def end(self) -> None:
        """No more."""
        if self._server is not None:
            self._server.kill()


# --- bodies that are allowed --------------------------------------------------------------------


async def reduced(probe: Probe, name: str, options: Any) -> tuple[dict[str, Any], str]:
    """A body as wished, or what comes nearest and is taken; and a sentence on what was changed."""
    body = wished_bodies(*options.sizes)[name]
    if (await probe.verdict(body)).allowed:
        return body, f"{name}: {described_body(body)}"
    wished = described_body(body)
    for knob in KNOBS[name]:
        largest = len(body["texts"]) if knob == "texts" else body.get(knob, 20)
        smallest = _turned(body, knob, 1)
        if (await probe.verdict(smallest)).allowed:
            low, high = 1, largest  # allowed, and not
            while high - low > 1:
                middle = (low + high) // 2
                found = await probe.verdict(_turned(body, knob, middle))
                low, high = (middle, high) if found.allowed else (low, middle)
            body = _turned(body, knob, low)
            return body, f"{name}: {described_body(body)}, for {wished} is refused"
        body = smallest
    return body, f"{name}: {described_body(body)} is refused, too"


def _turned(body: dict[str, Any], knob: str, value: int) -> dict[str, Any]:
    if knob == "texts":
        return {**body, "texts": body["texts"][:value]}
    return {**body, knob: value}


def described_body(body: dict[str, Any]) -> str:
    """A body in few words."""
    texts = body["texts"]
    options = "".join(f", {key} {value}" for key, value in body.items() if key != "texts")
    return f"{len(texts)} x {max(map(len, texts))} characters{options}"


# --- the search ---------------------------------------------------------------------------------


def candidate_body(candidate: Candidate) -> dict[str, Any]:
    """The body of a candidate."""
    size, chance = candidate["characters"], random.Random(19)
    if candidate["kind"] == "ledes":
        text = long_text(size)
    elif candidate["kind"] == "repeated word":
        text = ("rain " * size)[:size]
    elif candidate["kind"] == "random letters":
        text = "".join(chance.choices("abcdefghijklmnopqrstuvwxyz ", k=size))
    elif candidate["kind"] == "one word":
        text = "x" * size
    else:
        text = "".join(chance.choices("\u4e2d\u6587\u03b1\u0436\u20ac", k=size))
    body: dict[str, Any] = {"texts": [text.strip() or "x"] * candidate["texts"]}
    for name in list(SPACE)[3:]:
        if candidate[name] not in (None, False):
            body[name] = candidate[name]
    body["n_best"] = min(body["n_best"], body["beam"])
    if "max_length" in body:
        body["max_length"] = max(body["max_length"], body["min_length"])
    return body


class Search:
    """Greedy, one option at a time, from several starts, until time is over.

    A second server, whose limit is 1, tells the price of everything.
    """

    def __init__(self, options: Any, probe: Probe, pricer: Probe | None) -> None:
        self._options, self._probe, self._pricer = options, probe, pricer
        self._ends = time.monotonic() + options.search_seconds
        self._limit: float | None = None
        self._known: dict[str, dict[str, Any] | None] = {}

    @property
    def found(self) -> list[dict[str, Any]]:
        """All that was measured, the dearest first."""
        rows = [one for one in self._known.values() if one is not None]
        return sorted(rows, key=lambda one: -one["seconds"])

    async def run(self) -> None:
        """Measure the starts, then change the best ones."""
        if self._pricer is not None:
            too_dear = candidate_body({**PLAIN, "min_length": 64})
            self._limit = (await self._probe.verdict(too_dear)).limit
        starts = STARTS[: self._options.starts]
        for start in starts:
            await self._measured(start)
        while time.monotonic() < self._ends:
            best = self.found[0]["candidate"] if self.found else starts[0]
            if not await self._improved(best):
                break
        await self._around()

    async def _improved(self, best: Candidate) -> bool:
        """Try every other value of every option; whether one was dearer."""
        most = self.found[0]["seconds"] if self.found else 0.0
        for name, values in SPACE.items():
            for value in values:
                if time.monotonic() > self._ends:
                    return False
                if value == best[name]:
                    continue
                row = await self._measured({**best, "texts": 64, name: value})
                if row is not None and row["seconds"] > 1.1 * most:
                    return True
        return False

    async def _around(self) -> None:
        """With the time that is left: chance."""
        chance = random.Random(7)
        while time.monotonic() < self._ends:
            await self._measured({name: chance.choice(values) for name, values in SPACE.items()})
            if len(self._known) > 10_000:
                return

    async def _measured(self, candidate: Candidate) -> dict[str, Any] | None:
        """Make a candidate small enough to be allowed, and measure it; None if it never is."""
        fitted = await self._fitted(candidate)
        key = json.dumps(fitted)
        if fitted is None or key in self._known:
            return self._known.get(key)
        body = candidate_body(fitted)
        used, wall, status = await self._probe.seconds(body, self._options.cut)
        price = await self._price(body)
        row = {
            "seconds": used,
            "wall": wall,
            "status": status,
            "price": price,
            "ratio": 1e6 * used / price if price else None,
            "bytes": len(json.dumps(body, ensure_ascii=False).encode()),
            "shown": f"{fitted['kind']}, {described_body(body)}",
            "candidate": fitted,
        }
        self._known[key] = row
        print(f"  {used:6.2f} s  {row['shown']}", flush=True)
        return row

    async def _fitted(self, candidate: Candidate) -> Candidate | None:
        """Fewer texts, then shorter ones, until the price is within the limit."""
        for _ in range(FITS):
            verdict = await self._verdict(candidate_body(candidate))
            if verdict.allowed:
                return candidate
            if verdict.price is None or verdict.limit is None:
                if candidate["min_length"] == 1:
                    return None
                candidate = {**candidate, "min_length": max(1, candidate["min_length"] * 2 // 3)}
                continue
            share = verdict.limit / verdict.price
            for name in ("texts", "characters", "beam"):
                if candidate[name] > 1:
                    fewer = min(candidate[name] - 1, int(candidate[name] * share))
                    candidate = {**candidate, name: max(1, fewer)}
                    break
        return None

    async def _verdict(self, body: dict[str, Any]) -> Verdict:
        """Whether a body is allowed, if possible without any work."""
        if self._pricer is None or self._limit is None:
            return await self._probe.verdict(body)
        found = await self._pricer.verdict(body)
        allowed = found.price is not None and found.price <= self._limit
        return found._replace(allowed=allowed, limit=self._limit)

    async def _price(self, body: dict[str, Any]) -> float | None:
        return None if self._pricer is None else (await self._pricer.verdict(body)).price


async def search_dearest(options: Any, rows: Rows) -> None:
    """Find the dearest allowed body, print what was measured, and write the body to a file."""
    with scratch() as folder, scratch() as other:
        probe = Probe(options, folder)
        pricer = Probe(options, other, f"--{options.price_setting}=1")
        try:
            try:
                await pricer.server()
            except SystemExit:  # a server that knows no price
                await _searched(options, rows, Search(options, probe, None))
            else:
                await _searched(options, rows, Search(options, probe, pricer))
        finally:
            probe.end()
            pricer.end()


async def _searched(options: Any, rows: Rows, search: Search) -> None:
    await search.run()
    found = search.found
    print("\nThose that take longest:\n")
    table = Table(rows, "dearest", *SEARCHED)
    for row in found[: options.ranks]:
        table.add(**row)
    underpriced = [one for one in found if one["ratio"] is not None and one["seconds"] > LITTLE]
    if underpriced:
        print("\nThose that take longest for their price:\n")
        table = Table(rows, "underpriced", *SEARCHED)
        for row in sorted(underpriced, key=lambda one: -one["ratio"])[: options.ranks]:
            table.add(**row)
    if options.search_dearest is not None and found:
        best = found[0]
        content = {"body": candidate_body(best["candidate"])} | {
            name: best[name] for name in ("seconds", "wall", "price")
        }
        options.search_dearest.write_text(json.dumps(content) + "\n", encoding="utf-8")
    print()
