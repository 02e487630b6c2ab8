"""Checks of many headlines, counted."""

import json
from pathlib import Path

import pytest

from ledeline.core.errors import ScoreError
from ledeline.evaluation.check_counts import CheckCounts, check_headlines, present_kinds
from ledeline.evaluation.json_fields import JsonFields
from ledeline.inference.checks.check import Check
from ledeline.inference.checks.doubt import DOUBT_KINDS, Doubt, DoubtKind


def doubt(kind: DoubtKind) -> Doubt:
    return Doubt(0, 3, "Oil", kind, "the lede has gas")


CHECKS = [
    Check(0.9),
    Check(0.1, (doubt("name"), doubt("name"), doubt("role"))),
    Check(0.5, (doubt("number"),)),
    Check(None),  # a text without words
    Check(0.7),
]
COUNTS = CheckCounts.of(CHECKS, num_left_out=2)


def read(values: object) -> CheckCounts:
    return CheckCounts.read(JsonFields(Path("e.json"), json.loads(json.dumps(values)), "checks."))


def test_by_hand() -> None:
    assert COUNTS.num_checked == 4
    assert COUNTS.mean_support == pytest.approx(0.55)
    assert (COUNTS.num_doubted, COUNTS.doubted_share) == (2, 0.5)
    assert list(COUNTS.doubts) == list(DOUBT_KINDS)
    assert {kind: times for kind, times in COUNTS.doubts.items() if times} == {
        "number": 1,
        "name": 2,
        "role": 1,
    }
    assert COUNTS.per_thousand("name") == 500
    assert COUNTS.num_left_out == 2


def test_nothing_to_check() -> None:
    for checks in ([], [Check(None)]):
        none = CheckCounts.of(checks)
        assert (none.num_checked, none.mean_support, none.doubted_share) == (0, None, 0)
        assert none.per_thousand("name") == 0
        assert read(none.as_dict()) == none


def test_what_is_written_is_read() -> None:
    found = COUNTS.as_dict()
    assert list(found) == [
        *("checked", "left_out", "mean_support", "doubted", "doubted_share"),
        *("doubts", "doubts_per_1000"),
    ]
    assert found["doubts_per_1000"]["number"] == 250
    assert read(found) == COUNTS
    del found["doubts"]["place"]  # a kind that an earlier version did not know
    assert read(found) == COUNTS


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"doubted": 5}, r"checks\.doubted is 5 where a count up to 4 is needed"),
        ({"mean_support": 1.5}, r"checks\.mean_support is 1\.5"),
        ({"left_out": -1}, r"checks\.left_out is -1"),
        ({"doubts": {"name": "x"}}, r'checks\.doubts\.name is "x"'),
        ({"doubts": None}, r"checks\.doubts is null"),
    ],
)
def test_what_cannot_be_is_named(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(ScoreError, match=f"e.json: {sentence}"):
        read(COUNTS.as_dict() | changes)


def test_present_kinds() -> None:
    other = CheckCounts.of([Check(0.1, (doubt("place"),))])
    assert present_kinds([COUNTS, other]) == ["number", "name", "role", "place"]
    assert present_kinds([]) == []


def test_headlines_of_several_systems() -> None:
    """A rule's doubt is certain, whatever the verifier says."""
    ledes = ["Heavy rain killed 3 people in Oslo on Monday.", "Gas prices fell in Bergen."]
    systems = {"a": ["Rain kills 3 in Oslo", ""], "b": ["Rain kills 7 in Oslo", "Gas falls"]}
    seen: list[tuple[str, int, int | None]] = []
    found = check_headlines(systems, ledes, lambda *one: seen.append(one))
    assert [one.support is None for one in found["a"]] == [False, True]
    assert "number" not in [one.kind for one in found["a"][0].doubts if not one.by_verifier]
    assert ("7", "number") in [(one.words, one.kind) for one in found["b"][0].doubts]
    assert seen == [("a: checks", 2, 2), ("b: checks", 2, 2)]
