"""ROUGE of all systems on all test sets, in the layout of the paper's table, and significance."""

from collections.abc import Iterator, Sequence
from typing import Final

from ledeline.evaluation.significance import NUM_SAMPLES, NUM_SHUFFLES, Comparison
from ledeline.report.evaluations import MEASURES
from ledeline.report.markup import (
    Html,
    element,
    interval,
    joined,
    name_of,
    note,
    percent,
    plural,
    row,
    row_group,
    signed,
    table,
)
from ledeline.report.published import CITATION, EARLIER_ROWS, OWN_ROWS, SETS, Row, published_set
from ledeline.report.study import Study, System

TITLE: Final = "Results"
_MISSING: Final = "–"
_LEVELS: Final = (("**", 0.01), ("*", 0.05))


def results_section(study: Study) -> Html:
    """The table of results, that of differences, and what the paper printed."""
    parts = [_results_table(study), _results_note(study)]
    if study.comparisons:
        parts += [element("h3", f"Differences from {study.baseline.label}"), *_differences(study)]
    if not _known_sets(study):
        parts += [element("h3", "Published results"), *_published_alone()]
    return joined(parts)


def _known_sets(study: Study) -> dict[str, str]:
    """Evaluated test set -> the published one that its name speaks of."""
    known = {
        name: published_set(name, study.evaluated(name)[0][1].num_pairs) for name in study.test_sets
    }
    return {name: found for name, found in known.items() if found is not None}


# --- the table of results -------------------------------------------------------------------------


def _results_table(study: Study) -> Html:
    bodies: list[list[Html]] = [[_system_row(study, system) for system in study.systems]]
    known = _known_sets(study)
    columns = [known.get(name) for name in study.test_sets]
    for title, rows in _PUBLISHED:
        found = [one for one in rows if any(name in one.figures for name in columns)]
        if found:
            bodies.append(
                [_group(title, columns), *(_published_row(one, columns) for one in found)]
            )
    caption = "ROUGE F1 × 100, and below it the 95 % interval"
    sizes = [(name, _sizes(study, name)) for name in study.test_sets]
    return table(caption, "Results", _head("System", sizes), bodies, "results")


def _sizes(study: Study, test_set: str) -> str:
    """How many pairs a test set has; systems may differ."""
    numbers = dict.fromkeys(outcome.num_pairs for _, outcome in study.evaluated(test_set))
    return " or ".join(plural(number, "pair") for number in numbers)


def _head(first: str, sets: Sequence[tuple[str, str]]) -> list[Html]:
    """Two rows: test sets with their sizes, then the measures of each."""
    groups = [
        element("th", name_of(name), " ", element("small", size), colspan=3, scope="colgroup")
        for name, size in sets
    ]
    measures = [
        element("th", short, scope="col", class_="first" if short == "R-1" else None)
        for _ in sets
        for short in MEASURES.values()
    ]
    return [row(element("th", first, rowspan=2, scope="col"), *groups), row(*measures)]


def _system_row(study: Study, system: System) -> Html:
    label: list[str] = [name_of(system.label)]
    if system is study.baseline and len(study.systems) > 1:
        label += [" ", element("small", "baseline")]
    cells = (cell for name in study.test_sets for cell in _score_cells(study, system, name))
    return row(element("th", *label, scope="row"), *cells)


def _score_cells(study: Study, system: System, test_set: str) -> Iterator[Html]:
    outcome = system.outcome(test_set)
    compared = study.comparisons.get((system.label, test_set))
    for number, measure in enumerate(MEASURES):
        if outcome is None:
            yield element("td", _MISSING, class_="none")
            continue
        score = outcome.scores[measure]
        shown: Html | str = percent(score.f1)
        if shown in _best(study, test_set, measure):
            shown = element("b", shown)
        mark = _mark(compared[number]) if compared else Html("")
        bounds = interval(percent(score.low), percent(score.high))
        yield element("td", shown, mark, bounds, class_="first" if number == 0 else None)


def _best(study: Study, test_set: str, measure: str) -> list[str]:
    """The highest score as printed, if there are several to choose from."""
    others = study.otherwise_scored(test_set)
    comparable = [one for system, one in study.comparable(test_set) if system not in others]
    scores = [outcome.scores[measure].f1 for outcome in comparable]
    return [percent(max(scores))] if len(scores) > 1 else []


