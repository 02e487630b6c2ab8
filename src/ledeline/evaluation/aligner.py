"""Pairs of text aligned by a model in every way it can, beside baselines that know nothing."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import tee
from typing import Final, NamedTuple

from ledeline.core.progress import Progress, no_progress, track_progress
from ledeline.evaluation.alignment import (
    Links,
    attention_links,
    diagonal_links,
    identity_links,
    num_words,
    owners,
    pad_places,
    spm_links,
    to_words,
)
from ledeline.evaluation.tracing import Reading, look
from ledeline.inference.attribution import PairTrace
from ledeline.model.format.folder import ModelBundle
from ledeline.model.system import System

METHODS: Final = {
    "spm-vocabulary": "SPM, the likeliest type of all (the paper's rule)",
    "spm-sentence": "SPM, the likeliest type of the sentence",
    "attention": "attention at the step that writes the word",
    "attention-shifted": "attention one step later",
    "identity": "baseline: the word at the same place",
    "diagonal": "baseline: the word at the proportional place",
}
STAGE: Final = "align"


def methods(model: System) -> tuple[str, ...]:
    """The methods of METHODS that a model has, in their order."""
    return tuple(
        name for name in METHODS if model.has_source_predictions or not name.startswith("spm")
    )


class Aligned(NamedTuple):
    """One pair: links between white-space words, and what the SPM says was dropped."""

    links: dict[str, Links]  # by method
    left_to_pad: frozenset[int] | None  # words of the lede predicted at <pad>; None without SPM


class AlignedPairs(NamedTuple):
    """The same of many pairs."""

    links: dict[str, list[Links]]
    left_to_pad: list[frozenset[int]] | None


def align(
    loaded: ModelBundle, pairs: Sequence[tuple[str, str]], progress: Progress = no_progress
) -> AlignedPairs:
    """Link the white-space words of each (lede, headline), by each method the model has."""
    links: dict[str, list[Links]] = {method: [] for method in methods(loaded.model)}
    left_to_pad = []
    for aligned in track_progress(alignments(loaded, pairs), STAGE, len(pairs), progress):
        for method, those in aligned.links.items():
            links[method].append(those)
        if aligned.left_to_pad is not None:
            left_to_pad.append(aligned.left_to_pad)
    return AlignedPairs(links, None if not loaded.model.has_source_predictions else left_to_pad)


def alignments(loaded: ModelBundle, pairs: Iterable[tuple[str, str]]) -> Iterator[Aligned]:
    """The links of each (lede, headline), and what was left to <pad>; some are held at a time.

    A lede is read as a `Headliner` reads it, up to `reading.LONGEST` sub-words, and a headline as
    far. Words behind that have no links by a model, and a pair has none whose lede or headline is
    empty, no text, or a lede that is unknown to the last character.
    """
    for_links, for_look = tee(pairs)
    for pair, (reading, seen) in zip(for_links, look(loaded, for_look, padded=True), strict=True):
        yield _aligned(loaded, pair, reading, seen)


def _aligned(
    loaded: ModelBundle, pair: tuple[str, str], reading: Reading, seen: PairTrace | None
) -> Aligned:
    links: dict[str, Links] = dict.fromkeys(methods(loaded.model), frozenset())
    left: frozenset[int] | None = None if not loaded.model.has_source_predictions else frozenset()
    if seen is not None:
        lede, headline = pair
        source_owners = owners(lede, loaded.tokenizer)
        headline_owners = owners(headline, loaded.tokenizer, headline=True)
        for method, between in _model_links(seen, reading).items():
            links[method] = to_words(between, source_owners, headline_owners)
        left = _left_to_pad(seen, reading, source_owners)
    sizes = num_words(pair[0]), num_words(pair[1])
    return Aligned(
        links | {"identity": identity_links(*sizes), "diagonal": diagonal_links(*sizes)}, left
    )


def _model_links(seen: PairTrace, reading: Reading) -> dict[str, Links]:
    """Links between sub-words."""
    links, source, num_headline = {}, reading.lede.ids, len(reading.ids)
    if seen.q is not None:
        q, attention = seen.q[:num_headline], seen.attention[:num_headline]
        links["spm-vocabulary"] = spm_links(q, source, rule="vocabulary", attention=attention)
        links["spm-sentence"] = spm_links(q, source, rule="sentence", attention=attention)
    links["attention"] = attention_links(seen.attention, num_headline)
    links["attention-shifted"] = attention_links(seen.attention, num_headline, shift=1)
    return links


def _left_to_pad(
    seen: PairTrace, reading: Reading, source_owners: Sequence[int]
) -> frozenset[int] | None:
    """The words of which a sub-word is predicted at <pad>."""
    if seen.q is None:
        return None
    places = pad_places(seen.q, reading.lede.ids, len(reading.ids), attention=seen.attention)
    return frozenset(source_owners[i] for i in places)
