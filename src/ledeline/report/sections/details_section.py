"""How each number came about: commands, versions, models, settings, files, times."""

from typing import Final

from ledeline.report.evaluations import Evaluation, Outcome
from ledeline.report.markup import (
    Html,
    column_heads,
    element,
    joined,
    name_of,
    row,
    scrolling,
    table,
    terms,
    whole,
)
from ledeline.report.study import Study, System

TITLE: Final = "How it was made"
_NAMES: Final = {
    "version": "ledeline",
    "commit": "Commit",
    "date": "Ended",
    "models": "Models",
    "weights": "Weights",
    "profile": "Text profile",
    "compared_in": "Compared in",
    "precision": "Precision",
    "device": "Device",
    "search": "Search",
    "replace_unknown": "<unk> replaced",
    "scoring": "ROUGE",
    "samples": "Alignment",
}


def details_section(study: Study) -> Html:
    """A part for each system."""
    return joined(map(_system, study.systems))


def _system(system: System) -> Html:
    evaluation = system.evaluation
    command = element("pre", element("code", evaluation.command))
    parts = [
        element("h3", name_of(system.label)),
        scrolling(command, f"Command of {system.label}"),
        terms(_facts(evaluation)),
        _sets_table(system),
    ]
    return element("div", *parts, class_="made")


def _facts(evaluation: Evaluation) -> list[tuple[str, str]]:
    facts = [
        (name, joined(map(name_of, evaluation.facts[key]), ", "))
        for key, name in _NAMES.items()
        if evaluation.facts[key]
    ]
    return [("Folder", name_of(str(evaluation.folder))), *facts]


def _sets_table(system: System) -> Html:
    names = (
        "Test set",
        "Pairs",
        "Seconds",
        "Headlines/s",
        "Truncated",
        "Empty",
        "Signature",
        "Files",
    )
    head = [column_heads(names)]
    rows = [_set_row(outcome) for outcome in system.evaluation.outcomes.values()]
    return table("Test sets", f"Test sets of {system.label}", head, [rows], "sets")


def _set_row(outcome: Outcome) -> Html:
    seconds = outcome.seconds
    numbers = (
        whole(outcome.num_pairs),
        f"{seconds:,.1f}" if seconds is not None else "–",
        f"{outcome.num_pairs / seconds:,.1f}" if seconds else "–",
        whole(outcome.num_truncated),
        whole(outcome.num_empty),
    )
    texts = (element("code", outcome.signature), joined(map(name_of, outcome.files), ", "))
    return row(
        element("th", name_of(outcome.name), scope="row"),
        *(element("td", number) for number in numbers),
        *(element("td", one, class_="prose") for one in texts),
    )
