"""Limits of one caller: of a token where tokens are used, else of an address."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from ledeline.server.settings import CallersConfig

_MAX_REMEMBERED: Final = 10_000  # callers whose recent texts are remembered


class TooManyRequests(Exception):
    """The caller has reached a limit of its own; it may come back after `retry_after` seconds."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class CallerLimits:
    """Says whether a caller may send texts now."""

    def __init__(
        self, settings: CallersConfig, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings, self._clock = settings, clock
        self._full_again: OrderedDict[str, float] = OrderedDict()  # when all texts are allowed anew

    def check(self, caller: str, num_texts: int, in_work: int) -> None:
        """Refuse texts beyond the limits; count those that are not refused."""
        most = self._settings.texts_in_work
        if most is not None and in_work + num_texts > most:
            sentence = f"{in_work} of your texts are in work, and {most} is the limit of a caller"
            raise TooManyRequests(sentence, 1.0)
        if self._settings.texts_per_second is not None:
            self._check_rate(caller, num_texts, self._settings.texts_per_second)

    def _check_rate(self, caller: str, num_texts: int, rate: float) -> None:
        """A bucket that holds `burst` texts and fills at the rate; kept as the time of fullness."""
        now, burst = self._clock(), max(self._settings.burst, num_texts)
        full_again = max(now, self._full_again.pop(caller, now))
        wait = full_again - now + (num_texts - burst) / rate
        if wait <= 0:
            full_again += num_texts / rate
        self._full_again[caller] = full_again
        while len(self._full_again) > _MAX_REMEMBERED:
            self._full_again.popitem(last=False)
        if wait > 0:
            sentence = f"you have sent more than {rate:g} texts a second, which is the limit"
            raise TooManyRequests(sentence, math.ceil(wait))
