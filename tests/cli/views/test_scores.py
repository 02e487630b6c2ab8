"""Tables of figures, as a terminal shows them."""

from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from ledeline.cli.views.scores import evaluation_table, score_table

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


def test_an_evaluation() -> None:
    score = {"precision": 0.1, "recall": 0.2, "f1": 0.3, "low": 0.25, "high": 0.35}
    one: dict[str, Any] = dict.fromkeys(MEASURES, score)
    one |= {"signature": "s", "odd": {"repeating": 7, "lacking": 8, "irrelevant": 9}}
    sets = {"news": one | {"pairs": 3}, "tiny": one | {"pairs": 1}}
    summary = {"system": "x", "search": {"beam": 2}, "precision": "int8", "sets": sets}
    shown = rows(evaluation_table(summary), 80)
    assert ["news", "30.00", "30.00", "30.00", "7", "8", "9"] in shown
    assert ["3", "pairs", *["25.0–35.0"] * 3] in shown
    assert ["1", "pair", *["25.0–35.0"] * 3] in shown
