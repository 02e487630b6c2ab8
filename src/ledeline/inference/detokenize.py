"""From the sub-words of a headline to its words; `<unk>` becomes a word of the source."""

from collections.abc import Sequence
from typing import NamedTuple

from ledeline.inference.source_text import SourceText
from ledeline.text.subwords import SPECIALS, UNK
from ledeline.text.tokenizer import Tokenizer


class HeadlineWords(NamedTuple):
    """A headline in words of the profile."""

    words: tuple[str, ...]
    word_ids: tuple[int, ...]  # the word of each sub-word, from 0

    @property
    def has_unknown(self) -> bool:
        """Whether `<unk>` is left."""
        return any(SPECIALS[UNK] in word for word in self.words)


class _Span(NamedTuple):
    """Sub-words from `start` up to `stop` that make a word."""

    start: int
    stop: int
    word: str


def headline_words(ids: Sequence[int], tokenizer: Tokenizer) -> HeadlineWords:
    """The words as the model wrote them."""
    word_ids = tokenizer.word_ids(ids)
    words = tokenizer.decode_words(ids)
    if word_ids and word_ids[-1] >= len(
        words
    ):  # sub-words after the last word that decode to nothing
        word_ids = [min(word, len(words) - 1) for word in word_ids]
    return HeadlineWords(tuple(words), tuple(word_ids))


def replace_unknown_words(
    ids: Sequence[int],
    tokenizer: Tokenizer,
    lede: SourceText,
    weights: Sequence[Sequence[float]],
) -> HeadlineWords:
    """The words; a word with `<unk>` is replaced by the best aligned source word that has one, too.

    Weights, J rows of I, say how much each sub-word of the headline came from each source position.
    If the model copied such a source word sub-word by sub-word, all of them become that one word.
    """
    written = headline_words(ids, tokenizer)
    unknown = lede.unknown
    spans = _spans(written)
    for position, id_ in enumerate(ids):
        if id_ != UNK or not unknown:
            continue
        current = next(span for span in spans if span.start <= position < span.stop)
        if SPECIALS[UNK] not in current.word:
            continue  # replaced before
        share = _shares(weights[position], lede.word_ids)
        ranked = sorted(unknown, key=lambda word: -share[word])
        spans = _insert(spans, _replacement(ids, position, ranked, lede, current))
    word_ids = [number for number, span in enumerate(spans) for _ in range(span.start, span.stop)]
    return HeadlineWords(tuple(span.word for span in spans), tuple(word_ids))


def _shares(row: Sequence[float], word_ids: Sequence[int]) -> list[float]:
    """How much came from each source word: the sum over its sub-words."""
    shares = [0.0] * (word_ids[-1] + 1)
    for weight, word in zip(row, word_ids, strict=True):
        shares[word] += weight
    return shares


def _spans(written: HeadlineWords) -> list[_Span]:
    spans: list[_Span] = []
    for position, word in enumerate(written.word_ids):
        if word == len(spans):
            spans.append(_Span(position, position + 1, written.words[word]))
        else:
            spans[-1] = spans[-1]._replace(stop=position + 1)
    return spans


def _replacement(
    ids: Sequence[int], position: int, ranked: list[int], lede: SourceText, current: _Span
) -> _Span:
    """The span and the source word that replace the `<unk>` at a position."""
    for word in ranked:
        wanted = lede.ids_of(word)
        for start in range(max(0, position - len(wanted) + 1), position + 1):
            if tuple(ids[start : start + len(wanted)]) == wanted:
                return _Span(start, start + len(wanted), lede.words[word])
    return current._replace(word=lede.words[ranked[0]])


def _insert(spans: list[_Span], new: _Span) -> list[_Span]:
    """Replace the spans that a new one covers; words that it cuts become part of it."""
    before = [span for span in spans if span.stop <= new.start]
    after = [span for span in spans if span.start >= new.stop]
    start = before[-1].stop if before else 0
    stop = after[0].start if after else spans[-1].stop
    return [*before, new._replace(start=start, stop=stop), *after]
