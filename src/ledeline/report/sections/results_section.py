"""ROUGE of all systems on all test sets, in the layout of the paper's table, and significance."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from ledeline.evaluation.significance import NUM_SAMPLES, NUM_SHUFFLES, Comparison
from ledeline.evaluation.summary import MEASURES
from ledeline.report.numbers import percent, plural, signed
from ledeline.report.published import CITATION, EARLIER_ROWS, OWN_ROWS, SETS, Row, published_set
from ledeline.report.study import ReportedSystem, Study

_MISSING: Final = "–"
_LEVELS: Final = (("**", 0.01), ("*", 0.05))


@dataclass(frozen=True)
class SetHead:
    """The head of a test set: three columns."""

    name: str
    size: str


@dataclass(frozen=True)
class ScoreCell:
    """A score with its interval."""

    f1: str
    is_best: bool
    mark: str  # of significance; may be empty
    low: str
    high: str


@dataclass(frozen=True)
class SystemRow:
    """The scores of a system."""

    label: str
    is_baseline: bool
    sets: tuple[tuple[ScoreCell, ...], ...]  # nothing for a set that the system lacks


@dataclass(frozen=True)
class PublishedFigures:
    """What was published of a system on one set."""

    figures: tuple[str, ...]
    is_known: bool


@dataclass(frozen=True)
class PublishedRow:
    """What was published of a system."""

    label: str
    source: str | None
    sets: tuple[PublishedFigures, ...]


@dataclass(frozen=True)
class PublishedGroup:
    """Rows that were published together."""

    title: str
    rows: tuple[PublishedRow, ...]


@dataclass(frozen=True)
class ScoreTable:
    """Systems down, test sets across."""

    caption: str
    label: str
    heads: tuple[SetHead, ...]
    systems: tuple[SystemRow, ...]
    published: tuple[PublishedGroup, ...]


@dataclass(frozen=True)
class DifferenceCell:
    """The difference of a system from the baseline in one measure."""

    difference: str
    low: str
    high: str
    bootstrap_p: str
    randomisation_p: str
    mark: str


@dataclass(frozen=True)
class DifferenceRow:
    """The differences of a system, one for each measure."""

    label: str
    cells: tuple[DifferenceCell, ...]


@dataclass(frozen=True)
class DifferenceGroup:
    """The differences on one test set."""

    test_set: str
    rows: tuple[DifferenceRow, ...]


@dataclass(frozen=True)
class Differences:
    """All differences from the baseline."""

    heading: str
    caption: str
    groups: tuple[DifferenceGroup, ...]
    note: str


@dataclass(frozen=True)
class ResultsSection:
    """The table of results, that of differences, and what the paper printed."""

    anchor: ClassVar[str] = "results"
    title: ClassVar[str] = "Results"
    template: ClassVar[str] = "results.html.j2"

    measures: tuple[str, ...]
    results: ScoreTable
    note: str  # may be empty
    differences: Differences | None
    published: ScoreTable | None  # None where the table of results has it
    published_note: str


def results_section(study: Study) -> ResultsSection:
    """Make the section."""
    is_published_apart = not _known_sets(study)
    return ResultsSection(
        measures=tuple(MEASURES.values()),
        results=_results_table(study),
        note=" ".join(_notes(study)),
        differences=_differences(study) if study.comparisons else None,
        published=_published_table() if is_published_apart else None,
        published_note=_PUBLISHED_CAVEAT,
    )


def _known_sets(study: Study) -> dict[str, str]:
    """Evaluated test set -> the published one that it is, by its name."""
    known = {
        name: published_set(name, study.evaluated(name)[0][1].summary.num_pairs)
        for name in study.test_sets
    }
    return {name: found for name, found in known.items() if found is not None}


# --- the table of results -------------------------------------------------------------------------


def _results_table(study: Study) -> ScoreTable:
    known = _known_sets(study)
    columns = [known.get(name) for name in study.test_sets]
    return ScoreTable(
        caption="ROUGE F1 × 100, and below it the 95 % interval",
        label="Results",
        heads=tuple(SetHead(name, _sizes(study, name)) for name in study.test_sets),
        systems=tuple(_system_row(study, system) for system in study.systems),
        published=tuple(_published_groups(columns)),
    )


def _sizes(study: Study, test_set: str) -> str:
    """How many pairs a test set has; systems may differ."""
    numbers = dict.fromkeys(one.summary.num_pairs for _, one in study.evaluated(test_set))
    return " or ".join(plural(number, "pair") for number in numbers)


def _system_row(study: Study, system: ReportedSystem) -> SystemRow:
    return SystemRow(
        system.label,
        is_baseline=system is study.baseline and len(study.systems) > 1,
        sets=tuple(tuple(_score_cells(study, system, name)) for name in study.test_sets),
    )


def _score_cells(study: Study, system: ReportedSystem, test_set: str) -> Iterator[ScoreCell]:
    evaluated = system.evaluated_set(test_set)
    if evaluated is None:
        return
    compared = study.comparisons.get((system.label, test_set))
    for number, measure in enumerate(MEASURES):
        score = evaluated.summary.scores[measure]
        yield ScoreCell(
            f1=percent(score.f1),
            is_best=percent(score.f1) == _best(study, test_set, measure),
            mark=_mark(compared[number]) if compared else "",
            low=percent(score.low),
            high=percent(score.high),
        )


def _best(study: Study, test_set: str, measure: str) -> str | None:
    """The highest score as printed, if there are several to choose from."""
    others = study.otherwise_scored(test_set)
    comparable = [one for system, one in study.comparable(test_set) if system not in others]
    scores = [one.summary.scores[measure].f1 for one in comparable]
    return percent(max(scores)) if len(scores) > 1 else None


def _mark(comparison: Comparison) -> str:
    marks = (mark for mark, level in _LEVELS if comparison.randomisation_p < level)
    return next(marks, "")


def _notes(study: Study) -> Iterator[str]:
    if len(study.systems) > 1:
        yield "Bold: the highest of the systems measured here."
    if study.comparisons:
        yield (
            f"* p < 0.05, ** p < 0.01: differs from {study.baseline.label} by approximate "
            "randomisation, two-sided."
        )
    yield from _caveats(study)
    if _known_sets(study):
        yield _PUBLISHED_CAVEAT


def _caveats(study: Study) -> Iterator[str]:
    """Which systems cannot be compared on which test sets."""
    for name in study.test_sets:
        reasons = {
            "the references differ": study.incomparable(name),
            "scores were made in another way (see the signatures)": study.otherwise_scored(name),
        }
        for reason, others in reasons.items():
            if others:
                labels = ", ".join(system.label for system in others)
                verb = "is" if len(others) == 1 else "are"
                first = study.first(name).label
                yield f"On {name}, {labels} {verb} not comparable with {first}: {reason}."


# --- differences ----------------------------------------------------------------------------------


def _differences(study: Study) -> Differences:
    groups = (DifferenceGroup(name, _difference_rows(study, name)) for name in study.test_sets)
    return Differences(
        heading=f"Differences from {study.baseline.label}",
        caption="Difference of F1 × 100, and below it the 95 % interval; p by bootstrap and by "
        "randomisation",
        groups=tuple(group for group in groups if group.rows),
        note=f"Paired by headline: {NUM_SAMPLES:,} bootstrap samples and {NUM_SHUFFLES:,} "
        "shuffles, with a fixed seed. The values of p are not corrected for the number of "
        "comparisons.",
    )


def _difference_rows(study: Study, test_set: str) -> tuple[DifferenceRow, ...]:
    return tuple(
        DifferenceRow(
            system.label, tuple(map(_difference_cell, study.comparisons[system.label, test_set]))
        )
        for system in study.systems
        if (system.label, test_set) in study.comparisons
    )


def _difference_cell(comparison: Comparison) -> DifferenceCell:
    return DifferenceCell(
        signed(comparison.difference),
        signed(comparison.low),
        signed(comparison.high),
        _probability(comparison.bootstrap_p),
        _probability(comparison.randomisation_p),
        _mark(comparison),
    )


def _probability(p: float) -> str:
    return "<\u00a00.001" if p < 0.001 else f"{p:.3f}"


# --- published ------------------------------------------------------------------------------------

_PUBLISHED: Final = (
    ("Published by Kiyono et al.; not measured here", OWN_ROWS),
    ("Published by others, as Kiyono et al. quote them; not measured here", EARLIER_ROWS),
)
_PUBLISHED_CAVEAT: Final = (
    f"Published figures are those of the table of results in {CITATION}. They were measured "
    "on Gigaword with the authors’ preparation of the text, and compare with the figures "
    "measured here only where test set, preparation and ROUGE settings are the same. The "
    "paper adds that its own four systems do not compare directly with the earlier ones."
)


def _published_table() -> ScoreTable:
    """What was published, in a table of its own."""
    return ScoreTable(
        caption="Published ROUGE F1 × 100; none of it was measured here",
        label="Published results",
        heads=tuple(
            SetHead(f"Gigaword, {name}", plural(size, "pair")) for name, size in SETS.items()
        ),
        systems=(),
        published=tuple(_published_groups(list(SETS))),
    )


def _published_groups(columns: Sequence[str | None]) -> Iterator[PublishedGroup]:
    """What was published on the sets of some columns; None for a column of another set."""
    for title, rows in _PUBLISHED:
        found = [row for row in rows if any(name in row.figures for name in columns)]
        if found:
            yield PublishedGroup(title, tuple(_published_row(row, columns) for row in found))


def _published_row(row: Row, columns: Sequence[str | None]) -> PublishedRow:
    return PublishedRow(
        row.system, row.source, tuple(_published_figures(row, name) for name in columns)
    )


def _published_figures(row: Row, name: str | None) -> PublishedFigures:
    figures = None if name is None else row.figures.get(name)
    if figures is not None:
        return PublishedFigures(tuple(f"{figure:.2f}" for figure in figures), is_known=True)
    return PublishedFigures((_MISSING if name else "",) * len(MEASURES), is_known=False)
