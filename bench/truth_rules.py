"""How often each rule of a check is right."""

from collections import Counter
from collections.abc import Sequence

from ledeline.inference.checks.pair_words import Lede, PairWords
from ledeline.inference.checks.rules import RULES
from truth_labels import LABELS, PUBLISHER, FoundLabel
from truth_report import Facts, each_label
from truth_tables import table, with_bounds


def count_rules(found: Sequence[FoundLabel]) -> Facts:
    """The labels of the headlines that each rule doubts, by models and by publishers."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    ledes: dict[str, Lede] = {}
    for one in found:
        writer = PUBLISHER if one.judged.writer == PUBLISHER else "model"
        pair = PairWords(ledes.setdefault(one.lede, Lede(one.lede)), one.headline)
        doubting = [name for name, rule in RULES.items() if any(rule(pair))]
        for name in (*doubting, *(["any"] if doubting else [])):
            counts.setdefault((writer, name), Counter())[one.judged.labels[0]] += 1
    rows = [
        {"writer": writer, "rule": name, "labels": each_label(own, own.total())}
        for (writer, name), own in sorted(counts.items())
    ]
    return {"headlines": len(found), "rules": rows}


def rule_tables(found: Facts) -> list[str]:
    """A row for each rule."""
    heads = ["writer", "rule", "doubted", *(f"{label}, %" for label in LABELS)]
    rows = [
        [
            one["writer"],
            one["rule"],
            f"{one['labels']['ok']['n']:,}",
            *(with_bounds(one["labels"][label]) for label in LABELS),
        ]
        for one in found["rules"]
    ]
    return [f"{found['headlines']:,} headlines.", "", *table(heads, rows, 2)]
