"""The numbers of ROUGE-1.5.5 that make_golden.py wrote down, for machines without Perl."""

import json
from pathlib import Path
from typing import Any

import pytest

from ledeline.rouge import Score, Settings, score, score_all

FILE = Path(__file__).with_name("golden.json")
GROUPS = json.loads(FILE.read_text())


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group["options"].replace(" ", ""))
def test_golden(group: dict[str, Any]) -> None:
    settings = Settings(**group["settings"])
    pairs = group["pairs"]
    found = score_all([p["candidate"] for p in pairs], [p["references"] for p in pairs], settings)
    for pair, rouge in zip(pairs, found, strict=True):
        for measure in ("rouge1", "rouge2", "rouge_l", "rouge_w"):
            expected = Score(*pair[measure]) if measure in pair else None
            assert getattr(rouge, measure) == expected, (pair, measure)
        assert score(pair["candidate"], pair["references"], settings) == rouge


def test_the_file() -> None:
    """Small enough to read, and about something: most pairs share words."""
    pairs = [pair for group in GROUPS for pair in group["pairs"]]
    assert 150 <= len(pairs) <= 300
    assert FILE.stat().st_size <= 60_000
    assert sum(pair["rouge1"][2] > 0 for pair in pairs) > len(pairs) / 2
    assert {len(pair["references"]) for pair in pairs} == {1, 2, 3, 4}
