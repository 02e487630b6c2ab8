"""Odd generation: how many words are repeated, lacking, irrelevant, and in how many headlines."""

from typing import Final

from ledeline.evaluation.audit import KINDS, binned
from ledeline.report.charts import Series, bar_chart, legend
from ledeline.report.evaluations import Outcome
from ledeline.report.markup import Html, element, joined, name_of, note, row, table, whole
from ledeline.report.study import Study, System

TITLE: Final = "Odd generation"
_LAST: Final = 10  # the bin of as many odd words and of more
BINS: Final = (*map(str, range(1, _LAST)), f"{_LAST}+")


def odd_section(study: Study) -> Html:
    """Sums and rates, then histograms."""
    kinds = [kind for kind in KINDS if _is_known(study, kind)]
    parts = [_sums_table(study, kinds), _sums_note(kinds, several=len(study.systems) > 1)]
    several = len(study.test_sets) > 1
    for name in study.test_sets:
        histograms = _histograms(study, name, several=several)
        if histograms:
            parts.append(histograms)
    return joined(parts)


def _is_known(study: Study, kind: str) -> bool:
    outcomes = (outcome for name in study.test_sets for _, outcome in study.evaluated(name))
    return any(getattr(outcome.odd, kind) is not None for outcome in outcomes)


# --- sums -----------------------------------------------------------------------------------------


def _sums_table(study: Study, kinds: list[str]) -> Html:
    groups = [
        element("th", name_of(name), colspan=len(kinds), scope="colgroup")
        for name in study.test_sets
    ]
    columns = [
        element("th", kind.capitalize(), scope="col", class_=None if number else "first")
        for _ in study.test_sets
        for number, kind in enumerate(kinds)
    ]
    head = [row(element("th", "System", rowspan=2, scope="col"), *groups), row(*columns)]
    rows = [_sums_row(study, system, kinds) for system in study.systems]
    caption = "Odd words, and below it how many in 1,000 headlines"
    return table(caption, "Odd words", head, [rows], "results")


def _sums_row(study: Study, system: System, kinds: list[str]) -> Html:
    cells = [
        _sum_cell(study, name, system.outcome(name), kind, "first" if number == 0 else "")
        for name in study.test_sets
        for number, kind in enumerate(kinds)
    ]
    return row(element("th", name_of(system.label), scope="row"), *cells)


def _sum_cell(study: Study, test_set: str, outcome: Outcome | None, kind: str, class_: str) -> Html:
    number = None if outcome is None else getattr(outcome.odd, kind)
    if outcome is None or number is None:
        return element("td", "–", class_=f"none {class_}".strip())
    rate = _rate(outcome, kind)
    shown: Html | str = whole(number)
    if len(study.evaluated(test_set)) > 1 and rate == _least_rate(study, test_set, kind):
        shown = element("b", shown)
    return element("td", shown, element("small", f"{rate:,.1f}"), class_=class_ or None)


def _rate(outcome: Outcome, kind: str) -> float:
    """Odd words in 1,000 headlines, as printed."""
    return round(1000 * float(getattr(outcome.odd, kind)) / outcome.num_pairs, 1)


def _least_rate(study: Study, test_set: str, kind: str) -> float | None:
    """The lowest rate of those that can be compared; None where none of these knows it."""
    outcomes = [outcome for _, outcome in study.comparable(test_set)]
    known = [_rate(one, kind) for one in outcomes if getattr(one.odd, kind) is not None]
    return min(known, default=None)


def _sums_note(kinds: list[str], *, several: bool) -> Html:
    meaning = {
        "repeating": "Repeating: occurrences of words that a headline has more than once, beyond "
        "those in the gold headline.",
        "lacking": "Lacking: how many words a headline is shorter than the gold headline.",
        "irrelevant": "Irrelevant: content words that neither lede nor gold headline has.",
    }
    best = ["Fewer is better; the fewest are bold."] if several else []
    return note(*(meaning[kind] for kind in kinds), *best)


# --- histograms -----------------------------------------------------------------------------------


def _histograms(study: Study, test_set: str, *, several: bool) -> Html | None:
    evaluated = study.evaluated(test_set)
    figures = [figure for kind in KINDS if (figure := _histogram(evaluated, kind, test_set))]
    if not figures:
        return None
    heading = f"How many headlines are odd{f', {test_set}' if several else ''}"
    shown = [(system.place, system.label) for system, _ in evaluated]
    parts: list[Html] = [element("h3", heading)]
    if len(shown) > 1:
        parts.append(legend(shown))
    parts.append(element("div", *figures, class_="charts"))
    parts.append(note("Headlines without an odd word are left out."))
    return element("div", *parts, class_="keep")


def _histogram(evaluated: list[tuple[System, Outcome]], kind: str, test_set: str) -> Html | None:
    series = []
    for system, outcome in evaluated:
        counts = outcome.audit.histogram(kind)
        if counts is not None:
            series.append(Series(system.place, system.label, tuple(binned(counts, _LAST)[1:])))
    if not any(any(one.counts) for one in series):
        return None
    summary = f"{kind.capitalize()} words on {test_set}. " + " ".join(map(_spoken, series))
    chart = bar_chart(BINS, series, f"{kind} words in a headline", summary)
    caption = element("figcaption", f"Headlines with {kind} words")
    return element("figure", caption, chart)


def _spoken(series: Series) -> str:
    """The bars in words, for those who do not see them."""
    bars = (f"{name}: {whole(count)}" for name, count in zip(BINS, series.counts, strict=True))
    return f"{series.label}: {', '.join(bars)}."
