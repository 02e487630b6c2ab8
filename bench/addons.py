"""When do the add-ons help? Many evaluations, as the tables of docs/results.md and one figure.

EVALS holds folders of `ledeline evaluate`: EVALS/DATA/SYSTEM-sSEED, or with another C of the SPM
EVALS/DATA/SYSTEM-sSEED-cC. DATA is what it was trained on: n20k, n100k (so many pairs of the news),
all, wire (wire agencies only), tuned (all, then fine-tuned to Gigaword); SYSTEM is encdec, sgate,
spm or both; the test sets are called news and rush. RUNS holds run folders by the same names. What
is not there is left out, or an empty cell.
"""

import argparse
import shlex
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import quick
import tiny
from addons_figure import (
    PAPER_C,
    SYSTEMS,
    WITH_SPM,
    Effect,
    Group,
    Key,
    Part,
    by_size,
    drawn,
    every_pair,
    grouped,
    parsed,
)
from addons_runs import read_runs, run_tables, table, tiny_study
from ledeline.core.atomic import atomic_write
from ledeline.core.errors import LedelineError, ScoreError
from ledeline.evaluation.evaluation_folder import EvaluatedSet, EvaluationFolder
from ledeline.evaluation.figures import picture_format, save
from ledeline.evaluation.odd_words import KINDS
from ledeline.evaluation.significance import Array, bootstrap_intervals, compare
from ledeline.evaluation.summary import MEASURES
from ledeline.report.numbers import percent, plural, signed
from ledeline.report.published import OWN_ROWS, SETS

MAIN = (("news", "all", "Ours"), ("rush", "all", "Rush"), ("rush", "tuned", "Rush"))
APART = "natural"  # the model in the box: text of another kind, so not compared
RATIO = "reference words / lede words"
HOW = """\
Seeds are pooled: the scores of each pair are averaged over seeds, for a difference over those that
both systems have. In brackets are 95 % intervals by the bootstrap over pairs (1,000 resamples, for
differences paired); p is that of approximate randomisation (10,000 shuffles, two-sided). Both say
what other pairs would change, and nothing of other seeds: how these differ is in columns by seed.
"""


class Judged(NamedTuple):
    """One evaluation on one test set."""

    folder: Path
    command: str
    scores: Array  # (N, measures)
    odds: Array  # (N, kinds), NaN where unknown


class Study(NamedTuple):
    """All evaluations, and the pairs of each test set."""

    runs: dict[str, dict[Key, dict[int, Judged]]]  # by test set, what was trained, seed
    first: dict[str, EvaluatedSet]  # by test set
    places: dict[str, Path]  # of these

    def data(self, test_set: str) -> list[str]:
        """What systems were trained on, by size."""
        return sorted({key.data for key in self.runs.get(test_set, {})}, key=by_size)

    def group(self, data: str, part: Part, c: float | None = None) -> Group:
        """The four systems; with a C those that have one."""
        keys = [Key(data, name, c or PAPER_C) for name in (WITH_SPM if c else SYSTEMS)]
        return Group(data, part, c, {key.system: self.effect(key, part) for key in keys})

    def effect(self, key: Key, part: Part) -> Effect | None:
        """Judge a system on some pairs."""
        runs, base = self.runs[part.test_set], Key(key.data, "encdec")
        ours, theirs = runs.get(key, {}), runs.get(base, {}) if key != base else {}
        if not ours:
            return None
        shared, values = sorted(ours.keys() & theirs.keys()), pooled(ours, ours, part)
        gaps = [pooled(ours, [one], part) - pooled(theirs, [one], part) for one in shared]
        return Effect(
            sorted(ours),
            values.mean(axis=0).tolist(),
            bootstrap_intervals(values),
            shared,
            compare(pooled(theirs, shared, part), pooled(ours, shared, part)) if shared else [],
            [float(gap[:, 0].mean()) for gap in gaps] if len(shared) > 1 else [],
        )


def pooled(runs: Mapping[int, Judged], seeds: Iterable[int], part: Part) -> Array:
    """The scores of each pair, averaged over seeds."""
    mean: Array = np.mean([runs[seed].scores[part.rows] for seed in seeds], axis=0)
    return mean


def read_study(folder: Path) -> Study:
    if not folder.is_dir():
        raise ScoreError(f"{folder}: there is no such folder; name one with evaluations")
    study = Study(defaultdict(lambda: defaultdict(dict)), {}, {})
    places = (one for one in folder.glob("[!.]*/[!.]*") if one.is_dir())
    for place in sorted(one for one in places if one.parent.name != APART):
        if EvaluationFolder(place).read_summary().inner("sets").values:
            take(study, place)
        else:
            print(f"{place}: no test set is done; left out", file=sys.stderr)
    if not study.first:
        raise ScoreError(f"{folder}: has no evaluation; they lie in {folder}/DATA/SYSTEM-sSEED")
    return study


