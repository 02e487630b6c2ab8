"""What `ledeline score` and `ledeline evaluate` show: tables of figures."""

from collections.abc import Mapping
from typing import Any, Final

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ledeline.cli.views.check_counts import check_table
from ledeline.evaluation.odd_words import KINDS
from ledeline.evaluation.summary import MEASURES, EvaluationSummary, MeasureScore

_TITLES: Final = {
    "rouge1": "ROUGE-1",
    "rouge2": "ROUGE-2",
    "rougeL": "ROUGE-L",
    "rougeW": "ROUGE-W",
}
_PARTS: Final = {"precision": "precision", "recall": "recall", "f1": "F1"}
_SIGNIFICANT: Final = 0.05  # a difference with a smaller p is bold


def score_table(outputs: str, summary: Mapping[str, Any]) -> RenderableType:
    """The scores of a system, from 0 to 100, with 95 % intervals; what `--json` prints."""
    table = table_of_figures(f"{outputs}: {_pairs(summary['pairs'])}", list(_PARTS.values()))
    for name, title in _TITLES.items():
        if name in summary:
            cells = [
                _with_interval(summary[name][part], summary["intervals"][name][part])
                for part in _PARTS
            ]
            table.add_row(title, *cells)
    parts: list[RenderableType] = [table]
    if "compare" in summary:
        parts.append(_comparison_table(summary["compare"]))
    return Group(*parts, Text(summary["signature"], style="dim"))


def _comparison_table(compared: Mapping[str, Any]) -> Table:
    table = table_of_figures(
        f"{compared['with']}, by {_PARTS[compared['by']]}",
        ["mean", "difference", "p, bootstrap", "p, randomisation"],
    )
    for name, title in _TITLES.items():
        if name in compared:
            one = compared[name]
            difference = _with_interval(one["difference"], one, signed=True)
            if max(one["bootstrap_p"], one["randomisation_p"]) < _SIGNIFICANT:
                difference.stylize("bold")
            table.add_row(
                title,
                f"{100 * one['mean']:.2f}",
                difference,
                f"{one['bootstrap_p']:.4f}",
                f"{one['randomisation_p']:.4f}",
            )
    return table


def evaluation_table(summary: EvaluationSummary) -> RenderableType:
    """The figures of a system on each test set; F1 with its 95 % interval below."""
    settings = summary.settings
    title = f"{settings.system}, beam {settings.search.beam_size}, {settings.precision}"
    table = table_of_figures(title, [*MEASURES.values(), *KINDS])
    for name, one in summary.sets.items():
        scores = [_above_interval(one.scores[key]) for key in MEASURES]
        odd = [f"{getattr(one.odd.total, kind):,}" for kind in KINDS]
        row_name = Text(name).append(f"\n{_pairs(one.num_pairs)}", style="dim")
        table.add_row(row_name, *scores, *odd)
    signatures = dict.fromkeys(one.signature for one in summary.sets.values())
    checks = {name: one.checks for name, one in summary.sets.items() if one.checks is not None}
    below: list[RenderableType] = [check_table(checks), ""] if checks else []
    return Group(table, *below, *(Text(signature, style="dim") for signature in signatures))


def _pairs(number: int) -> str:
    return f"{number:,} pair{'s' * (number != 1)}"


def _above_interval(score: MeasureScore) -> Text:
    ends = f"\n{100 * score.low:.1f}–{100 * score.high:.1f}"
    return Text(f"{100 * score.f1:.2f}").append(ends, style="dim")


def table_of_figures(title: str, columns: list[str]) -> Table:
    """An empty table of figures, with a first column for the names of rows."""
    table = Table(
        title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, padding=0, pad_edge=False
    )
    table.add_column("", no_wrap=True, min_width=8)
    for column in columns:
        table.add_column(f" {column}", justify="right", no_wrap=True)
    return table


def _with_interval(value: float, interval: Mapping[str, float], *, signed: bool = False) -> Text:
    number = f"{100 * value:+.2f}" if signed else f"{100 * value:.2f}"
    between = " to " if signed else "–"  # a dash would look like a minus
    ends = between.join(f"{100 * interval[end]:.2f}" for end in ("low", "high"))
    return Text(number).append(f" {ends}", style="dim")
