"""From the sub-words of a headline to its words, with the source's own words where the model had
only `<unk>`.
"""  # noqa: D205

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ledeline.inference.source_text import SourceText
from ledeline.text.subwords import SPECIALS, UNK
from ledeline.text.tokenizer import Tokenizer


class HeadlineWords(NamedTuple):
    """A headline in words of the profile."""

    words: tuple[str, ...]
    owners: tuple[int, ...]  # of each sub-word the number of its word

    @property
    def has_unknown(self) -> bool:
        """Whether `<unk>` is left."""
        return any(SPECIALS[UNK] in word for word in self.words)


class _Span(NamedTuple):
    """Sub-words from `start` up to `stop` that make a word."""

    start: int
    stop: int
    word: str


def wording(ids: Sequence[int], tokenizer: Tokenizer) -> HeadlineWords:
    """The words as the model wrote them."""
    owners = tokenizer.word_ids(ids)
    words = tokenizer.decode_words(ids)
    if owners and owners[-1] >= len(words):  # what reads as nothing, behind the last word
        owners = [min(owner, len(words) - 1) for owner in owners]
    return HeadlineWords(tuple(words), tuple(owners))


def with_source_words(
    ids: Sequence[int],
    tokenizer: Tokenizer,
    lede: SourceText,
    weights: npt.NDArray[np.floating[Any]],
) -> HeadlineWords:
    """The words, each with an `<unk>` replaced by the best aligned source word that has one.

    Weights are those of each source place at each sub-word of the headline, (J, I). If the model
    copied the sub-words of such a source word one by one, they all make that word.
    """
    plain = wording(ids, tokenizer)
    unknown = lede.unknown
    spans = _spans(plain)
    for place, id_ in enumerate(ids):
        if id_ != UNK or not unknown:
            continue
        current = next(span for span in spans if span.start <= place < span.stop)
        if SPECIALS[UNK] not in current.word:
            continue  # done, with a place before
        share = {word: weights[place, np.array(lede.owners) == word].sum() for word in unknown}
        ranked = sorted(unknown, key=lambda word: -share[word])
        spans = _replaced(spans, _chosen(ids, place, ranked, lede, current))
    owners = [number for number, span in enumerate(spans) for _ in range(span.start, span.stop)]
    return HeadlineWords(tuple(span.word for span in spans), tuple(owners))


def _spans(plain: HeadlineWords) -> list[_Span]:
    spans: list[_Span] = []
    for place, owner in enumerate(plain.owners):
        if owner == len(spans):
            spans.append(_Span(place, place + 1, plain.words[owner]))
        else:
            spans[-1] = spans[-1]._replace(stop=place + 1)
    return spans


def _chosen(
    ids: Sequence[int], place: int, ranked: list[int], lede: SourceText, current: _Span
) -> _Span:
    """What the unknown sub-word at a place becomes."""
    for word in ranked:
        wanted = lede.ids_of(word)
        for start in range(max(0, place - len(wanted) + 1), place + 1):
            if tuple(ids[start : start + len(wanted)]) == wanted:
                return _Span(start, start + len(wanted), lede.words[word])
    return current._replace(word=lede.words[ranked[0]])


def _replaced(spans: list[_Span], new: _Span) -> list[_Span]:
    """Put a span in the place of those it covers; words it cuts into keep to it as a whole."""
    before = [span for span in spans if span.stop <= new.start]
    behind = [span for span in spans if span.start >= new.stop]
    start = before[-1].stop if before else 0
    stop = behind[0].start if behind else spans[-1].stop
    return [*before, new._replace(start=start, stop=stop), *behind]
