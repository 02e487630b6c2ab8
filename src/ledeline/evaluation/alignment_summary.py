"""How a system aligns a set of pairs: quality against gold, words it takes for each other, maps."""

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from ledeline.core.progress import Progress, no_progress
from ledeline.core.shuffle import permutation
from ledeline.corpus.evaluation_sets import EvaluationSet
from ledeline.evaluation.aligner import align
from ledeline.evaluation.alignment import AlignmentScore, Links, num_words, quality, read_gold
from ledeline.evaluation.heatmap import heat_map
from ledeline.evaluation.tracing import read_pair
from ledeline.evaluation.word_pairs import Rule, WordPairs, sample, word_pairs
from ledeline.model.format.folder import ModelBundle

# The rules of the table of words, and the methods of alignment they are.
_RULES: Final[dict[Rule, str]] = {"vocabulary": "spm-vocabulary", "attention": "attention"}
_NUM_EXAMPLES: Final = 30  # words of each group that are kept
_EASY_WORDS: Final = 40  # a heat map of a longer lede is hard to read


class Alignments(NamedTuple):
    """Pairs aligned by each method of a model."""

    links: dict[str, list[Links]]
    quality: dict[str, AlignmentScore] | None  # None without gold


def read_links(test_set: EvaluationSet) -> list[Links] | None:
    """The gold links of a test set, where it has any."""
    if test_set.alignments is None:
        return None
    return read_gold(test_set.alignments, test_set.gold_file, test_set.pairs)


def align_set(
    loaded: ModelBundle, test_set: EvaluationSet, progress: Progress = no_progress
) -> Alignments:
    """Align all pairs, and score the links where there is gold."""
    gold, found = read_links(test_set), align(loaded, test_set.pairs, progress)
    if gold is None:
        return Alignments(found.links, None)
    sizes = [num_words(lede) for lede in test_set.ledes]
    return Alignments(found.links, quality(found.links, gold, sizes, found.left_to_pad))


def word_tables(
    loaded: ModelBundle,
    test_set: EvaluationSet,
    number: int,
    seed: int,
    progress: Progress = no_progress,
) -> dict[str, WordPairs]:
    """The words that are aligned in a sample of the pairs, by the paper's rule and by attention."""
    if not number:
        return {}
    rules = [rule for rule in _RULES if rule == "attention" or loaded.model.spm is not None]
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
) -> dict[str, Any]:
    """All of it for JSON; the pairs of the heat maps are the same for every system."""
    tables = word_tables(loaded, test_set, num_word_pairs, seed, progress)
    scored = None if test_set.alignments is None else align_set(loaded, test_set, progress).quality
    return {
        "words": {
            method: table.as_dict(_NUM_EXAMPLES, content_only=True)
            for method, table in tables.items()
        },
        "quality": scored and {method: score.as_dict() for method, score in scored.items()},
        "heatmaps": [
            {"pair": place}
            | heat_map(loaded, test_set.ledes[place], test_set.headlines[place]).as_dict()
            for place in _easy_places(loaded, test_set.ledes, num_heat_maps, seed)
        ],
    }


def _easy_places(loaded: ModelBundle, ledes: Sequence[str], number: int, seed: int) -> list[int]:
    """Some pairs to draw, of those with a lede that is not long and that the model can read."""
    easy = (
        place
        for place in permutation(seed, 0, len(ledes)).tolist()
        if num_words(ledes[place]) <= _EASY_WORDS and read_pair(loaded, ledes[place], "").lede.ids
    )
    return sorted(islice(easy, number))