def take(study: Study, place: Path) -> None:
    """Read an evaluation; it must be what its folder is called, and of the same pairs as others."""
    (key, seed), evaluation = parsed(place), EvaluationFolder(place).read()
    if evaluation.system in SYSTEMS.values() and evaluation.system != SYSTEMS[key.system]:
        raise ScoreError(f"{place}: is of {evaluation.system}; name it so")
    for name, evaluated in evaluation.sets.items():
        first, before = (
            study.first.setdefault(name, evaluated),
            study.places.setdefault(name, place),
        )
        if basis(evaluated) != basis(first):
            fault = f"{name} has other pairs in it, or other scores; evaluate both alike"
            raise ScoreError(f"{place} cannot be compared with {before}: {fault}")
        known, odds = study.runs[name][key], evaluated.audit.odds
        if seed in known:
            raise ScoreError(f"{known[seed].folder} and {place} are one system; keep one of them")
        counts = np.array([[getattr(one, kind) for kind in KINDS] for one in odds], np.float64)
        known[seed] = Judged(place, evaluation.command, evaluated.pair_scores, counts)


def basis(evaluated: EvaluatedSet) -> tuple[Any, ...]:
    """What must be the same where scores are compared pair by pair."""
    return evaluated.texts.sources, evaluated.texts.references, evaluated.summary.signature


# --- tables ---------------------------------------------------------------------------------------


def joined(values: Iterable[float], shown: Callable[[float], str] = str) -> str:
    return ", ".join(map(shown, values))


def score_cells(effect: Effect | None, runs: Mapping[int, Judged]) -> list[str]:
    """Seeds, means with intervals, and R-1 of each seed."""
    if effect is None:
        return [""] * (2 + len(MEASURES))
    means = [
        f"{percent(mean)} [{percent(bounds.low)}, {percent(bounds.high)}]"
        for mean, bounds in zip(effect.means, effect.bounds, strict=True)
    ]
    firsts = [runs[seed].scores[:, 0].mean() for seed in effect.seeds]
    return [joined(effect.seeds), *means, joined(firsts, percent)]


def difference_cells(effect: Effect | None, num_measures: int) -> list[str]:
    """The seeds that were compared, a difference with its interval and p, and that of each seed."""
    if effect is None or not effect.shared:
        return [""] * (2 + 2 * num_measures)
    cells = [joined(effect.shared)]
    for one in effect.found[:num_measures]:
        gap = f"{signed(one.difference)} [{signed(one.low)}, {signed(one.high)}]"
        cells += [gap, shown_p(one.randomisation_p)]
    return [*cells, joined(effect.by_seed, signed)]


def odd_cells(runs: Mapping[int, Judged]) -> list[str]:
    """Odd words per 1,000 headlines, averaged over seeds."""
    if not runs:
        return [""] * len(KINDS)
    means = np.mean([1000 * one.odds.mean(axis=0) for one in runs.values()], axis=0)
    return ["" if np.isnan(mean) else f"{mean:,.0f}" for mean in means]


def odd_gap_cells(ours: Mapping[int, Judged], theirs: Mapping[int, Judged]) -> list[str]:
    """By how many odd words per 1,000 headlines two systems differ, with intervals and p."""
    seeds, none = sorted(ours.keys() & theirs.keys()), [""] * 2 * len(KINDS)
    if not seeds:
        return none
    both = [np.mean([runs[seed].odds for seed in seeds], axis=0) for runs in (theirs, ours)]
    if not all(np.isfinite(one).all() for one in both):
        return none
    cells = []
    for one in compare(*both):
        numbers = (1000 * one.difference, 1000 * one.low, 1000 * one.high)
        gap, low, high = (f"{number:+,.0f}".replace("-", "−") for number in numbers)
        cells += [f"{gap} [{low}, {high}]", shown_p(one.randomisation_p)]
    return cells


