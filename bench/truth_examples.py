"""False headlines that a check finds, and those that it misses."""

from collections.abc import Sequence
from typing import Any, Final

from ledeline.inference.checks.check import Check
from ledeline.inference.checks.checker import Checker
from truth_labels import PUBLISHER, FoundLabel
from truth_tables import table

NUMBER: Final = 20
_HASH: Final = 8  # digits that are shown


def examples(found: Sequence[FoundLabel]) -> dict[str, Any]:
    """Headlines that every reading calls false: with a doubt, and without one."""
    false = [one for one in found if one.judged.is_all("false") and one.judged.writer != PUBLISHER]
    checks = Checker.load().check_batch([(one.lede, one.headline) for one in false])
    rows = [_row(one, check) for one, check in zip(false, checks, strict=True)]
    return {
        "found": [row for row in rows if row["doubts"]],
        "missed": [row for row in rows if not row["doubts"]],
    }


def _row(one: FoundLabel, check: Check) -> dict[str, Any]:
    return {
        "lede": one.judged.lede,
        "headline": one.headline,
        "kind": one.judged.kinds[0],
        "words": one.judged.words[0],
        "support": check.support,
        "doubts": [{"words": doubt.words, "kind": doubt.kind} for doubt in check.doubts],
    }


def example_tables(found: dict[str, Any]) -> list[str]:
    """The first of each; the ledes are not ours to print."""
    lines = [f"{len(found['found'])} found, {len(found['missed'])} missed.", ""]
    for name in ("found", "missed"):
        heads = ["lede", f"{name}: headline", "a reader: wrong is", "support", "doubted"]
        rows = [
            [
                row["lede"][:_HASH],
                row["headline"],
                f"{row['words']} ({row['kind']})",
                "" if row["support"] is None else f"{row['support']:.2f}",
                ", ".join(f"{one['words']} ({one['kind']})" for one in row["doubts"]),
            ]
            for row in found[name][:NUMBER]
        ]
        lines += table(heads, rows, 3) if rows else []
    return lines
