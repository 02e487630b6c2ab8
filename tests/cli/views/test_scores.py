"""Tables of figures, as a terminal shows them."""

from dataclasses import replace
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from ledeline import rouge
from ledeline.cli.views.scores import evaluation_table, score_table
from ledeline.config import SearchConfig
from ledeline.evaluation.audit import AuditSummary
from ledeline.evaluation.check_counts import CheckCounts
from ledeline.evaluation.odd_words import OddWords
from ledeline.evaluation.summary import (
    EvaluationSettings,
    EvaluationSummary,
    MeasureScore,
    Samples,
    SetSummary,
)
from ledeline.inference.checks.check import Check
from ledeline.inference.checks.doubt import Doubt

MEASURES = ("rouge1", "rouge2", "rougeL")


def difference(randomisation_p: float) -> dict[str, float]:
    return {
        "mean": 0.4,
        "difference": 0.1,
        "low": 0.01,
        "high": 0.02,
        "bootstrap_p": 0.04,
        "randomisation_p": randomisation_p,
    }


FOUND: dict[str, Any] = {
    "pairs": 3,
    **{name: {"precision": 0.1, "recall": 0.2, "f1": 0.3} for name in MEASURES},
    "intervals": {
        name: {
            part: {"low": 0.04 + 0.1 * place, "high": 0.05 + 0.1 * place}
            for place, part in enumerate(("precision", "recall", "f1"))
        }
        for name in MEASURES
    },
    "signature": "s",
    "compare": {"with": "o", "by": "f1", "rouge1": difference(0.06), "rouge2": difference(0.03)},
}


def rows(part: object, width: int = 200) -> list[list[str]]:
    console = Console(width=width, force_terminal=True, color_system=None, highlight=False)
    with console.capture() as captured:
        console.print(part)
    return [line.split() for line in captured.get().splitlines()]


def test_figures_stand_in_their_columns() -> None:
    shown = [row for row in rows(score_table("out", FOUND)) if row[:1] == ["ROUGE-1"]]
    assert shown == [
        ["ROUGE-1", "10.00", "4.00–5.00", "20.00", "14.00–15.00", "30.00", "24.00–25.00"],
        ["ROUGE-1", "40.00", "+10.00", "1.00", "to", "2.00", "0.0400", "0.0600"],
    ]


def test_rows_keep_their_names_in_a_narrow_terminal() -> None:
    assert [row[0] for row in rows(score_table("out", FOUND), 40) if row[:1] == ["ROUGE-L"]]


def test_only_what_both_tests_find_is_bold() -> None:
    group = score_table("out", FOUND)
    assert isinstance(group, Group)
    table = group.renderables[1]
    assert isinstance(table, Table)
    cells = [cell for cell in table.columns[2].cells if isinstance(cell, Text)]
    assert [any(span.style == "bold" for span in cell.spans) for cell in cells] == [False, True]


def evaluation() -> EvaluationSummary:
    scores = dict.fromkeys(MEASURES, MeasureScore(0.1, 0.2, 0.3, 0.25, 0.35))
    odd = AuditSummary(3, OddWords(7, 1008, 9), {})
    one = SetSummary((), "", 3, "s", scores, odd, 0, 0, None, "")
    settings = EvaluationSettings(
        system="x",
        models=(),
        weights=(),
        profile="paper",
        compared_in="paper",
        precision="int8",
        device="cpu",
        search=SearchConfig(beam=2),
        replace_unknown=True,
        scoring=rouge.Settings(),
        samples=Samples(0, 0, 1),
    )
    sets = {"news": one, "tiny": replace(one, num_pairs=1)}
    return EvaluationSummary(settings, "", "", None, None, sets)


def test_an_evaluation() -> None:
    shown = rows(evaluation_table(evaluation()), 80)
    assert ["x,", "beam", "2,", "int8"] in shown
    assert ["R-1", "R-2", "R-L", "repeating", "lacking", "irrelevant"] in shown
    assert ["news", "30.00", "30.00", "30.00", "7", "1,008", "9"] in shown
    assert ["3", "pairs", *["25.0–35.0"] * 3] in shown
    assert ["1", "pair", *["25.0–35.0"] * 3] in shown
    assert shown.count(["s"]) == 1
    assert not any("checked" in row for row in shown)


def test_checks_of_an_evaluation() -> None:
    plain = evaluation()
    doubts = (Doubt(0, 1, "a", "name", "x"), Doubt(0, 1, "a", "time", "x"))
    news = CheckCounts.of([Check(0.5, doubts), Check(0.75), Check(0.25)], num_left_out=1200)
    sets = {
        "news": replace(plain.sets["news"], checks=news),
        "tiny": replace(plain.sets["tiny"], checks=CheckCounts.of([])),
    }
    shown = rows(evaluation_table(replace(plain, sets=sets)), 80)
    below = [row for row in shown[shown.index(["checked", "against", "the", "ledes"]) :] if row]
    assert below[3:-1] == [
        ["headlines", "checked", "3", "0"],
        ["left", "out", "1,200", "0"],
        ["mean", "support", "0.50", "–"],
        ["with", "a", "doubt", "33.3%", "0.0%"],
        ["doubts", "in", "1,000", "headlines"],
        ["name", "333.3", "0.0"],
        ["time", "333.3", "0.0"],
    ]
