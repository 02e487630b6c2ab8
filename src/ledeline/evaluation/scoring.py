"""ROUGE of many pairs: means with intervals, comparisons of systems, and lines for a file."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ledeline import rouge
from ledeline.core.progress import Progress, no_progress
from ledeline.corpus.columns import read_parallel_columns
from ledeline.evaluation.significance import (
    SEED,
    Comparison,
    Interval,
    bootstrap_intervals,
    compare,
)
from ledeline.rouge import Rouge

Part: TypeAlias = Literal["precision", "recall", "f1"]

PARTS: Final[tuple[Part, ...]] = ("precision", "recall", "f1")
# Measures by their names in files, with the fields of `Rouge`; ROUGE-W only where it was scored.
_FIELDS: Final = {"rouge1": "rouge1", "rouge2": "rouge2", "rougeL": "rouge_l", "rougeW": "rouge_w"}


def measures(scores: Sequence[Rouge]) -> dict[str, str]:
    """The measures that these scores have, with the fields of `Rouge`."""
    return {name: field for name, field in _FIELDS.items() if getattr(scores[0], field)}


def means(scores: Sequence[Rouge]) -> dict[str, dict[str, float]]:
    """By measure, the mean precision, recall and F1."""
    mean = rouge.mean(scores)
    return {name: asdict(getattr(mean, field)) for name, field in measures(scores).items()}


def mean_intervals(scores: Sequence[Rouge], seed: int = SEED) -> dict[str, dict[Part, Interval]]:
    """By measure, the 95 % intervals of the mean precision, recall and F1."""
    table = np.hstack([score_matrix(scores, part) for part in PARTS])
    found = iter(bootstrap_intervals(table, seed=seed))
    by_part = {part: dict(zip(measures(scores), found, strict=False)) for part in PARTS}
    return {name: {part: by_part[part][name] for part in PARTS} for name in measures(scores)}


def comparisons(
    scores: Sequence[Rouge], others: Sequence[Rouge], part: Part, seed: int = SEED
) -> dict[str, Comparison]:
    """By measure, how the mean of the others differs, compared pair by pair."""
    found = compare(score_matrix(scores, part), score_matrix(others, part), seed=seed)
    return dict(zip(measures(scores), found, strict=True))


def score_matrix(scores: Sequence[Rouge], part: Part) -> npt.NDArray[np.float64]:
    """A part of the score of each pair, (pairs, measures)."""
    columns = [
        [getattr(getattr(one, field), part) for one in scores]
        for field in measures(scores).values()
    ]
    return np.array(columns, np.float64).T


def per_pair_lines(scores: Sequence[Rouge]) -> Iterator[str]:
    """The F1 of each pair as lines of TSV under a header, without line ends."""
    there = measures(scores)
    yield "\t".join(there)
    for one in scores:
        yield "\t".join(f"{getattr(one, field).f1:.5f}" for field in there.values())


def as_dict(
    scores: Sequence[Rouge], intervals: dict[str, dict[Part, Interval]], signature: str
) -> dict[str, Any]:
    """What `ledeline score --json` prints."""
    return {
        "pairs": len(scores),
        **means(scores),
        "intervals": {
            name: {part: interval._asdict() for part, interval in parts.items()}
            for name, parts in intervals.items()
        },
        "signature": signature,
    }


# --- files ----------------------------------------------------------------------------------------


class ScoredFile(NamedTuple):
    """The scores of a file of headlines."""

    scores: list[Rouge]  # of each pair
    summary: dict[str, Any]  # what `ledeline score --json` prints


def score_files(
    outputs: str,
    references: Sequence[str],
    settings: rouge.Settings,
    *,
    compare: str | None = None,
    seed: int = SEED,
    progress: Progress = no_progress,
) -> ScoredFile:
    """Score the headlines of a file; `compare` names the file of another system.

    Two systems are compared by F1, or by recall where texts are cut to a number of bytes.
    """
    names = [outputs, *references, *([] if compare is None else [compare])]
    texts, *others = read_parallel_columns([(name, "headline") for name in names])
    wanted = list(zip(*others[: len(references)], strict=True))
    scores = rouge.score_all(texts, wanted, settings, progress)
    signature = rouge.signature(settings, len(references))
    summary = as_dict(scores, mean_intervals(scores, seed), signature)
    if compare is not None:
        part: Part = "f1" if settings.limit_bytes is None else "recall"
        theirs = rouge.score_all(others[-1], wanted, settings, progress)
        differences = comparisons(scores, theirs, part, seed)
        summary["compare"] = {"with": compare, "by": part} | {
            name: {"mean": mean[part], **differences[name]._asdict()}
            for name, mean in means(theirs).items()
        }
    return ScoredFile(scores, summary)
