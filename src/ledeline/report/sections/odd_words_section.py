"""Odd generation: how many words are repeating, lacking, irrelevant, and in how many headlines."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from markupsafe import Markup

from ledeline.evaluation.audit import binned
from ledeline.evaluation.evaluation_folder import EvaluatedSet
from ledeline.evaluation.odd_words import KINDS
from ledeline.report.bar_chart_svg import Series, bar_chart, swatch
from ledeline.report.numbers import whole
from ledeline.report.study import ReportedSystem, Study

_LAST: Final = 10  # the bin of headlines with so many odd words, or more
BINS: Final = (*map(str, range(1, _LAST)), f"{_LAST}+")
_MEANINGS: Final = {
    "repeating": "Repeating: occurrences of words that a headline has more than once, beyond "
    "those in the gold headline.",
    "lacking": "Lacking: how many words a headline is shorter than the gold headline.",
    "irrelevant": "Irrelevant: content words that neither lede nor gold headline has.",
}


@dataclass(frozen=True)
class OddCell:
    """How many odd words there are, and how many in 1,000 headlines."""

    count: str
    rate: str
    is_least: bool


@dataclass(frozen=True)
class OddRow:
    """The odd words of a system."""

    label: str
    sets: tuple[tuple[OddCell | None, ...], ...]  # by kind; None where unknown


@dataclass(frozen=True)
class Histogram:
    """How many headlines have how many odd words of a kind."""

    caption: str
    chart: Markup


@dataclass(frozen=True)
class LegendEntry:
    """The colour of a system."""

    swatch: Markup
    label: str


@dataclass(frozen=True)
class Histograms:
    """The histograms of a test set."""

    heading: str
    legend: tuple[LegendEntry, ...]  # empty if there is one system
    histograms: tuple[Histogram, ...]


@dataclass(frozen=True)
class OddWordsSection:
    """Sums and rates, then histograms."""

    anchor: ClassVar[str] = "odd"
    title: ClassVar[str] = "Odd generation"
    template: ClassVar[str] = "odd_words.html.j2"

    test_sets: tuple[str, ...]
    kinds: tuple[str, ...]  # those that are known of any system
    rows: tuple[OddRow, ...]
    note: str
    histograms: tuple[Histograms, ...]


def odd_words_section(study: Study) -> OddWordsSection:
    """Make the section."""
    kinds = [kind for kind in KINDS if _is_known(study, kind)]
    notes = [_MEANINGS[kind] for kind in kinds]
    if len(study.systems) > 1:
        notes.append("Fewer is better; the fewest are bold.")
    histograms = (_histograms(study, name) for name in study.test_sets)
    return OddWordsSection(
        test_sets=study.test_sets,
        kinds=tuple(kind.capitalize() for kind in kinds),
        rows=tuple(_row(study, system, kinds) for system in study.systems),
        note=" ".join(notes),
        histograms=tuple(one for one in histograms if one.histograms),
    )


def _is_known(study: Study, kind: str) -> bool:
    evaluated = (one for name in study.test_sets for _, one in study.evaluated(name))
    return any(getattr(one.summary.odd.total, kind) is not None for one in evaluated)


# --- sums -----------------------------------------------------------------------------------------


def _row(study: Study, system: ReportedSystem, kinds: Sequence[str]) -> OddRow:
    return OddRow(
        system.label,
        tuple(
            tuple(_cell(study, name, system.evaluated_set(name), kind) for kind in kinds)
            for name in study.test_sets
        ),
    )


def _cell(study: Study, test_set: str, evaluated: EvaluatedSet | None, kind: str) -> OddCell | None:
    number = None if evaluated is None else getattr(evaluated.summary.odd.total, kind)
    if evaluated is None or number is None:
        return None
    rate = _rate(evaluated, kind)
    is_one_of_several = len(study.evaluated(test_set)) > 1
    return OddCell(
        whole(number),
        f"{rate:,.1f}",
        is_least=is_one_of_several and rate == _least_rate(study, test_set, kind),
    )


def _rate(evaluated: EvaluatedSet, kind: str) -> float:
    """Odd words in 1,000 headlines, as printed."""
    summary = evaluated.summary
    return round(1000 * float(getattr(summary.odd.total, kind)) / summary.num_pairs, 1)


def _least_rate(study: Study, test_set: str, kind: str) -> float | None:
    """The lowest rate of those that can be compared; None where it is unknown for all of them."""
    evaluated = [one for _, one in study.comparable(test_set)]
    known = [
        _rate(one, kind) for one in evaluated if getattr(one.summary.odd.total, kind) is not None
    ]
    return min(known, default=None)


# --- histograms -----------------------------------------------------------------------------------


def _histograms(study: Study, test_set: str) -> Histograms:
    evaluated = study.evaluated(test_set)
    found = (_histogram(evaluated, kind, test_set) for kind in KINDS)
    legend = (LegendEntry(swatch(system.place), system.label) for system, _ in evaluated)
    of_set = f", {test_set}" if len(study.test_sets) > 1 else ""
    return Histograms(
        heading=f"How many headlines are odd{of_set}",
        legend=tuple(legend) if len(evaluated) > 1 else (),
        histograms=tuple(one for one in found if one is not None),
    )


def _histogram(
    evaluated: Sequence[tuple[ReportedSystem, EvaluatedSet]], kind: str, test_set: str
) -> Histogram | None:
    series = []
    for system, one in evaluated:
        counts = one.audit.histogram(kind)
        if counts is not None:
            series.append(Series(system.place, system.label, tuple(binned(counts, _LAST)[1:])))
    if not any(any(one.counts) for one in series):
        return None
    summary = f"{kind.capitalize()} words on {test_set}. " + " ".join(map(_in_words, series))
    return Histogram(
        f"Headlines with {kind} words",
        bar_chart(BINS, series, f"{kind} words in a headline", summary),
    )


def _in_words(series: Series) -> str:
    """The bars in words, for readers who do not see them."""
    bars = (f"{name}: {whole(count)}" for name, count in zip(BINS, series.counts, strict=True))
    return f"{series.label}: {', '.join(bars)}."
