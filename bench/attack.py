"""A server that is attacked: what an innocent caller, memory, the search and a stop notice of it.

    python bench/attack.py [--checkout CHECKOUT] [--only "small body" unread] [--seconds 30]
    python bench/attack.py --search-dearest dearest.json [--search-seconds 300]
    python bench/attack.py --dearest dearest.json

`ledeline serve` runs in a process of its own with default settings, on loopback; CHECKOUT is
another checkout to serve from. Each attack (attack_kinds.py) meets a new server: first some quiet
seconds, then the attack, then rest; then the attack again, and SIGTERM in the middle of it. All the
while another process watches (attack_watch.py): an innocent caller sends one lede a second at beam
5, each time on a new connection. Attackers come from another address than the innocent caller.

"Give up" is the time from the moment when all attackers hang up until nothing runs or waits: by the
server's own gauges, and by its CPU time. The dearest allowed request is found by search
(attack_dearest.py); without a file of it, a guess is made smaller until it is allowed.
"""

import argparse
import asyncio
import json
import resource
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

import quick
import tiny
from attack_dearest import CUT, STARTS, Probe, described_body, reduced, search_dearest
from attack_kinds import ATTACKS, Attack, Target
from attack_server import Attacked, scratch
from attack_watch import CALM, Watcher
from ledeline.inference.sample_ledes import LEDES
from machine import described
from rows import Column, Rows, Table

INNOCENT: Final = {"texts": [LEDES[0]], "beam": 5}
PAUSE: Final = 1.0  # seconds between two requests of the innocent caller
GRACE: Final = 5.0  # seconds that its last requests have, before it hangs up too
LAST: Final = 35.0  # seconds that callers wait for their last answers, where they do
MIDDLE: Final = 2.0  # seconds of attack before SIGTERM
OTHER_ADDRESS: Final = "127.0.0.2"
SEARCHED: Final = "ledeline_batch_texts_sum"
SIZES: Final = (64, 5000, 512)  # texts, their characters, and sub-words of headlines, at most
RANKS: Final = 15  # bodies that the search for the dearest shows

# The aims.
TIMES, MORE = 3.0, 1.0  # p95 of the innocent caller: so many times the quiet one, and seconds more
GIVE_UP: Final = 0.25  # seconds
PEAK: Final = 1024.0  # MiB
REST: Final = 1.2  # times the memory at the start
DELIVERED: Final = 0.9  # of the texts that were searched
AIMS: Final = (
    f"Aims: p95 at most {TIMES:g} times the quiet one and {MORE:g} s, no 5xx; given up within "
    f"{1000 * GIVE_UP:.0f} ms; peak below {PEAK:.0f} MiB; at rest at most {REST:g} times the "
    f"start; {100 * DELIVERED:.0f} % of the texts searched in an overload are delivered."
)

COLUMNS: Final = (
    Column("attack", "attack"),
    Column("quiet_p50", "quiet p50, s", ".2f"),
    Column("quiet_p95", "quiet p95, s", ".2f"),
    Column("p50", "p50, s", ".2f"),
    Column("p95", "p95, s", ".2f"),
    Column("innocent", "innocent's answers"),
    Column("start", "start, MiB", ".0f"),
    Column("peak", "peak, MiB", ".0f"),
    Column("rest", "rest, MiB", ".0f"),
    Column("give_up_shown", "give up, ms"),
    Column("cpu_shown", "by CPU, ms"),
    Column("stop_shown", "stop, s"),
    Column("health", "/health worst, s", ".2f"),
    Column("ready", "/ready worst, s", ".2f"),
    Column("log", "log, kB", ",.0f"),
    Column("delivered", "delivered of searched", ".0%"),
    Column("attackers", "attackers' answers"),
    Column("missed", "aims missed"),
)