def shown_p(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def heading(title: str, groups: Sequence[Group], study: Study) -> list[str]:
    """Say what a table is of: the pairs, how they are scored, and the first command."""
    test_set, data = groups[0].part.test_set, groups[0].data
    parts = {group.part.name: plural(len(group.part.rows), "pair") for group in groups}
    pairs = ", ".join(f"{name}: {number}" if name else number for name, number in parts.items())
    runs = [(key, runs) for key, runs in study.runs[test_set].items() if key.data == data]
    first = min(runs, key=lambda one: list(SYSTEMS).index(one[0].system))[1]
    return [
        f"## {title}\n",
        f"Test set `{test_set}` ({pairs}); `{study.first[test_set].summary.signature}`;",
        f"`{first[min(first)].command}`, and so for the others.\n",
    ]


def score_tables(title: str, group: Group, study: Study, published: str) -> list[str]:
    """The four systems: scores, differences, odd words; beside them what the paper printed."""
    scores, gaps, odd, odd_gaps = [], [], [], []
    base = OWN_ROWS[0].figures[published]
    plain = study.runs[group.part.test_set].get(Key(group.data, "encdec"), {})
    for (name, effect), row in zip(group.effects.items(), OWN_ROWS, strict=True):
        runs = study.runs[group.part.test_set].get(Key(group.data, name), {})
        paper = row.figures[published]
        leads = [signed((one - other) / 100) for one, other in zip(paper, base, strict=True)]
        scores.append([row.system, *score_cells(effect, runs), *(f"{one:.2f}" for one in paper)])
        gaps.append([row.system, *difference_cells(effect, len(paper)), *leads])
        odd.append([row.system, *odd_cells(runs)])
        odd_gaps.append([row.system, *odd_gap_cells(runs, plain)])
    names = list(MEASURES.values())
    printed = [f"{name}, paper" for name in names]
    tested = [head for name in names for head in (name, "p")]
    return [
        *heading(title, [group], study),
        f"The paper's figures are of its set {published}, {plural(SETS[published], 'pair')}.\n",
        *table(["system", "seeds", *names, "R-1 by seed", *printed], scores, 2),
        *table(["less EncDec", "seeds", *tested, "R-1 by seed", *printed], gaps[1:], 2),
        *table(["odd words per 1,000 headlines", *KINDS], odd, 1),
        *table(["less EncDec", *(head for kind in KINDS for head in (kind, "p"))], odd_gaps[1:], 1),
    ]


def group_table(title: str, what: str, groups: Sequence[Group], study: Study) -> list[str]:
    """A row for each group and system."""
    rows = [
        [
            group.part.name if what == RATIO else group.label,
            SYSTEMS[name],
            joined(effect.seeds) if effect else "",
            percent(effect.means[0]) if effect else "",
            *difference_cells(effect, 1),
        ]
        for group in groups
        for name, effect in group.effects.items()
    ]
    heads = [what, "system", "seeds", "R-1", "compared", "R-1 less EncDec", "p", "by seed"]
    return [*heading(title, groups, study), *table(heads, rows, 3)] if groups else []


def odd_table(title: str, what: str, groups: Sequence[Group], study: Study) -> list[str]:
    """The odd words of each group and system."""
    rows = []
    for group in groups:
        known = study.runs[group.part.test_set]
        plain = known.get(Key(group.data, "encdec"), {})
        for name in group.effects:
            runs = known.get(Key(group.data, name, group.c or PAPER_C), {})
            gaps = odd_gap_cells(runs, plain if name != "encdec" else {})
            cells = [
                cell
                for kind, total in enumerate(odd_cells(runs))
                for cell in (total, *gaps[2 * kind : 2 * kind + 2])
            ]
            rows.append([group.label, SYSTEMS[name], *cells])
    heads = [head for kind in KINDS for head in (kind, "less EncDec", "p")]
    table_lines = table([what, "system", *heads], rows, 2)
    return [*heading(title, groups, study), *table_lines] if groups else []


def all_tables(study: Study, groups: Mapping[str, Sequence[Group]]) -> list[str]:
    """All tables that have something in them."""
    lines = []
    for test_set, data, published in MAIN:
        if data in study.data(test_set):
            group = study.group(data, every_pair(study, test_set))
            title = f"The four systems on {test_set}, trained on {data}"
            lines += score_tables(title, group, study, published)
    lines += group_table("By training pairs", "trained on", groups["size"], study)
    lines += group_table("On wire agencies", "trained on", groups["wire"], study)
    lines += group_table("By headline-to-lede ratio", RATIO, groups["ratio"], study)
    lines += group_table("By C", "trained on, with", groups["weight"], study)
    for title, what, name in (("training pairs", "trained on", "size"), ("C", "with", "weight")):
        lines += odd_table(f"Odd words per 1,000 headlines, by {title}", what, groups[name], study)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("evals", type=Path, metavar="EVALS")
    parser.add_argument("--runs", type=Path, help="run folders, for learning curves and times")
    parser.add_argument("--sources", type=Path, help="the test set news with a column source")
    parser.add_argument("--output", type=Path, help="the figure, .svg or .png")
    parser.add_argument("--tables", type=Path, help="a file for the tables; printed without")
    quick.offer(
        parser,
        evals=tiny_study,
        runs=lambda: tiny.results() / "runs",
        sources=lambda: tiny.folder() / "tests" / "news.parquet",
        output=lambda: tiny.folder() / "figure.svg",
    )
    options = parser.parse_args()
    try:
        if options.output:
            picture_format(options.output)
        study = read_study(options.evals)
        groups = grouped(study, options.sources)
        runs = read_runs(options.runs) if options.runs else []
        text = "\n".join(
            [
                f"`{shlex.join(['python', *sys.argv])}`\n",
                HOW,
                *all_tables(study, groups),
                *run_tables(runs),
            ]
        )
        if options.tables:
            with atomic_write(options.tables) as path:
                path.write_text(text, encoding="utf-8")
        else:
            print(text)
        if options.output:
            save(drawn(groups), options.output)
    except (LedelineError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
