"""Known pairs of lede and headline, teacher-forced through a model."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple, TypeAlias, TypeVar

from ledeline.inference.headliner import DEFAULT_OPTIONS
from ledeline.inference.source_text import SourceText, read_source_text
from ledeline.inference.traces import PairTrace, teacher_force
from ledeline.model.format.model_folder import ModelBundle

MAX_LENGTH: Final = (
    DEFAULT_OPTIONS.max_source
)  # sub-words of a lede, or of a headline, that are read
_WINDOW: Final = 256  # pairs in memory at a time

_T = TypeVar("_T")
_IdPairs: TypeAlias = Iterator[tuple[tuple[int, ...], tuple[int, ...]]]  # ledes and headlines


class EncodedPair(NamedTuple):
    """A lede and its headline as ids. A lede without ids cannot be read by a model."""

    lede: SourceText
    ids: tuple[int, ...]  # of the headline
    word_ids: tuple[int, ...]  # of each id the number of its word in the profile


def encode_pair(loaded: ModelBundle, lede: str, headline: str) -> EncodedPair:
    """Read a lede as a `Headliner` does, and at most as many sub-words of the headline."""
    tokenizer = loaded.tokenizer
    encoded = map(tokenizer.encode_word, tokenizer.headline_words(headline))
    pieces = [(id_, number) for number, word in enumerate(encoded) for id_ in word][:MAX_LENGTH]
    return EncodedPair(
        lede=read_source_text(lede, 1, tokenizer, MAX_LENGTH),
        ids=tuple(id_ for id_, _ in pieces),
        word_ids=tuple(number for _, number in pieces),
    )


def trace_pairs(
    loaded: ModelBundle, pairs: Iterable[tuple[str, str]], *, padded: bool = False
) -> Iterator[tuple[EncodedPair, PairTrace | None]]:
    """Force each (lede, headline) through the model, however many there are.

    There is no trace of a pair whose lede is empty, no text, or unknown to the last character. With
    `padded`, the steps of <pad> in the SPM's Y' are traced too.
    """
    return force_pairs(loaded, pairs, lambda ids: teacher_force(loaded.model, ids, padded=padded))


def force_pairs(
    loaded: ModelBundle,
    pairs: Iterable[tuple[str, str]],
    force: Callable[[_IdPairs], Iterator[_T]],
) -> Iterator[tuple[EncodedPair, _T | None]]:
    """As `trace_pairs`, with what `force` makes of the ids of lede and headline."""
    remaining = iter(pairs)
    while window := list(islice(remaining, _WINDOW)):
        encoded = [encode_pair(loaded, *pair) for pair in window]
        forced = force((one.lede.ids, one.ids) for one in encoded if one.lede.ids)
        for one in encoded:
            yield one, next(forced) if one.lede.ids else None
