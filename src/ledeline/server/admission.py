"""Which requests are admitted: those that there is room for, and whose headlines come in time.

Times are reckoned from prices: what a unit has taken lately, and how much work goes before.
"""

import time
from collections.abc import Collection
from typing import Final, NamedTuple

from ledeline.server.callers import CallerLimits
from ledeline.server.schedule import FairSchedule, QueuedRequest

MIN_RETRY_AFTER: Final = 1.0  # seconds
_SMOOTHING: Final = 0.1  # of the running mean of the seconds per unit
_SAFE_SHARE: Final = 0.8  # of the time of a request that its reckoned wait may take
_BUSY_AFTER: Final = 5.0  # seconds of a full queue after which the server is not ready


class ServiceUnavailable(Exception):
    """There is no room or no time, or the server is shutting down; retry after `retry_after` s."""

    def __init__(self, message: str, retry_after: float = MIN_RETRY_AFTER) -> None:
        super().__init__(message)
        self.retry_after = max(retry_after, MIN_RETRY_AFTER)


class AdmissionLimits(NamedTuple):
    """What is admitted."""

    waiting: int  # texts
    seconds: float  # to answer a request


class Admission:
    """Admits requests to a schedule, and reckons how long they take."""

    def __init__(
        self, schedule: FairSchedule, limits: AdmissionLimits, caller_limits: CallerLimits
    ) -> None:
        self._schedule, self._limits, self._caller_limits = schedule, limits, caller_limits
        self.num_threads = 1
        self._seconds_per_unit = 1e-4  # of one thread; a running mean
        self._full_since: float | None = None

    def check(self, request: QueuedRequest) -> list[QueuedRequest]:
        """Refuse a request, or admit it; the requests that it displaces are returned."""
        num_texts, most = len(request.texts), self._limits.waiting
        if num_texts > most:
            raise ServiceUnavailable(f"no more than {most} texts can wait")
        others = self._schedule.unfinished()
        in_work = sum(one.num_unfinished for one in others if one.caller == request.caller)
        self._caller_limits.check(request.caller, num_texts, in_work)
        wait, allowed = self._reckoned_wait(request, others), _SAFE_SHARE * self._limits.seconds
        if wait > allowed:
            sentence = (
                f"this would take about {wait:.0f} s, and {self._limits.seconds:g} s is the limit"
            )
            raise ServiceUnavailable(sentence, wait - allowed)
        displaced: list[QueuedRequest] = []
        too_many = self._schedule.num_waiting + num_texts - most
        while too_many > 0:
            loser = self._to_be_displaced(request, displaced)
            if loser is None:
                sentence = f"{self._schedule.num_waiting} texts are waiting already"
                raise ServiceUnavailable(sentence, self.seconds(sum(x.remaining for x in others)))
            displaced.append(loser)
            too_many -= len(loser.waiting)
        return displaced

    def seconds(self, units: float) -> float:
        """The time that all threads together need for so many units."""
        return units * self._seconds_per_unit / self.num_threads

    def is_hopeless(self, request: QueuedRequest, now: float) -> bool:
        """Whether its headlines cannot be ready in time, even if it goes first."""
        return now + self.seconds(request.remaining) > request.deadline

    def observe(self, units: float, seconds: float) -> None:
        """Learn from work that one thread has done."""
        self._seconds_per_unit += _SMOOTHING * (seconds / units - self._seconds_per_unit)

    @property
    def is_busy(self) -> bool:
        """Whether the queue has been full for a while."""
        self.note_fullness()
        since = self._full_since
        return since is not None and time.monotonic() - since >= _BUSY_AFTER

    def note_fullness(self) -> None:
        """Remember since when the queue is full; it is no more once it is half empty."""
        work = sum(one.remaining for one in self._schedule.unfinished())
        share = max(
            self._schedule.num_waiting / self._limits.waiting,
            self.seconds(work) / (_SAFE_SHARE * self._limits.seconds),
        )
        if share < 0.5:
            self._full_since = None
        elif share >= 0.9 and self._full_since is None:
            self._full_since = time.monotonic()

    def _reckoned_wait(self, request: QueuedRequest, others: Collection[QueuedRequest]) -> float:
        """Seconds until the headlines of a new request are there, if nothing else comes.

        Cheaper requests of the same caller go first; of each other caller at most as much work is
        done meanwhile as for this one.
        """
        own, by_caller = request.remaining, dict[str, float]()
        for one in others:
            if one.caller != request.caller:
                by_caller[one.caller] = by_caller.get(one.caller, 0.0) + one.remaining
            elif one.rank < request.rank:
                own += one.remaining
        return self.seconds(own + sum(min(own, units) for units in by_caller.values()))

    def _to_be_displaced(
        self, request: QueuedRequest, already: Collection[QueuedRequest]
    ) -> QueuedRequest | None:
        """A request that has not begun, of the caller with most texts waiting; None: no one.

        A caller's own request is displaced only by one that costs at most half as much.
        """
        waiting = {request.caller: len(request.texts)}
        for one in self._schedule.requests():
            if one not in already:
                waiting[one.caller] = waiting.get(one.caller, 0) + len(one.waiting)
        caller = max(waiting, key=lambda name: (waiting[name], name == request.caller))
        least = 2 * request.remaining if caller == request.caller else 0.0
        candidates = [
            one
            for one in self._schedule.requests()
            if one.caller == caller and not one.has_begun and one.remaining >= least
            if one not in already
        ]
        return max(candidates, key=lambda one: (one.remaining, one.arrived), default=None)
