"""Odd words marked in a headline as people read it."""

from collections.abc import Collection, Sequence


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
