"""A line of headlines.jsonl, as far as an evaluation uses it."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from ledeline.core.errors import ScoreError
from ledeline.evaluation.json_fields import is_count
from ledeline.inference.checks.check import Check
from ledeline.inference.checks.doubt import DOUBT_KINDS, Doubt


class WrittenHeadline(NamedTuple):
    """A headline that a system wrote."""

    headline: str
    source: str | None  # None where it was no text
    truncated: bool
    check: Check | None = None  # None where it was not checked
    left_out: bool = False  # for lack of support


def parse_headline(path: Path, number: int, line: str) -> WrittenHeadline:
    """Read a line of the file, which has this number."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        raise ScoreError(f"{path}: line {number} is not JSON; evaluate again") from None
    if not isinstance(values, dict) or not isinstance(values.get("headline"), str):
        raise ScoreError(f"{path}: line {number} has no text under headline; evaluate again")
    source = values.get("source")
    try:
        check = _parse_check(values)
    except ValueError as error:
        raise ScoreError(f"{path}: line {number}: {error}; evaluate again") from None
    return WrittenHeadline(
        values["headline"],
        source if isinstance(source, str) else None,
        values.get("truncated") is True,
        check,
        _was_left_out(values),
    )


def _parse_check(values: dict[str, Any]) -> Check | None:
    support = values.get("support")
    if support is None:
        return None
    is_number = isinstance(support, int | float) and not isinstance(support, bool)
    if not is_number or not 0 <= support <= 1:
        raise ValueError("support is not a number from 0 to 1")
    doubts = values.get("doubts", [])
    if not isinstance(doubts, list):
        raise ValueError("doubts is not a list")
    return Check(float(support), tuple(_parse_doubt(one, values["headline"]) for one in doubts))


def _parse_doubt(values: object, headline: str) -> Doubt:
    if not isinstance(values, dict):
        raise ValueError("a doubt is not an object")
    start, end, kind, why = (values.get(key) for key in ("start", "end", "kind", "why"))
    if not (is_count(start) and is_count(end) and start <= end <= len(headline)):
        raise ValueError("a doubt has no start and end within the headline")
    if not isinstance(kind, str) or kind not in DOUBT_KINDS:
        raise ValueError(f"a doubt has a kind that is none of {', '.join(DOUBT_KINDS)}")
    if not isinstance(why, str):
        raise ValueError("a doubt has no text under why")
    return Doubt(start, end, headline[start:end], kind, why)


def _was_left_out(values: dict[str, Any]) -> bool:
    given = values.get("warnings")
    warnings = given if isinstance(given, list) else []
    return any(isinstance(one, dict) and one.get("kind") == "left out" for one in warnings)
