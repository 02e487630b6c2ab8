"""How each number came about: commands, versions, models, settings, files, times."""

from dataclasses import dataclass
from typing import ClassVar, Final

from ledeline.evaluation.evaluation_folder import EvaluatedSet, Evaluation
from ledeline.report.numbers import whole
from ledeline.report.study import ReportedSystem, Study

_UNKNOWN: Final = "–"
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
    "checking": "Checks",
    "scoring": "ROUGE",
    "samples": "Alignment",
}


@dataclass(frozen=True)
class Fact:
    """A setting, a version or a file."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class SetDetails:
    """A row of the table of test sets."""

    name: str
    numbers: tuple[str, ...]
    signature: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class SystemDetails:
    """One system."""

    label: str
    command: str
    facts: tuple[Fact, ...]
    sets: tuple[SetDetails, ...]


@dataclass(frozen=True)
class DetailsSection:
    """A part for each system."""

    anchor: ClassVar[str] = "made"
    title: ClassVar[str] = "How it was made"
    template: ClassVar[str] = "details.html.j2"
    columns: ClassVar[tuple[str, ...]] = (
        "Test set",
        "Pairs",
        "Seconds",
        "Headlines/s",
        "Truncated",
        "Empty",
        "Signature",
        "Files",
    )

    systems: tuple[SystemDetails, ...]


def details_section(study: Study) -> DetailsSection:
    """Make the section."""
    return DetailsSection(tuple(map(_system, study.systems)))


def _system(system: ReportedSystem) -> SystemDetails:
    evaluation = system.evaluation
    return SystemDetails(
        system.label,
        evaluation.command,
        _facts(evaluation),
        tuple(map(_set_details, evaluation.sets.values())),
    )


def _facts(evaluation: Evaluation) -> tuple[Fact, ...]:
    settings = (Fact(name, evaluation.settings[key]) for key, name in _NAMES.items())
    folder = Fact("Folder", (str(evaluation.folder),))
    return (folder, *(fact for fact in settings if fact.values))


def _set_details(evaluated: EvaluatedSet) -> SetDetails:
    summary, seconds = evaluated.summary, evaluated.summary.seconds
    numbers = (
        whole(summary.num_pairs),
        _UNKNOWN if seconds is None else f"{seconds:,.1f}",
        f"{summary.num_pairs / seconds:,.1f}" if seconds else _UNKNOWN,
        whole(summary.num_truncated),
        whole(summary.num_empty),
    )
    return SetDetails(evaluated.name, numbers, summary.signature, summary.files)
