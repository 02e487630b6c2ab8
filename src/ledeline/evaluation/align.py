"""Pairs aligned by a model: what `ledeline align` writes, draws and shows."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ledeline.core.errors import ConfigError
from ledeline.core.progress import Progress, no_progress
from ledeline.corpus.evaluation_sets import EvaluationSet, read_evaluation_set
from ledeline.evaluation.aligner import methods
from ledeline.evaluation.alignment import pharaoh
from ledeline.evaluation.alignment_summary import Alignments, align_set, word_tables
from ledeline.evaluation.figures import picture_format, save
from ledeline.evaluation.heatmap import heat_map
from ledeline.evaluation.heatmap_figure import heat_map_figure
from ledeline.evaluation.word_pairs import WordPairs
from ledeline.model.format.folder import ModelBundle


class AlignedSet(NamedTuple):
    """A model's alignment of some pairs."""

    held_out: EvaluationSet
    alignments: Alignments
    words: dict[str, WordPairs]  # by method

    def lines(self, method: str) -> Iterator[str]:
        """The links of each pair in the Pharaoh form."""
        return map(pharaoh, self.alignments.links[method])

    def as_dict(self) -> dict[str, Any]:
        """For JSON: figures, words, and the links where there is one pair."""
        scores = self.alignments.quality
        fields: dict[str, Any] = {
            "pairs": len(self.held_out.ledes),
            "quality": scores and {method: score.as_dict() for method, score in scores.items()},
            "words": {method: table.as_dict() for method, table in self.words.items()},
        }
        if not self.held_out.files:  # one pair, of the command line
            links = self.alignments.links.items()
            fields["links"] = {method: pharaoh(of_pairs[0]) for method, of_pairs in links}
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
        raise ConfigError("--gold has links of many pairs; name these with --input")
    return EvaluationSet("pair", (), [pair[0]], [pair[1]])


def chosen_method(loaded: ModelBundle, wanted: str | None) -> str:
    """The method whose links are written; the first that the model has, where none is wanted."""
    there = methods(loaded.model)
    if wanted is not None and wanted not in there:
        raise ConfigError(
            f"--method {wanted}: this model is {loaded.model.config.name}, without SPM; it has "
            + ", ".join(there)
        )
    return wanted or there[0]


def draw_pair(loaded: ModelBundle, held_out: EvaluationSet, row: int, path: Path) -> None:
    """Draw what attention and SPM saw of a pair, counted from 1."""
    if row > len(held_out.ledes):
        raise ConfigError(f"--row {row}: the last pair is {len(held_out.ledes):,}")
    picture_format(path)  # before the work
    seen = heat_map(loaded, held_out.ledes[row - 1], held_out.headlines[row - 1])
    save(heat_map_figure(seen), path)


def align_pairs(
    loaded: ModelBundle,
    held_out: EvaluationSet,
    num_word_pairs: int,
    seed: int,
    progress: Progress = no_progress,
) -> AlignedSet:
    """Align pairs with a model, and take the table of words from some of them."""
    words = word_tables(loaded, held_out, num_word_pairs, seed, progress)
    return AlignedSet(held_out, align_set(loaded, held_out, progress), words)