def _mark(comparison: Comparison) -> Html:
    marks = [mark for mark, level in _LEVELS if comparison.randomisation_p < level]
    return element("sup", marks[0]) if marks else Html("")


def _results_note(study: Study) -> Html:
    sentences = []
    if len(study.systems) > 1:
        sentences.append("Bold: the highest of the systems measured here.")
    if study.comparisons:
        sentences.append(
            f"* p < 0.05, ** p < 0.01: differs from {study.baseline.label} by approximate "
            "randomisation, two-sided."
        )
    sentences += _caveats(study)
    if _known_sets(study):
        sentences.append(_published_caveat())
    return note(*sentences) if sentences else Html("")


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


def _differences(study: Study) -> list[Html]:
    bodies = []
    for name in study.test_sets:
        rows = [
            _difference_row(system, study.comparisons[system.label, name])
            for system in study.systems
            if (system.label, name) in study.comparisons
        ]
        if rows:
            bodies.append([row_group(name_of(name), 10), *rows])
    caption = "Difference of F1 × 100, and below it the 95 % interval; p by bootstrap and by "
    caption += "randomisation"
    explained = note(
        f"Paired by headline: {NUM_SAMPLES:,} bootstrap samples and {NUM_SHUFFLES:,} shuffles, "
        "with a fixed seed. The values of p are not corrected for the number of comparisons."
    )
    return [table(caption, "Differences", _difference_head(), bodies, "differences"), explained]


def _difference_head() -> list[Html]:
    groups = [element("th", short, colspan=3, scope="colgroup") for short in MEASURES.values()]
    columns = [
        element("th", name, scope="col", class_="first" if name == "Δ" else None)
        for _ in MEASURES
        for name in ("Δ", "p\u00a0boot.", "p\u00a0rand.")
    ]
    return [row(element("th", "System", rowspan=2, scope="col"), *groups), row(*columns)]


def _difference_row(system: System, comparisons: Sequence[Comparison]) -> Html:
    cells: list[Html] = []
    for one in comparisons:
        bounds = interval(signed(one.low), signed(one.high), "\u00a0to ")
        cells += [
            element("td", signed(one.difference), bounds, class_="first"),
            element("td", _probability(one.bootstrap_p)),
            element("td", _probability(one.randomisation_p), _mark(one)),
        ]
    return row(element("th", name_of(system.label), scope="row"), *cells)


def _probability(p: float) -> str:
    return "<\u00a00.001" if p < 0.001 else f"{p:.3f}"


# --- published ------------------------------------------------------------------------------------

_PUBLISHED: Final = (
    ("Published by Kiyono et al.; not measured here", OWN_ROWS),
    ("Published by others, as Kiyono et al. quote them; not measured here", EARLIER_ROWS),
)


def _published_row(published: Row, columns: Sequence[str | None]) -> Html:
    cells = []
    for name in columns:
        figures = published.figures.get(name) if name is not None else None
        if figures is None:
            cells += [element("td", _MISSING if name else "")] * len(MEASURES)
        else:
            cells += [
                element("td", f"{figure:.2f}", class_=None if number else "first")
                for number, figure in enumerate(figures)
            ]
    source = joined([" ", element("small", published.source)]) if published.source else ""
    return row(
        element("th", name_of(published.system), source, scope="row"), *cells, class_="published"
    )


def _group(title: str, columns: Sequence[str | None]) -> Html:
    return row_group(title, 1 + len(MEASURES) * len(columns))


def _published_alone() -> list[Html]:
    names = list(SETS)
    bodies = [
        [_group(title, names), *(_published_row(one, names) for one in rows)]
        for title, rows in _PUBLISHED
    ]
    sizes = [(f"Gigaword, {name}", plural(SETS[name], "pair")) for name in names]
    caption = "Published ROUGE F1 × 100; none of it was measured here"
    head = _head("System", sizes)
    return [table(caption, "Published results", head, bodies, "results"), note(_published_caveat())]


def _published_caveat() -> str:
    return (
        f"Published figures are those of the table of results in {CITATION}. They were measured "
        "on Gigaword with the authors’ preparation of the text, and compare with the figures "
        "measured here only where test set, preparation and ROUGE settings are the same. The "
        "paper adds that its own four systems do not compare directly with the earlier ones."
    )
