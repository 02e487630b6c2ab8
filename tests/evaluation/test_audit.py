"""Audits: what is odd in each headline, and in all."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledeline.core.errors import ScoreError
from ledeline.evaluation.audit import (
    Audit,
    as_dict,
    audit,
    audit_files,
    compared_words,
    per_pair_lines,
)
from ledeline.evaluation.odd_words import KINDS, OddWords, count_odd_words
from ledeline.inference.checks.check import Check
from ledeline.inference.checks.doubt import Doubt
from ledeline.text.profiles import NATURAL, PAPER

numbers = st.lists(st.builds(OddWords, *[st.integers(0, 12)] * 3), max_size=30)

OUTPUTS = [["oil", "oil", "oil"], ["gas"], ["zebra", "rises"]]
REFERENCES = [["oil"], ["gas", "rises"], ["gas", "rises"]]
SOURCES = [["oil"], ["gas"], ["gas"]]


def test_each_headline_is_counted_in_order() -> None:
    assert audit(OUTPUTS, REFERENCES, SOURCES).odds == (
        OddWords(2, 0, 0),
        OddWords(0, 1, 0),
        OddWords(0, 0, 1),
    )
    assert audit(OUTPUTS, REFERENCES).odds == tuple(map(count_odd_words, OUTPUTS, REFERENCES))
    assert audit([], []).odds == ()


def test_a_string_is_the_words_between_white_space() -> None:
    strings = [[" ".join(words) for words in texts] for texts in (OUTPUTS, REFERENCES, SOURCES)]
    assert audit(*strings) == audit(OUTPUTS, REFERENCES, SOURCES)
    assert audit(["a\u2003a\ta"], ["a"]).odds == (OddWords(2, 0, None),)


def test_a_mark_for_an_unknown_word_stays_whole_in_every_profile() -> None:
    text = "Mayor <unk> wins, <UNK>-led UNK says."
    assert compared_words(text, NATURAL) == "Mayor <unk> wins <UNK> led UNK says".split()
    assert compared_words("mayor <unk> wins", PAPER) == ["mayor", "<unk>", "wins"]
    assert compared_words("mayor <unk>, wins", None) == ["mayor", "<unk>,", "wins"]


def test_total() -> None:
    assert audit(OUTPUTS, REFERENCES, SOURCES).total == OddWords(2, 1, 1)
    assert audit(OUTPUTS, REFERENCES).total == OddWords(2, 1, None)


@pytest.mark.parametrize(
    "texts", [(OUTPUTS[:2], REFERENCES), (OUTPUTS, REFERENCES[:2]), (OUTPUTS, REFERENCES, [])]
)
def test_lengths_must_agree(texts: tuple[list[list[str]], ...]) -> None:
    with pytest.raises(ScoreError, match="same length"):
        audit(*texts)


@given(numbers)
def test_histogram(odds: list[OddWords]) -> None:
    for kind in KINDS:
        counts = [getattr(odd, kind) for odd in odds]
        histogram = Audit(tuple(odds)).histogram(kind)
        assert histogram == [counts.count(number) for number in range(max(counts, default=-1) + 1)]
        assert sum(histogram) == len(odds)
        assert not histogram or histogram[-1] > 0
        assert sum(n * times for n, times in enumerate(histogram)) == sum(counts)


def test_histogram_by_hand() -> None:
    odds = (OddWords(3, 0, 1), OddWords(0, 0, None), OddWords(3, 0, 2))
    assert Audit(odds).histogram("repeating") == [1, 0, 0, 2]
    assert Audit(odds).histogram("lacking") == [3]
    assert Audit(odds).histogram("irrelevant") is None  # not known of one is not known
    assert Audit(()).histogram("lacking") == []


def test_what_is_known() -> None:
    assert [audit(OUTPUTS, REFERENCES).knows(kind) for kind in KINDS] == [True, True, False]
    assert all(audit(OUTPUTS, REFERENCES, SOURCES).knows(kind) for kind in KINDS)


def test_worst() -> None:
    odds = tuple(OddWords(number, 0, None) for number in (1, 3, 0, 2, 3, 1))
    assert Audit(odds).worst("repeating", 9) == [1, 4, 3, 0, 5]
    assert Audit(odds).worst("repeating", 2) == [1, 4]
    assert Audit(odds).worst("repeating", 0) == []
    assert Audit(odds).worst("repeating", -1) == []
    assert Audit(odds).worst("lacking", 9) == []
    assert Audit(odds).worst("irrelevant", 9) == []


def test_a_kind_that_is_none() -> None:
    with pytest.raises(ValueError, match="'odd'"):
        Audit(()).histogram("odd")


def test_compared_words() -> None:
    text = "Mr. Smith 's  12 cats , Don't!"
    assert compared_words(text, None) == ["Mr.", "Smith", "'s", "12", "cats", ",", "Don't!"]
    assert compared_words(text, PAPER) == ["mr.", "smith", "'s", "##", "cats", "do", "n't"]
    assert (
        compared_words("“Mr. Smith’s 12 cats” — don’t!", NATURAL)
        == "Mr Smith 's 12 cats don't".split()
    )
    assert (
        compared_words("", None) == compared_words(" ", PAPER) == compared_words("!", NATURAL) == []
    )


def test_as_dict() -> None:
    known = as_dict(audit(OUTPUTS, REFERENCES, SOURCES))
    assert known == {
        "pairs": 3,
        "repeating": 2,
        "lacking": 1,
        "irrelevant": 1,
        "histograms": {"repeating": [2, 0, 1], "lacking": [2, 1], "irrelevant": [2, 1]},
    }
    assert json.loads(json.dumps(known)) == known
    unknown = as_dict(audit(OUTPUTS, REFERENCES))
    assert unknown["irrelevant"] is None
    assert unknown["histograms"]["irrelevant"] is None


def test_per_pair_lines() -> None:
    assert list(per_pair_lines(audit(OUTPUTS, REFERENCES, SOURCES))) == [
        "repeating\tlacking\tirrelevant",
        "2\t0\t0",
        "0\t1\t0",
        "0\t0\t1",
    ]
    assert list(per_pair_lines(audit(OUTPUTS[:1], REFERENCES[:1]))) == [
        "repeating\tlacking\tirrelevant",
        "2\t0\t",
    ]


def test_per_pair_lines_with_checks() -> None:
    doubt = Doubt(0, 3, "gas", "added", "x")
    checks = [Check(0.25), Check(0.5, (doubt, doubt)), Check(None)]
    assert list(per_pair_lines(audit(OUTPUTS, REFERENCES, SOURCES), checks)) == [
        "repeating\tlacking\tirrelevant\tsupport\tdoubts",
        "2\t0\t0\t0.25\t0",
        "0\t1\t0\t0.5\t2",
        "0\t0\t1\t\t",
    ]


def test_checks_need_sources() -> None:
    with pytest.raises(ScoreError, match="none are given"):
        audit_files(["out.txt"], "ref.txt", None, None, check=True)
