"""Odd and doubted words marked in a headline as people read it."""

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

from ledeline.inference.checks.doubt import Doubt


class MarkedPart(NamedTuple):
    """A part of a headline, all of which is odd or not, and is doubted or not."""

    text: str
    is_odd: bool
    doubts: tuple[Doubt, ...] = ()
    ended: tuple[Doubt, ...] = ()  # those of the doubts that end with this part


def with_doubts(parts: Sequence[tuple[str, bool]], doubts: Sequence[Doubt]) -> list[MarkedPart]:
    """Cut the parts of a headline, odd or not, where a doubt begins or ends."""
    marks: list[MarkedPart] = []
    start = 0
    for text, is_odd in parts:
        end = start + len(text)
        ends = {place for one in doubts for place in (one.start, one.end) if start < place < end}
        for first, last in pairwise([start, *sorted(ends), end]):
            here = tuple(one for one in doubts if one.start < last and first < one.end)
            ended = tuple(one for one in here if one.end == last)
            marks.append(MarkedPart(text[first - start : last - start], is_odd, here, ended))
        start = end
    return marks


def marked(headline: str, words: Sequence[str], places: Collection[int]) -> list[tuple[str, bool]]:
    """Cut a headline into parts that are odd or not.

    Words are searched one after another in the headline as people read it. If one is not found,
    because it is spelt in another way there, the words themselves are shown instead.
    """
    spans = _spans(headline, words)
    if None in spans:
        headline = " ".join(words)
        spans = _spans(headline, words)
    cuts: list[tuple[str, bool]] = []
    end = 0
    for place in sorted(places):
        span = spans[place]
        assert span is not None
        cuts += [(headline[end : span[0]], False), (headline[span[0] : span[1]], True)]
        end = span[1]
    return [cut for cut in [*cuts, (headline[end:], False)] if cut[0]]


def _spans(headline: str, words: Sequence[str]) -> list[tuple[int, int] | None]:
    """Where each word begins and ends in the headline."""
    spans: list[tuple[int, int] | None] = []
    end = 0
    for word in words:
        begin = headline.find(word, end)
        spans.append((begin, begin + len(word)) if begin >= 0 else None)
        end = begin + len(word) if begin >= 0 else end
    return spans
