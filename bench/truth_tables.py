"""Tables in Markdown of what truth_report.py finds."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ledeline.report.numbers import plural, signed
from truth_labels import LABELS
from truth_report import THRESHOLDS

Facts = dict[str, Any]


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], num_texts: int = 1) -> list[str]:
    """Lines of a table; the first columns are texts, the others figures."""
    marks = ["---"] * num_texts + ["---:"] * (len(heads) - num_texts)
    return [*(f"| {' | '.join(cells)} |" for cells in (heads, marks, *rows)), ""]


def shown(value: float | None, form: str = ".3f") -> str:
    """Nothing where there is no such figure."""
    return "" if value is None or math.isnan(value) else format(value, form)


def share(value: float | None) -> str:
    """In percent, as 24.5."""
    return shown(None if value is None else 100 * value, ".1f")


def with_bounds(facts: Facts, key: str = "share") -> str:
    """A share in percent with its interval: 24.5 [19.1, 30.9]."""
    if not (value := share(facts[key])):
        return ""
    low, high = map(share, facts["interval"])
    return f"{value} [{low}, {high}]" if low else value


def count_tables(found: Facts) -> list[str]:
    """Shares by writer and reading, agreement, and kinds of false headlines."""
    rows = []
    for one in found["shares"]:
        readings = {f"reading {number}": part for number, part in enumerate(one["readings"], 1)}
        readings = readings if len(readings) > 1 else {}
        for name, part in {**readings, "all readings": one["all"], "mean": one["mean"]}.items():
            cells = [with_bounds(part[label]) for label in LABELS]
            rows.append([one["writer"], name, f"{part['ok']['n']:,}", *cells])
    lines = table(["writer", "by", "n", *(f"{label}, %" for label in LABELS)], rows, 2)
    twice = [one for one in found["agreement"] if one["n"]]
    if twice:
        heads = ["writer", "n read twice", "agree, %", "kappa", "agree on false, %", "kappa"]
        rows = [
            [
                one["writer"],
                f"{one['n']:,}",
                *(
                    text
                    for name in ("labels", "false")
                    for text in (share(one[name]["agreement"]), shown(one[name]["kappa"], ".2f"))
                ),
            ]
            for one in twice
        ]
        lines += table(heads, rows)
    for one in found["kinds"]:
        if one["false"]:
            listed = ", ".join(f"{kind} {number:g}" for kind, number in one["false"].items())
            lines.append(f"False headlines of {one['writer']}, mean of readings: {listed}.")
    return lines


def compare_tables(found: Facts) -> list[str]:
    """Differences with intervals and p."""
    a, b = found["a"], found["b"]
    heads = ["label", "by", f"{a}, %", f"{b}, %", "difference, points", "95 %"]
    heads += [f"only {a}", f"only {b}", "p"]
    rows = []
    for one in found["differences"]:
        low, high = map(signed, one["interval"])
        cells = [one["label"], one["by"], share(one["a"]), share(one["b"])]
        cells += [signed(one["difference"]), f"{low} to {high}"]
        cells += [shown(one["only_a"], "d"), shown(one["only_b"], "d"), shown_p(one["p"])]
        rows.append(cells)
    same = f"{found['same_headline']:,} of them with the same headline"
    return [f"{plural(found['n'], 'lede')}, {same}.\n", *table(heads, rows, 2)]


def shown_p(p: float | None) -> str:
    """Three digits, or that it is less."""
    return "" if p is None else f"{p:.3f}" if p >= 0.001 else "< 0.001"


def detect_tables(found: dict[str, Facts], target: str) -> list[str]:
    """All detectors side by side, then what only one has."""
    lines = []
    first = next(iter(found.values()))
    counted = f"{first['bad']:g} {target}, {first['good']:g} ok or clumsy"
    lines.append(f"{plural(first['n'], 'headline')}: {counted}.\n")
    heads = ["detector", "AUROC [95 %]", "average precision"]
    heads += [f"{what}, support < {one}" for one in THRESHOLDS for what in ("precision", "recall")]
    wanted = share(first["at_recall"]["wanted"])
    heads += [f"good ones doubted, %, with {wanted} % found [95 %]", "up to support"]
    heads += ["area of risk", "perfect", "calibration error", "Brier"]
    lines += table(heads, [[name, *main_cells(one)] for name, one in found.items()])
    covered = [one["coverage"] for one in first["risk"]["coverages"]]
    rows = [
        [name, *(with_bounds(point, "risk") for point in one["risk"]["coverages"])]
        for name, one in found.items()
    ]
    heads = [f"{target}, %, at coverage", *(f"{100 * one:.0f} %" for one in covered)]
    lines += table(heads, rows)
    lines += kind_table(found)
    for name, one in found.items():
        lines += calibration_table(name, one["calibration"]["bins"])
        if "doubts" in one:
            lines += doubt_tables(name, one["doubts"])
    return lines


def main_cells(one: Facts) -> list[str]:
    """The figures of one detector."""
    low, high = one["auroc"]["interval"]
    cells = [f"{shown(one['auroc']['value'])} [{shown(low)}, {shown(high)}]"]
    cells.append(shown(one["average_precision"]))
    for at in one["thresholds"]:
        cells += [shown(at["precision"]), shown(at["recall"])]
    cells.append(with_bounds(one["at_recall"], "doubted_good"))
    cells.append(shown(one["at_recall"]["threshold"]))
    cells += [shown(one["risk"]["area"]), shown(one["risk"]["perfect_area"])]
    return [*cells, shown(one["calibration"]["error"]), shown(one["calibration"]["brier"])]


def kind_table(found: dict[str, Facts]) -> list[str]:
    """Which kinds of errors are found by which detector."""
    first = next(iter(found.values()))["by_kind"]
    if not first:
        return []
    heads = ["kind of error", "n"]
    for name in found:
        heads += [f"AUROC, {name}", *(f"support < {one}, %" for one in THRESHOLDS)]
    rows = []
    for place, kind in enumerate(first):
        cells = [kind["kind"], f"{kind['n']:g}"]
        for one in found.values():
            own = one["by_kind"][place]
            cells += [shown(own["auroc"]), *map(share, own["found"])]
        rows.append(cells)
    return table(heads, rows)


def calibration_table(name: str, bins: Sequence[Facts]) -> list[str]:
    """What support says and what is so."""
    heads = [f"support, {name}", "n", "mean support", "share true"]
    rows = [
        [
            f"{one['low']:.1f} to {one['high']:.1f}",
            f"{one['number']:,}",
            shown(one["support"]),
            shown(one["true"]),
        ]
        for one in bins
    ]
    return table(heads, rows)


def doubt_tables(name: str, found: Facts) -> list[str]:
    """How right doubts are, and what is left without one."""
    lines = []
    if found["kinds"]:
        heads = [f"doubt, {name}", "doubts", "headlines", "false or added, %", "false, %"]
        heads += ["where a reader named words", "a word in common, %"]
        rows = [
            [
                one["kind"],
                f"{one['doubts']:,}",
                f"{one['headlines']:,}",
                with_bounds(one["precision"]),
                with_bounds(one["false"]),
                f"{one['with_words']:,}",
                with_bounds(one["same_words"]),
            ]
            for one in found["kinds"]
        ]
        lines += table(heads, rows)
    free = found["without"]
    counted = f"{plural(free['n'], 'headline')}, {share(free['coverage'])} %"
    rates = f"false {with_bounds(free['false']) or 0} %"
    more = f"false or added {with_bounds(free['unsupported']) or 0} %"
    return [*lines, f"Without a doubt ({name}): {counted}; {rates}, {more}.\n"]
