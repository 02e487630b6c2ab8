"""What `ledeline heads` shows: the attentions of a system, by the error of their alignments."""

from itertools import product
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ledeline.cli.views.scores import table_of_figures
from ledeline.evaluation.attention_heads import AttentionReading, HalfScores, MeasuredHeads

_MOST: Final = 20  # attentions that are shown
_FIGURES: Final = ("error", "precision", "recall")
_HALVES: Final = ("1st", "2nd")
_STEPS: Final = {"attention": "same", "attention-shifted": "next"}
_OTHERS: Final = {"attention": "the model as it is"}  # by method; others have their own name


def heads_view(measured: MeasuredHeads) -> RenderableType:
    """The best attentions first, the SPM and the model as it is below, and the choice."""
    best, number = measured.best, len(measured.scores)
    shown = [one for place, one in enumerate(measured.scores) if place < _MOST or one == best]
    both = measured.scores[best]
    sentences = [
        f"{len(shown)} of {number} are shown, the best on the first half first"
        + ("." if len(shown) == number else "; --json prints all."),
        "They are read at the step that writes the word (same), or one step later (next).",
        f"Best at the step that writes the word: {best.name}, with an error rate of "
        f"{both.first.error_rate:.3f} on the first half and {both.second.error_rate:.3f} on the "
        "second.",
    ]
    if any(method.startswith("spm") for method in measured.others):
        sentences.append(
            "This model explains headlines by its SPM; attention decides only between places of "
            "the same sub-word."
        )
    return Group(_table(measured, shown), *map(Text, sentences))


def _table(measured: MeasuredHeads, shown: list[AttentionReading]) -> Table:
    """A row for each attention that is shown, and for each other method."""
    table = table_of_figures(
        f"alignment error rate: {measured.num_first:,} pairs choose (1st half), "
        f"{measured.num_second:,} check (2nd)",
        ["step", *(f"{half}\n{name}" for name, half in product(_FIGURES, _HALVES))],
    )
    for one in shown:
        cells = [_STEPS[one.method], *_cells(measured.scores[one])]
        table.add_row(one.name, *cells, style="bold" if one == measured.best else "")
    table.add_section()
    for method, scores in measured.others.items():
        table.add_row(_OTHERS.get(method, method), "", *_cells(scores), style="dim")
    return table


def _cells(scores: HalfScores) -> list[str]:
    """The figures of a row."""
    names = ("error_rate", "precision", "recall")
    return [f"{getattr(half, name):.3f}" for name, half in product(names, scores)]
