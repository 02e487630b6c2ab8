"""Which texts are searched next, and together: a fair share of the time for every caller.

Requests wait in a queue, and their texts are searched in slices: some texts with the same options
and similar lengths, so few that each step of their search is short. After a few steps a slice can
be put aside for another one. Whose turn it is:

1. Callers share the time. The next slice belongs to the caller that had the least of it; one who
   comes anew begins with what the others have had at least, less a small credit.
2. Among the requests of a caller the one goes first that needs least; among equals the oldest.

A slice takes texts of several callers, but as many of each as of the one that has fewest: so a
single text is not searched together with the many texts of somebody else.

Nothing here knows of threads, search or HTTP; `Batcher` brings them together.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from ledeline.inference.checks.checking import PairText
from ledeline.inference.options import Options
from ledeline.inference.source_text import SourceText

_CREDIT: Final = 0.05  # seconds of work by which a caller who comes anew goes first
_SMALLEST: Final = 256.0  # units; requests that need less are equal


@dataclass(eq=False)
class QueuedText:
    """A text of a request."""

    source: SourceText | PairText
    price: float  # expected, in units
    request: "QueuedRequest"
    position: int  # in the request
    batch: "Slice | None" = None  # in which it is searched


@dataclass(eq=False)
class QueuedRequest:
    """The texts of a request that are not searched yet, and what is known about it."""

    caller: str
    options: Options | None  # None: its texts are pairs, which are checked
    heat_map: bool
    deadline: float
    arrived: float
    reply: Any = None  # what the batcher answers through
    texts: list[QueuedText] = field(default_factory=list)
    waiting: list[QueuedText] = field(default_factory=list)
    results: dict[int, bytes] = field(default_factory=dict)  # by position
    remaining: float = 0.0  # units of the texts that have no result yet

    def add(self, source: SourceText | PairText, price: float) -> None:
        """Add a text at the end."""
        text = QueuedText(source, price, self, len(self.texts))
        self.texts.append(text)
        self.waiting.append(text)
        self.remaining += price

    def put(self, text: QueuedText, result: bytes) -> None:
        """Keep the result of a text."""
        self.results[text.position] = result
        self.remaining -= text.price

    @property
    def num_unfinished(self) -> int:
        """Texts that have no result yet."""
        return len(self.texts) - len(self.results)

    @property
    def num_hypotheses(self) -> int:
        """Of each of its texts."""
        return self.options.search.beam_size if self.options is not None else 1

    @property
    def has_begun(self) -> bool:
        """Whether some of its texts were searched."""
        return len(self.waiting) < len(self.texts)

    @property
    def rank(self) -> tuple[int, float]:
        """Its place among the requests of a caller: cheaper ones first, then older ones."""
        return math.ceil(math.log2(max(1.0, self.remaining / _SMALLEST))), self.arrived


@dataclass(eq=False)
class Slice:
    """Texts that are searched together."""

    texts: list[QueuedText]
    generation: Any = None  # made by the batcher when the search begins
    seconds: float = 0.0  # of work so far
    dropped: list[int] = field(default_factory=list)  # rows to be given up at the next step

    @property
    def options(self) -> Options | None:
        """The options of all its texts; None: they are pairs, which are checked."""
        return self.texts[0].request.options

    @property
    def live(self) -> Iterator[QueuedText]:
        """Its texts that somebody waits for."""
        return (one for one in self.texts if one.batch is self)


class SliceLimits(NamedTuple):
    """How much is searched together, at most; a single text is always allowed."""

    texts: int
    subwords: int  # of all texts, padded to the longest: the first step reads them all
    hypotheses: int  # of all texts: each further step extends them all


class Turn(NamedTuple):
    """What a thread does next: a slice, or wait so many seconds (None: until something changes)."""

    batch: Slice | None
    wait: float | None = None


class FairSchedule:
    """The queue, the slices that were put aside, and the time that each caller has had."""

    def __init__(
        self,
        limits: SliceLimits,
        window: float,
        max_slices: int,
        min_texts: int,
        pair_limits: SliceLimits | None = None,
    ) -> None:
        self._limits, self._pair_limits = limits, pair_limits or limits
        self._window = window
        self._max_slices, self._min_texts = max_slices, min_texts
        self._requests: dict[str, list[QueuedRequest]] = {}  # that have texts waiting, by caller
        self.aside: list[Slice] = []  # slices that are put aside
        self._running: list[Slice] = []
        self._seconds: dict[str, float] = {}  # of work for each caller
        self._least = 0.0  # that an active caller has had; never falls

    @property
    def num_waiting(self) -> int:
        """Texts that wait."""
        return sum(len(one.waiting) for one in self.requests())

    @property
    def num_searched(self) -> int:
        """Texts whose search has begun, and that are not given up yet."""
        return sum(len(one.dropped) + sum(1 for _ in one.live) for one in self._slices())

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self._requests and not self.aside and not self._running

    def requests(self) -> Iterator[QueuedRequest]:
        """All requests that have texts waiting."""
        return (one for requests in self._requests.values() for one in requests)

    def unfinished(self) -> set[QueuedRequest]:
        """All requests with texts that wait or are searched."""
        searched = (text.request for one in self._slices() for text in one.live)
        return {*self.requests(), *searched}

    def _slices(self) -> Iterable[Slice]:
        return (*self._running, *self.aside)

    # --- requests come and go -----------------------------------------------------------------

    def add(self, request: QueuedRequest) -> None:
        """Put a request into the queue."""
        if request.caller not in self._active():
            begin = self._least_of_active() - _CREDIT
            self._seconds[request.caller] = max(begin, self._seconds.get(request.caller, begin))
        self._requests.setdefault(request.caller, []).append(request)

    def remove(self, request: QueuedRequest) -> list[Slice]:
        """Forget a request. Slices with rows of it, which their `dropped` names, are returned."""
        request.waiting.clear()
        self._tidy(request)
        slices = list(dict.fromkeys(one.batch for one in request.texts if one.batch is not None))
        for one in slices:
            one.dropped += [row for row, text in enumerate(one.texts) if text.request is request]
            for text in one.texts:
                if text.request is request:
                    text.batch = None
        return slices

    def _tidy(self, request: QueuedRequest) -> None:
        """Take a request out of the queue if none of its texts waits."""
        requests = self._requests.get(request.caller, [])
        if not request.waiting and request in requests:
            requests.remove(request)
            if not requests:
                del self._requests[request.caller]

    # --- turns --------------------------------------------------------------------------------

    def next(self, now: float, num_idle: int = 1) -> Turn:
        """What one of `num_idle` idle threads does next; a slice then counts as running."""
        self._forget_idle_callers()
        aside = min(self.aside, key=self._rank_of_slice, default=None)
        if len(self.aside) + len(self._running) < self._max_slices:
            fresh = min(self.requests(), key=self._rank_of_request, default=None)
        else:
            fresh = None
        if fresh is not None and (
            aside is None or self._rank_of_request(fresh) < self._rank_of_slice(aside)
        ):
            texts, is_full = self._texts_with(fresh, num_idle)
            early = min(one.request.arrived for one in texts) + self._window - now
            if is_full or early <= 0:
                return Turn(self._begin(texts))
            if aside is None:
                return Turn(None, early)
        if aside is None:
            return Turn(None)
        self.aside.remove(aside)
        self._running.append(aside)
        return Turn(aside)

    def charge(self, batch: Slice, seconds: float) -> None:
        """Count work for the callers of a slice."""
        batch.seconds += seconds
        for one in batch.texts:
            caller = one.request.caller
            share = seconds / len(batch.texts)
            self._seconds[caller] = self._seconds.get(caller, self._least) + share

    def put_aside(self, batch: Slice) -> None:
        """The slice has had its turn, and is not done."""
        self._running.remove(batch)
        self.aside.append(batch)

    def finish(self, batch: Slice) -> None:
        """The slice is done."""
        (self._running if batch in self._running else self.aside).remove(batch)

    def split(self, batch: Slice) -> None:
        """Begin each text of a slice anew, alone."""
        self.finish(batch)
        for text in list(batch.live):
            text.batch = Slice([text])
            self.aside.append(text.batch)

    def _begin(self, texts: list[QueuedText]) -> Slice:
        batch = Slice(texts)
        for one in texts:
            one.batch = batch
            one.request.waiting.remove(one)
            self._tidy(one.request)
        self._running.append(batch)
        return batch

    # --- who goes first -----------------------------------------------------------------------

    def _rank_of_request(self, request: QueuedRequest) -> tuple[float, tuple[int, float]]:
        return self._seconds[request.caller], request.rank

    def _rank_of_slice(self, batch: Slice) -> tuple[float, tuple[int, float]]:
        requests = {one.request for one in batch.live}
        ranks = ((self._seconds.get(one.caller, self._least), one.rank) for one in requests)
        return min(ranks, default=(-math.inf, (0, 0.0)))

    def _active(self) -> set[str]:
        return {
            *self._requests,
            *(one.request.caller for batch in self._slices() for one in batch.texts),
        }

    def _least_of_active(self) -> float:
        seconds = [self._seconds[one] for one in self._active() if one in self._seconds]
        self._least = max(self._least, min(seconds, default=self._least))
        return self._least

    def _forget_idle_callers(self) -> None:
        """Forget callers who have had no more than a new one would begin with."""
        least, active = self._least_of_active(), self._active()
        if not active:
            self._seconds.clear()
        elif len(self._seconds) > 2 * len(active) + 16:
            self._seconds = {
                caller: seconds
                for caller, seconds in self._seconds.items()
                if caller in active or seconds > least - _CREDIT
            }

    # --- what goes together -------------------------------------------------------------------

    def _texts_with(self, first: QueuedRequest, num_idle: int) -> tuple[list[QueuedText], bool]:
        """The texts of a slice that begins with a text of this request; whether it is full."""
        lead = first.waiting[0]
        groups = self._candidates(lead)
        fewest = min(map(len, groups))
        candidates = _interleaved([texts[:fewest] for texts in groups])
        limits = self._limits if first.options is not None else self._pair_limits
        room = max(1, min(limits.texts, limits.hypotheses // first.num_hypotheses))
        size = min(room, len(candidates))
        slices = max(1, min(num_idle, size // self._min_texts))  # something for each thread
        size = -(-size // slices)
        longest = 1
        for number, one in enumerate(candidates[:size]):
            longest = max(longest, len(one.source.ids))
            if number and (number + 1) * longest > limits.subwords:
                return candidates[:number], True
        return candidates[:size], len(candidates) >= room

    def _candidates(self, lead: QueuedText) -> list[list[QueuedText]]:
        """For each caller, texts that can be searched with this one; its own come first.

        Each request has as many as the one of its caller that has fewest.
        """
        size, request = len(lead.source.ids), lead.request
        groups: list[list[QueuedText]] = []
        for caller, requests in self._requests.items():
            lists = []
            for one in sorted(requests, key=lambda other: (other is not request, other.rank)):
                if one.options != request.options or one.heat_map != request.heat_map:
                    continue
                similar = [text for text in one.waiting if _is_similar(len(text.source.ids), size)]
                if similar:
                    lists.append(similar)
            if lists:
                fewest = min(map(len, lists))
                texts = _interleaved([one[:fewest] for one in lists])
                groups.insert(0 if caller == request.caller else len(groups), texts)
        return groups


def _is_similar(size: int, other: int) -> bool:
    return max(size, other) <= 1.5 * min(size, other) + 8


def _interleaved(lists: list[list[QueuedText]]) -> list[QueuedText]:
    """The first texts of all lists, then the second ones, and so on."""
    return [one for some in zip_longest(*lists) for one in some if one is not None]
