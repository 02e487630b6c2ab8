"""The methods of alignment: pairs of text aligned by a model, and by two baselines without one."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import tee
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ledeline.core.progress import Progress, no_progress, track_progress
from ledeline.evaluation.links import (
    Links,
    attention_links,
    diagonal_links,
    identity_links,
    num_words,
    pad_places,
    spm_links,
    to_words,
    whitespace_word_ids,
)
from ledeline.evaluation.teacher_forcing import EncodedPair, trace_pairs
from ledeline.inference.traces import PairTrace
from ledeline.model.format.model_folder import ModelBundle
from ledeline.model.system import System
from ledeline.text.tokenizer import Tokenizer

METHODS: Final = {
    "spm-vocabulary": "SPM, the likeliest type of all (the paper's rule)",
    "spm-sentence": "SPM, the likeliest type of the sentence",
    "attention": "attention at the step that writes the word",
    "attention-shifted": "attention one step later",
    "identity": "baseline: the word at the same place",
    "diagonal": "baseline: the word at the proportional place",
}
STAGE: Final = "align"


def methods_of(model: System) -> tuple[str, ...]:
    """The methods of METHODS that a model has, in the same order."""
    return tuple(
        name for name in METHODS if model.has_source_predictions or not name.startswith("spm")
    )


class AlignedPair(NamedTuple):
    """One pair: links between white-space words, and the words that the SPM says were dropped."""

    links: dict[str, Links]  # by method
    left_to_pad: frozenset[int] | None  # words of the lede predicted at <pad>; None without SPM


class AlignedPairs(NamedTuple):
    """The same for many pairs, in order."""

    links: dict[str, list[Links]]
    left_to_pad: list[frozenset[int]] | None


def align(
    loaded: ModelBundle, pairs: Sequence[tuple[str, str]], progress: Progress = no_progress
) -> AlignedPairs:
    """Link the white-space words of each (lede, headline), by each method the model has."""
    links: dict[str, list[Links]] = {method: [] for method in methods_of(loaded.model)}
    left_to_pad = []
    for aligned in track_progress(align_each(loaded, pairs), STAGE, len(pairs), progress):
        for method, those in aligned.links.items():
            links[method].append(those)
        if aligned.left_to_pad is not None:
            left_to_pad.append(aligned.left_to_pad)
    return AlignedPairs(links, None if not loaded.model.has_source_predictions else left_to_pad)


def align_each(loaded: ModelBundle, pairs: Iterable[tuple[str, str]]) -> Iterator[AlignedPair]:
    """The links of each (lede, headline), and what was left to <pad>; some are held at a time.

    A lede is read as a `Headliner` reads it, up to `teacher_forcing.MAX_LENGTH` sub-words, and a
    headline as far. Words behind that have no links by a model. Nor has a pair whose lede or
    headline is empty or no text, or whose lede is unknown to the last character.
    """
    texts, to_trace = tee(pairs)
    traced = trace_pairs(loaded, to_trace, padded=True)
    for pair, (encoded, trace) in zip(texts, traced, strict=True):
        yield _align_pair(loaded, pair, encoded, trace)


def _align_pair(
    loaded: ModelBundle, pair: tuple[str, str], encoded: EncodedPair, trace: PairTrace | None
) -> AlignedPair:
    links: dict[str, Links] = dict.fromkeys(methods_of(loaded.model), frozenset())
    left: frozenset[int] | None = None if not loaded.model.has_source_predictions else frozenset()
    if trace is not None:
        source_words, headline_words = pair_word_ids(pair, loaded.tokenizer)
        for method, between in _model_links(trace, encoded).items():
            links[method] = to_words(between, source_words, headline_words)
        left = _left_to_pad(trace, encoded, source_words)
    sizes = num_words(pair[0]), num_words(pair[1])
    return AlignedPair(
        links | {"identity": identity_links(*sizes), "diagonal": diagonal_links(*sizes)}, left
    )


def _model_links(trace: PairTrace, encoded: EncodedPair) -> dict[str, Links]:
    """Links between sub-words."""
    links: dict[str, Links] = {}
    source, num_headline = encoded.lede.ids, len(encoded.ids)
    if trace.q is not None:
        q, attention = trace.q[:num_headline], trace.attention[:num_headline]
        links["spm-vocabulary"] = spm_links(q, source, rule="vocabulary", attention=attention)
        links["spm-sentence"] = spm_links(q, source, rule="sentence", attention=attention)
    return links | attention_methods(trace.attention, num_headline)


def attention_methods(
    attention: npt.NDArray[np.floating[Any]], num_headline: int
) -> dict[str, Links]:
    """Links between sub-words by the methods of attention, which is (J or more, I)."""
    return {
        "attention": attention_links(attention, num_headline),
        "attention-shifted": attention_links(attention, num_headline, shift=1),
    }


def pair_word_ids(pair: tuple[str, str], tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """The `whitespace_word_ids` of a lede and its headline."""
    source_words = whitespace_word_ids(pair[0], tokenizer)
    return source_words, whitespace_word_ids(pair[1], tokenizer, headline=True)


def _left_to_pad(
    trace: PairTrace, encoded: EncodedPair, source_words: Sequence[int]
) -> frozenset[int] | None:
    """The words of which a sub-word is predicted at <pad>."""
    if trace.q is None:
        return None
    places = pad_places(trace.q, encoded.lede.ids, len(encoded.ids), attention=trace.attention)
    return frozenset(source_words[i] for i in places)
