"""How a model aligns a test set: links and their quality, aligned word pairs, heat maps."""

from collections.abc import Sequence
from itertools import islice
from typing import Final, NamedTuple

from ledeline.core.progress import Progress, no_progress
from ledeline.core.shuffle import permutation
from ledeline.corpus.evaluation_sets import EvaluationSet
from ledeline.evaluation.alignment_json import AlignmentSummary, PairHeatMap
from ledeline.evaluation.alignment_methods import align
from ledeline.evaluation.heatmap import heat_map
from ledeline.evaluation.links import (
    AlignmentScore,
    Links,
    gold_links,
    num_words,
    score_methods,
)
from ledeline.evaluation.teacher_forcing import encode_pair
from ledeline.evaluation.word_pairs import PairingRule, WordPairs, sample, word_pairs
from ledeline.model.format.model_folder import ModelBundle

# The rules of the table of word pairs, and the methods of alignment that they are.
_RULES: Final[dict[PairingRule, str]] = {"vocabulary": "spm-vocabulary", "attention": "attention"}
_NUM_EXAMPLES: Final = 30  # word pairs of each group that are written
_MAX_WORDS: Final = 40  # of a lede; the heat map of a longer one is hard to read


class SetLinks(NamedTuple):
    """The links of all pairs by each method of a model."""

    links: dict[str, list[Links]]
    quality: dict[str, AlignmentScore] | None  # None without gold links


def align_set(
    loaded: ModelBundle, test_set: EvaluationSet, progress: Progress = no_progress
) -> SetLinks:
    """Align all pairs, and score the links where there are gold links."""
    gold, found = gold_links(test_set), align(loaded, test_set.pairs, progress)
    if gold is None:
        return SetLinks(found.links, None)
    sizes = [num_words(lede) for lede in test_set.ledes]
    return SetLinks(found.links, score_methods(found.links, gold, sizes, found.left_to_pad))


def word_tables(
    loaded: ModelBundle,
    test_set: EvaluationSet,
    number: int,
    seed: int,
    progress: Progress = no_progress,
) -> dict[str, WordPairs]:
    """The aligned word pairs of a sample of the test set, by the paper's rule and by attention."""
    if not number:
        return {}
    rules = [rule for rule in _RULES if rule == "attention" or loaded.model.has_source_predictions]
    found = word_pairs(loaded, sample(test_set.pairs, number, seed), rules, progress)
    return {_RULES[rule]: table for rule, table in found.items()}


def alignment_summary(
    loaded: ModelBundle,
    test_set: EvaluationSet,
    *,
    num_word_pairs: int,
    num_heat_maps: int,
    seed: int,
    progress: Progress = no_progress,
) -> AlignmentSummary:
    """All that is written of a test set; nothing if the system has no attention.

    The heat maps are of the same pairs for every system.
    """
    if not loaded.model.has_attention:
        return AlignmentSummary({}, None, ())
    tables = word_tables(loaded, test_set, num_word_pairs, seed, progress)
    scores = None if test_set.alignments is None else align_set(loaded, test_set, progress).quality
    places, pairs = _readable_places(loaded, test_set.ledes, num_heat_maps, seed), test_set.pairs
    return AlignmentSummary(
        {method: words.table(_NUM_EXAMPLES, content_only=True) for method, words in tables.items()},
        scores,
        tuple(PairHeatMap(place, heat_map(loaded, *pairs[place])) for place in places),
    )


def _readable_places(
    loaded: ModelBundle, ledes: Sequence[str], number: int, seed: int
) -> list[int]:
    """So many pairs to draw, with a lede that is not long and that the model can read."""
    readable = (
        place
        for place in permutation(seed, 0, len(ledes)).tolist()
        if num_words(ledes[place]) <= _MAX_WORDS and encode_pair(loaded, ledes[place], "").lede.ids
    )
    return sorted(islice(readable, number))
