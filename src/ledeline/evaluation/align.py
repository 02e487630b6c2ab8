"""Pairs aligned by a model: what `ledeline align` writes, draws and shows."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ledeline.core.errors import ConfigError
from ledeline.core.progress import Progress, no_progress
from ledeline.corpus.evaluation_sets import EvaluationSet, read_evaluation_set
from ledeline.evaluation.alignment_methods import methods_of
from ledeline.evaluation.figures import picture_format, save
from ledeline.evaluation.heatmap import heat_map
from ledeline.evaluation.heatmap_figure import heat_map_figure
from ledeline.evaluation.links import format_pharaoh
from ledeline.evaluation.set_alignment import SetLinks, align_set, word_tables
from ledeline.evaluation.word_pairs import WordPairs
from ledeline.model.format.model_folder import ModelBundle


class AlignedSet(NamedTuple):
    """Pairs, with their alignment by a model."""

    test_set: EvaluationSet
    alignments: SetLinks
    words: dict[str, WordPairs]  # by method

    def lines(self, method: str) -> Iterator[str]:
        """The links of each pair in the Pharaoh form."""
        return map(format_pharaoh, self.alignments.links[method])

    def as_dict(self) -> dict[str, Any]:
        """For JSON: quality, word pairs, and of a single pair its links."""
        scores = self.alignments.quality
        fields: dict[str, Any] = {
            "pairs": len(self.test_set.ledes),
            "quality": scores and {method: score.as_dict() for method, score in scores.items()},
            "words": {method: pairs.table().as_dict() for method, pairs in self.words.items()},
        }
        if not self.test_set.files:  # one pair, from the command line
            links = self.alignments.links.items()
            fields["links"] = {method: format_pharaoh(of_pairs[0]) for method, of_pairs in links}
        return fields


def find_pairs(
    pair: Sequence[str], given: str | None, gold: str | None, *, lede: str, headline: str
) -> EvaluationSet:
    """The pair of the command line, or those of files."""
    if bool(pair) == (given is not None):
        raise ConfigError("give a lede and its headline, or many pairs with --input")
    if given is not None:
        return read_evaluation_set(given, lede=lede, headline=headline, gold=gold)
    if len(pair) != 2:
        raise ConfigError("one pair is two texts, a lede and its headline, each in quotes")
    if gold is not None:
        raise ConfigError("--gold needs the pairs of its links; name them with --input")
    return EvaluationSet("pair", (), [pair[0]], [pair[1]])


def chosen_method(loaded: ModelBundle, wanted: str | None) -> str:
    """The method whose links are written: the one that is wanted, or the model's first."""
    available = methods_of(loaded.model)
    if wanted is not None and wanted not in available:
        raise ConfigError(
            f"--method {wanted}: this model ({loaded.model.config.name}) has no SPM; use "
            + ", ".join(available)
        )
    return wanted or available[0]


def draw_pair(loaded: ModelBundle, test_set: EvaluationSet, row: int, path: Path) -> None:
    """Draw the heat map of a pair, counted from 1."""
    if row > len(test_set.ledes):
        raise ConfigError(f"--row {row}: there are only {len(test_set.ledes):,} pairs")
    picture_format(path)  # a wrong suffix is refused before the work
    save(heat_map_figure(heat_map(loaded, *test_set.pairs[row - 1])), path)


def align_pairs(
    loaded: ModelBundle,
    test_set: EvaluationSet,
    num_word_pairs: int,
    seed: int,
    progress: Progress = no_progress,
) -> AlignedSet:
    """Align pairs with a model, and find the aligned word pairs of a sample of them."""
    words = word_tables(loaded, test_set, num_word_pairs, seed, progress)
    return AlignedSet(test_set, align_set(loaded, test_set, progress), words)