def percentile(values: Sequence[float], share: int) -> float:
    """The value that so many percent of them do not exceed."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, len(ranked) * share // 100)]


def shown(statuses: dict[str, int]) -> str:
    """Such as 200 x 12, 503 x 2."""
    return ", ".join(f"{name} x {number:,}" for name, number in sorted(statuses.items()))


def bounded(value: float | None, bound: float, factor: float, form: str) -> str:
    """A time, or that it was longer than we waited."""
    return f"> {factor * bound:,.0f}" if value is None else format(factor * value, form)


class Trial:
    """One attack on one server."""

    def __init__(self, options: argparse.Namespace, attack: Attack, target: Target) -> None:
        self._options, self._attack, self._target = options, attack, target
        self._running: asyncio.Task[None] | None = None

    async def figures(self, server: Attacked) -> dict[str, Any]:
        """All of them; the server is gone afterwards, but for --quick."""
        options = self._options
        watcher = await Watcher.start(
            port=server.port, process=server.pid, innocent=INNOCENT, pause=options.pause
        )
        try:
            start = server.resident
            await watcher.do("begin")
            await asyncio.sleep(options.quiet_seconds)
            quiet = await watcher.do("end", grace=options.grace)
            before = await server.metrics()
            await watcher.do("begin")
            self._begin()
            await asyncio.sleep(options.seconds)
            during = await watcher.do("end", grace=options.grace)
            given_up = await self._given_up(watcher)
            peak = await watcher.do("peak")
            searched = (await server.metrics()).get(SEARCHED, 0.0) - before.get(SEARCHED, 0.0)
            await asyncio.sleep(options.rest_seconds)
            rest, log = server.resident, server.log_bytes
            alive = server.alive
            stop = None if options.quick else await self._stopped(server)
        finally:
            await self._hang_up()
            await watcher.end()
        memory = {"start": start, **peak, "rest": rest, "log": log / 1000, "alive": alive}
        return self._summed(quiet, during, memory, {**given_up, "stop": stop}, searched)

    def _begin(self) -> None:
        self._target.last = False
        self._running = asyncio.create_task(self._attack.run(self._target))

    async def _hang_up(self) -> None:
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running
            self._running = None

    async def _given_up(self, watcher: Watcher) -> dict[str, Any]:
        """End the attack; how long the server goes on. Gentle callers are answered first."""
        if self._attack.gentle and self._running is not None:
            self._target.last = True
            await asyncio.wait({self._running}, timeout=self._options.last)
        since = time.monotonic()
        await self._hang_up()
        return await watcher.do("idle", since=since, bound=self._options.give_up_seconds)

    async def _stopped(self, server: Attacked) -> float | None:
        """The time to stop in the middle of the attack; its answers count no more."""
        statuses, delivered = self._target.statuses.copy(), self._target.delivered
        self._target.statuses.clear()
        self._begin()
        await asyncio.sleep(self._options.middle)
        ends = time.monotonic() + self._options.stop_seconds
        while self._attack.begun and not self._target.statuses[self._attack.begun]:
            if time.monotonic() > ends:
                break
            await asyncio.sleep(0.05)
        found = await server.stop(self._options.stop_seconds)
        await self._hang_up()
        self._target.statuses, self._target.delivered = statuses, delivered
        return found

    def _summed(
        self,
        quiet: dict[str, Any],
        during: dict[str, Any],
        memory: dict[str, Any],
        times: dict[str, Any],
        searched: float,
    ) -> dict[str, Any]:
        options, statuses = self._options, during["statuses"]
        own = statuses.get("200", 0)  # texts of the innocent caller are searched, too
        delivered = (self._target.delivered + own) / searched if searched else None
        figures = {
            "attack": self._attack.name,
            "quiet_p50": percentile(quiet["latencies"], 50),
            "quiet_p95": percentile(quiet["latencies"], 95),
            "p50": percentile(during["latencies"], 50),
            "p95": percentile(during["latencies"], 95),
            "innocent": shown(statuses),
            **memory,
            "give_up": times["gauges"],
            "give_up_cpu": times["cpu"],
            "stop": times["stop"],
            "give_up_shown": bounded(times["gauges"], options.give_up_seconds, 1000, ",.0f"),
            "cpu_shown": bounded(times["cpu"], options.give_up_seconds, 1000, ",.0f"),
            "stop_shown": bounded(times["stop"], options.stop_seconds, 1, ".1f"),
            "health": during["pages"]["/health"]["worst"],
            "ready": during["pages"]["/ready"]["worst"],
            "searched": searched,
            "delivered": delivered if self._attack.honest else None,
            "attackers": shown(self._target.statuses),
            "pages": during["pages"],
            "innocent_statuses": statuses,
            "quiet_statuses": quiet["statuses"],
            "latencies": during["latencies"],
            "quiet_latencies": quiet["latencies"],
        }
        if options.quick:
            figures["stop_shown"] = ""
        return figures | {"missed": ", ".join(missed(figures))}


def missed(figures: dict[str, Any]) -> list[str]:
    """The aims that were not met."""
    statuses = figures["innocent_statuses"]
    gone = not figures["alive"]
    slow = figures["p95"] > TIMES * figures["quiet_p95"] + MORE
    wrong = any(status.startswith("5") for status in statuses)
    by_gauges, by_cpu = (figures[name] for name in ("give_up", "give_up_cpu"))
    late = by_gauges is None or by_gauges > GIVE_UP or by_cpu is None or by_cpu > GIVE_UP + CALM
    wasted = figures["delivered"] is not None and figures["delivered"] < DELIVERED
    health = any(status != "200" for status in figures["pages"]["/health"]["statuses"])
    found = {
        "it has ended": gone,
        "p95": slow,
        "5xx": wrong,
        "no answer": any(not status.isdigit() for status in statuses),
        "give up": late,
        "peak": figures["peak"] >= PEAK,
        "rest": figures["rest"] > REST * figures["start"],
        "delivered": wasted,
        "/health": health,
    }
    return [name for name, is_missed in found.items() if is_missed]


async def bodies(options: argparse.Namespace, attacks: Sequence[Attack]) -> dict[str, Any]:
    """What the attacks send, as large as the server allows; printed."""
    found: dict[str, Any] = {}
    needed = dict.fromkeys(one.body for one in attacks if one.body)
    if options.dearest is not None and "dearest" in needed:
        found["dearest"] = json.loads(options.dearest.read_text("utf-8"))["body"]
        print(f"dearest: {described_body(found['dearest'])}, found by search")
    with scratch() as folder:
        probe = Probe(options, folder)
        try:
            for name in needed:
                if name not in found:
                    found[name], sentence = await reduced(probe, name, options)
                    print(sentence, flush=True)
        finally:
            probe.end()
    print()
    return found


async def attacked(options: argparse.Namespace, rows: Rows) -> None:
    """Every attack in turn."""
    attacks = [one for one in ATTACKS if not options.only or one.name in options.only]
    sent = await bodies(options, attacks)
    table = Table(rows, "attacks", *COLUMNS)
    with ExitStack() as stack:
        kept: Attacked | None = None
        for attack in attacks:
            target = Target(0, options.source, sent, options.scale)
            if kept is None or attack.descriptors or attack.settings or not await kept.is_idle(1):
                if kept is not None:
                    kept.kill()
                folder = stack.enter_context(scratch())
                server = await Attacked.start(options, folder, attack.settings, attack.descriptors)
            else:
                server = kept
            try:
                target.port = server.port
                trial = Trial(trial_options(options, attack), attack, target)
                table.add(**await trial.figures(server))
            except BaseException:
                server.kill()
                raise
            kept = server if options.quick else None
            if not options.quick:
                server.kill()  # where it has not ended by itself
        if kept is not None:
            print(f"\nstopped within {await kept.stop(options.stop_seconds) or 0:.1f} s")
    print(f"\n{AIMS}")


def trial_options(options: argparse.Namespace, attack: Attack) -> argparse.Namespace:
    """An overload lasts longer than the deadline of a request, for it shows only then."""
    seconds = options.overload_seconds if attack.honest else options.seconds
    return argparse.Namespace(**{**vars(options), "seconds": seconds})


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    here = Path(__file__).resolve().parent.parent
    parser.add_argument("--checkout", type=Path, default=here, help="serve from this checkout")
    parser.add_argument("--model", type=Path, help="a model folder; default: the bundled model")
    parser.add_argument("--only", nargs="+", choices=[one.name for one in ATTACKS], metavar="NAME")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each attack")
    parser.add_argument("--overload-seconds", type=float, default=45.0, help="of an overload")
    parser.add_argument("--quiet-seconds", type=float, default=10.0)
    parser.add_argument("--rest-seconds", type=float, default=5.0)
    parser.add_argument("--give-up-seconds", type=float, default=20.0, help="wait so long at most")
    parser.add_argument("--stop-seconds", type=float, default=20.0, help="then it is killed")
    parser.add_argument("--same-address", action="store_true", help="as the innocent caller's")
    parser.add_argument("--dearest", type=Path, help="what --search-dearest has written")
    parser.add_argument(
        "--search-dearest", type=Path, metavar="FILE", help="search, write it there"
    )
    parser.add_argument("--search-seconds", type=float, default=300.0)
    parser.add_argument("--price-setting", default="limits.price", help="the limit of prices")
    parser.add_argument("--json", type=Path, help="write all rows there")
    parser.set_defaults(middle=MIDDLE, pause=PAUSE, scale=1.0, starts=len(STARTS), cut=CUT)
    parser.set_defaults(ranks=RANKS, grace=GRACE, last=LAST, sizes=SIZES)
    sizes = {"seconds": 0.3, "overload_seconds": 0.3, "quiet_seconds": 0.2, "rest_seconds": 0.0}
    sizes |= {"give_up_seconds": 3.0, "pause": 0.1, "scale": 0.02, "search_seconds": 1.0}
    sizes |= {"sizes": (2, 100, 30), "grace": 1.0, "starts": 2, "cut": 1.0}
    quick.offer(parser, model=tiny.model, **sizes)
    options = parser.parse_args()
    options.source = None if options.same_address else OTHER_ADDRESS
    options.checkout = options.checkout.resolve()
    return options


async def run(options: argparse.Namespace, rows: Rows) -> None:
    """The search, or the attacks; both where all is tiny."""
    if options.search_dearest or options.quick:
        await search_dearest(options, rows)
    if options.quick or not options.search_dearest:
        await attacked(options, rows)


def main() -> None:
    options = read_options()
    about = described()
    print(f"{about}\n", flush=True)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(run(options, Rows(options.json, about)))


if __name__ == "__main__":
    main()
