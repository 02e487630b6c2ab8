"""Pairs of text as a model reads them, and what it saw at each step."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from ledeline.inference.attribution import PairTrace, teacher_force
from ledeline.inference.headliner import DEFAULT
from ledeline.inference.source_text import SourceText, read_source_text
from ledeline.model.format.folder import ModelBundle

LONGEST: Final = DEFAULT.max_source  # sub-words of a lede, or of a headline, that are read
_WINDOW: Final = 256  # pairs that are held at a time


class Reading(NamedTuple):
    """A lede and its headline; a lede without ids cannot be shown to a model."""

    lede: SourceText
    ids: tuple[int, ...]  # of the headline
    owners: tuple[int, ...]  # of each id the number of its word in the profile


def read_pair(loaded: ModelBundle, lede: str, headline: str) -> Reading:
    """Read a lede as a `Headliner` does, and of a headline as many sub-words at most."""
    tokenizer = loaded.tokenizer
    encoded = map(tokenizer.encode_word, tokenizer.headline_words(headline))
    pieces = [(id_, number) for number, word in enumerate(encoded) for id_ in word][:LONGEST]
    return Reading(
        lede=read_source_text(lede, 1, tokenizer, LONGEST),
        ids=tuple(id_ for id_, _ in pieces),
        owners=tuple(number for _, number in pieces),
    )


def look(
    loaded: ModelBundle, pairs: Iterable[tuple[str, str]], *, padded: bool = False
) -> Iterator[tuple[Reading, PairTrace | None]]:
    """Force each (lede, headline) through the model, however many there are.

    Nothing is seen of a pair whose lede is empty, no text, or unknown to the last character.
    """
    remaining = iter(pairs)
    while window := list(islice(remaining, _WINDOW)):
        readings = [read_pair(loaded, *pair) for pair in window]
        ids = ((one.lede.ids, one.ids) for one in readings if one.lede.ids)
        seen = teacher_force(loaded.model, ids, padded=padded)
        for one in readings:
            yield one, next(seen) if one.lede.ids else None
