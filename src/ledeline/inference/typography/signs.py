"""Currency and percent signs that a headline lost."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ledeline.core.patterns import lazy_pattern
from ledeline.inference.typography.draft import Edit, LedeText, SignedNumber, SignedNumbers
from ledeline.text.function_words import FUNCTION_WORDS

_UNITS: Final = {
    "million": "m", "mn": "m", "mln": "m", "billion": "b", "bn": "b", "bln": "b", "trillion": "t",
    "tn": "t", "thousand": "k",
}  # fmt: skip
_AMOUNT: Final = (
    r"(?P<number>\d{1,15}(?:[.,]\d{1,15}){0,5})"
    r"(?:[ -]?(?P<unit>million|mn|mln|m|billion|bn|bln|b|trillion|tn|t|thousand|k|crore|lakh)"
    r"(?!\w))?"
)
_BARE: Final = lazy_pattern(
    rf"(?<![\w.,:/$£€#'-])(?<![$£€] ){_AMOUNT}(?![\w%$£€:/]|[.,-]\w| ?%)", re.I
)
_SIGNED: Final = lazy_pattern(
    rf"(?<![\w.,-])(?P<currency>(?:[A-Z]{{1,3}})?[$£€])? ?{_AMOUNT}"
    r"(?P<percent> ?%| per ?cent\b)?(?! ?[-–]\d)(?P<follower>[ -]\w{1,20})?",
    re.I,
)
_HAS_SIGN: Final = lazy_pattern(r"[$£€] ?\d|\d(?: ?%| per ?cent\b)", re.I)
_YEAR: Final = lazy_pattern(r"(?:19|20)\d\d")
_MONEY: Final = frozenset(
    """
    bail bid bond bonus budget buyout contract deal debt donation fine fund funding grant investment
    jackpot lawsuit loan loss payout prize profit ransom settlement suit takeover verdict
    """.split()
)
_CURRENCIES: Final = frozenset(
    """
    baht bucks cents crown crowns dinar dinars dirham dirhams dollar dollars euro euros franc
    francs pence peso pesos pound pounds quid rand reais ringgit ruble rubles rupee rupees
    rupiah sterling won yen yuan
    """.split()
)
_RISES: Final = lazy_pattern(
    r"\b(?:by|up|down|rises?|rose|falls?|fell|jumps?|jumped|gains?|gained|drops?|dropped|climbs?"
    r"|slips?|surges?|soars?|plunges?|tumbles?|sinks?|slumps?|grows?|grew) $",
    re.I,
)
_NEXT: Final = lazy_pattern(r"[- ]?([A-Za-z]{1,20})?")
_AFTER_ANY: Final = frozenset("after amid and as at by for from in last on since this to".split())
_NEAR: Final = 20  # characters
_LONG: Final = 3  # digits of a number that is more than a count or a day


def sign_edits(text: str, lede: LedeText) -> Iterator[Edit]:
    """Signs before or behind numbers that the lede has with that sign alone."""
    if not any(map(str.isdigit, text)):
        return
    for found in _BARE.finditer(text):
        signed = _signed(lede).get(_key(found))
        if not signed:
            continue
        follows = _NEXT.match(text, found.end())
        follower = (follows[1] or "").lower() if follows else ""
        currency = signed[0].currency
        if currency and all(one.currency == currency for one in signed):
            if _is_sum(found, follower, signed):
                yield Edit(found.start(), found.start(), currency)
        elif all(one.is_share for one in signed) and _is_share(found, follower, signed):
            yield Edit(found.end(), found.end(), "%")


def _signed(lede: LedeText) -> SignedNumbers:
    """The numbers of a lede; none if none has a sign."""
    if lede.signed is None:
        lede.signed = {}
        if _HAS_SIGN.search(lede.text):
            for found in _SIGNED.finditer(lede.text):
                one = SignedNumber(
                    found["currency"] or "",
                    bool(found["percent"]),
                    (found["follower"] or "")[1:].lower(),
                )
                lede.signed.setdefault(_key(found), []).append(one)
    return lede.signed


def _key(found: re.Match[str]) -> tuple[str, str]:
    unit = (found["unit"] or "").lower()
    return found["number"], _UNITS.get(unit, unit)


def _is_sum(found: re.Match[str], follower: str, signed: Sequence[SignedNumber]) -> bool:
    """Whether a number is a sum of money: not a count, a year, or a part of S&P 500."""
    if follower in _CURRENCIES:
        return False
    ends = not follower or follower in FUNCTION_WORDS or follower in _MONEY
    if not ends and all(follower != one.follower for one in signed):
        return False
    if found["unit"]:
        return True
    number, before = found["number"], found.string[: found.start()].split(" ")[-2:-1]
    is_long = len(number) >= _LONG and not _YEAR.fullmatch(number)
    return is_long and not (before and before[0][:1].isupper())


def _is_share(found: re.Match[str], follower: str, signed: Sequence[SignedNumber]) -> bool:
    """Whether a number is a share, and no score, count or day."""
    if follower and follower not in _AFTER_ANY and any(follower == one.follower for one in signed):
        return True
    if follower and follower not in _AFTER_ANY:
        return False
    before = max(0, found.start() - _NEAR)
    return "." in found["number"] or bool(_RISES.search(found.string, before, found.start()))
