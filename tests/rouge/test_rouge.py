"""ROUGE: slow, obvious references and examples worked by hand, without stemming."""

import dataclasses
import random
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ledeline import __version__, rouge
from ledeline.core.errors import ScoreError
from ledeline.rouge import Rouge, Score, Settings, mean, score_all, signature
from ledeline.rouge.statistics import MatchCounts, bigrams, count_overlaps, lcs_length, overlap
from ledeline.rouge.weighted import weighted_overlap
from slow_rouge import (
    slow_lcs,
    slow_ngrams,
    slow_overlap,
    slow_score,
    slow_tokens,
    slow_weighted,
    slow_weighted_score,
)

FULL, NOTHING = Score(1.0, 1.0, 1.0), Score(0.0, 0.0, 0.0)
PLAIN, WEIGHTED = Settings(stem=False), Settings(stem=False, weighted=True)

words = st.lists(st.sampled_from("abcde"), max_size=12)
texts = st.text(st.sampled_from("abcAB09  --.é\0"), max_size=30)


def score(candidate: str, references: str | Sequence[str]) -> Rouge:
    return rouge.score(candidate, references, PLAIN)


def summed(rows: Iterable[tuple[Any, Any, Any]]) -> tuple[Any, Any, Any]:
    return tuple(map(sum, zip(*rows, strict=True)))  # type: ignore[return-value]


# -- statistics -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "length"),
    [
        ("", "", 0),
        ("", "a", 0),
        ("a", "", 0),
        ("a", "b", 0),
        ("abcbdab", "bdcaba", 4),
        ("aaaa", "aa", 2),
        ("abc", "cba", 1),
        ("xaxbxc", "abc", 3),
    ],
)
def test_lcs_by_hand(one: str, other: str, length: int) -> None:
    assert lcs_length(list(one), list(other)) == length


@given(words, words)
def test_lcs(one: list[str], other: list[str]) -> None:
    assert lcs_length(one, other) == slow_lcs(one, other) == lcs_length(other, one)


def test_lcs_of_long_lines() -> None:
    rng = random.Random(1)
    for num_types in (2, 30, 1000):
        types = [f"w{number}" for number in range(num_types)]
        one, other = rng.choices(types, k=300), rng.choices(types, k=200)
        assert lcs_length(one, other) == slow_lcs(one, other)


@given(words, words)
def test_ngrams(candidate: list[str], reference: list[str]) -> None:
    assert overlap(candidate, reference) == slow_overlap(candidate, reference)
    pairs = slow_ngrams(candidate, 2), slow_ngrams(reference, 2)
    assert overlap(bigrams(candidate), bigrams(reference)) == slow_overlap(*pairs)


def test_matches_are_clipped() -> None:
    assert overlap("a a a a".split(), "a a b".split()) == MatchCounts(2, 4, 3)
    assert overlap("a b".split(), "a a b b".split()) == MatchCounts(2, 2, 4)
    assert overlap(bigrams("a a a a".split()), bigrams("a a b".split())) == MatchCounts(1, 3, 2)


def test_parts_of_the_statistics() -> None:
    ours, theirs = "police kill the gunman".split(), "the gunman was shot by police".split()
    statistics = count_overlaps(ours, [theirs])
    assert statistics.rouge1 == MatchCounts(3, 4, 6)
    assert statistics.rouge2 == MatchCounts(1, 3, 5)
    assert statistics.rouge_l == MatchCounts(2, 4, 6)
    assert count_overlaps(ours, [theirs, ours]).rouge2 == MatchCounts(1 + 3, 3 + 3, 5 + 3)


@given(words, words)
@example(list("ab"), [])
@example([], list("ab"))
def test_weighted(candidate: list[str], reference: list[str]) -> None:
    found = weighted_overlap(candidate, [reference])
    assert found == pytest.approx(slow_weighted(candidate, reference), rel=1e-12)


@pytest.mark.parametrize(
    ("candidate", "reference", "matches"),
    [
        ("abc", "abc", 3**1.2),
        ("abc", "axbxc", 3),
        ("axbxc", "abc", 3**1.2),  # a row in the reference
        ("abcd", "abxcd", 2 * 2**1.2),
        ("ab", "cd", 0),
    ],
)
def test_weighted_by_hand(candidate: str, reference: str, matches: float) -> None:
    found = weighted_overlap(list(candidate), [list(reference)])
    assert found.matches == pytest.approx(matches)
    assert found.candidate == pytest.approx(len(candidate) ** 1.2)
    assert found.reference == pytest.approx(len(reference) ** 1.44)  # weighted twice


# -- scores ---------------------------------------------------------------------------------------


def test_worked_by_hand() -> None:
    found = score("Police kill the gunman.", "the gunman was shot by police")
    assert found.rouge1 == Score(0.75, 0.5, 0.6)
    assert found.rouge2 == Score(0.33333, 0.2, 0.25)
    assert found.rouge_l == Score(0.5, 0.33333, 0.4)


def test_f1_is_made_from_rounded_numbers() -> None:
    """Five of five and five of seven words: 10/12 is 0.83333, but 1 and 0.71429 give more."""
    assert score("a b c d e", "a b c d e f g").rouge1 == Score(1.0, 0.71429, 0.83334)
    assert score("a b x y", "a b c d e f g").rouge1 == Score(0.5, 0.28571, 0.36363)


@pytest.mark.parametrize("empty", ["", "   ", "# -- ...", "漢字", "$"])
def test_nothing_to_compare(empty: str) -> None:
    nothing = Rouge(NOTHING, NOTHING, NOTHING)
    assert score(empty, "a b") == nothing
    assert score("a b", empty) == nothing
    assert score(empty, empty) == nothing


def test_one_word_has_no_pair() -> None:
    assert score("word", "word") == Rouge(FULL, NOTHING, FULL)
    assert score("one word", "word").rouge2 == NOTHING


def test_marks_and_case_do_not_matter() -> None:
    assert score("U.S. well-known $5", "u s Well Known 5") == Rouge(FULL, FULL, FULL)


def test_precision_is_of_the_candidate() -> None:
    one, other = score("a b", "a b c d"), score("a b c d", "a b")
    assert (one.rouge1.precision, one.rouge1.recall) == (1.0, 0.5)
    assert (other.rouge_l.precision, other.rouge_l.recall) == (0.5, 1.0)
    assert one.rouge2 == Score(1.0, 0.33333, 0.5)


@given(texts, st.lists(texts, min_size=1, max_size=4))
@example("a b c d e", ["a b c d e f g"])
@example("", [""])
def test_score(candidate: str, references: list[str]) -> None:
    """Counts are summed over the references."""
    ours, all_theirs = slow_tokens(candidate), [slow_tokens(text) for text in references]
    found = rouge.score(candidate, references, WEIGHTED)
    for n, measure in ((1, found.rouge1), (2, found.rouge2)):
        grams = [(slow_ngrams(ours, n), slow_ngrams(theirs, n)) for theirs in all_theirs]
        assert measure == slow_score(*summed(slow_overlap(*both) for both in grams))
    counts = [(slow_lcs(ours, theirs), len(ours), len(theirs)) for theirs in all_theirs]
    assert found.rouge_l == slow_score(*summed(counts))
    weights = [slow_weighted(ours, theirs) for theirs in all_theirs]
    assert found.rouge_w == slow_weighted_score(*summed(weights))


def test_rounding_of_all_small_counts() -> None:
    for num_candidate in range(1, 25):
        for num_reference in range(1, 25):
            for num_matches in (1, min(num_candidate, num_reference) // 2):
                candidate = ["a"] * num_matches + ["b"] * (num_candidate - num_matches)
                reference = ["a"] * num_matches + ["c"] * (num_reference - num_matches)
                expected = slow_score(num_matches, num_candidate, num_reference)
                assert score(" ".join(candidate), " ".join(reference)).rouge_l == expected


def test_scores_are_frozen() -> None:
    found = score("a", "a")
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.rouge1 = NOTHING  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.rouge1.f1 = 0.0  # type: ignore[misc]


# -- mean -----------------------------------------------------------------------------------------


def test_mean() -> None:
    one = Rouge(Score(0.5, 0.25, 0.1), Score(0.0, 0.5, 0.2), Score(1.0, 0.75, 0.3))
    other = Rouge(Score(1.0, 0.75, 0.3), Score(0.5, 1.0, 0.4), Score(0.5, 0.25, 0.1))
    found = mean(iter([one, other]))
    assert found.rouge1 == Score(0.75, 0.5, pytest.approx(0.2))
    assert found.rouge2 == Score(0.25, 0.75, pytest.approx(0.3))
    assert found.rouge_l == Score(0.75, 0.5, pytest.approx(0.2))
    assert mean([one]) == one


def test_mean_is_not_rounded() -> None:
    found = mean([score("a", "a c d"), score("a b", "a c d"), score("a b c", "a c d")]).rouge1
    assert found.precision == pytest.approx((1.0 + 0.5 + 0.66667) / 3, abs=1e-12)
    assert found.recall == pytest.approx((0.33333 + 0.33333 + 0.66667) / 3, abs=1e-12)
    assert found.f1 == pytest.approx((0.5 + 0.4 + 0.66667) / 3, abs=1e-12)


def test_mean_has_no_order() -> None:
    one, two, three = (Rouge(*[Score(x, x, x)] * 3) for x in (0.1, 0.2, 0.3))
    assert 0.1 + 0.2 + 0.3 != 0.3 + 0.2 + 0.1
    assert mean([one, two, three]) == mean([three, two, one])


def test_mean_of_nothing() -> None:
    with pytest.raises(ValueError, match="at least one score"):
        mean([])


def test_mean_of_weighted() -> None:
    one, other = (rouge.score("a b", text, WEIGHTED) for text in ("a b", "x y"))
    assert one.rouge_w is not None
    found = mean([one, other]).rouge_w
    assert found is not None
    assert found.precision == one.rouge_w.precision / 2
    assert mean([one, score("a b", "a b")]).rouge_w is None


# -- several pairs, several references ------------------------------------------------------------


def test_several_references() -> None:
    found = score("a b c", ["a b", "c d e f"])
    assert found.rouge1 == Score(0.5, 0.5, 0.5)  # 2 + 1 of 3 + 3 and of 2 + 4
    assert found.rouge2 == Score(0.25, 0.25, 0.25)
    assert score("a b", ["a b", "a b"]) == score("a b", "a b") == score("a b", ["a b"])


def test_a_reference_without_words_among_others() -> None:
    """It has nothing to recall, and what the headline has counts once more."""
    found = rouge.score("a b", ["a b", "..."], WEIGHTED)
    assert found.rouge1 == Score(0.5, 1.0, 0.66667)
    alone = rouge.score("a b", "a b", WEIGHTED).rouge_w
    assert alone is not None
    assert found.rouge_w is not None
    assert found.rouge_w.recall == alone.recall
    assert found.rouge_w.precision == 0.56123  # one half to the power of 1 / 1.2


def test_all_as_one_by_one() -> None:
    candidates, references = ["a b", "c", "", "d e"], ["a", ["c", "d"], "x", ("d e",)]
    found = score_all(candidates, references, WEIGHTED)
    pairs = zip(candidates, references, strict=True)
    assert found == [rouge.score(*pair, WEIGHTED) for pair in pairs]
    assert score_all([], [], PLAIN) == []


def test_progress() -> None:
    reports: list[tuple[str, int, int | None]] = []
    score_all(["a"] * 1200, ["a"] * 1200, PLAIN, lambda *report: reports.append(report))
    assert reports == [("score", 500, 1200), ("score", 1000, 1200), ("score", 1200, 1200)]


def test_other_numbers_of_texts() -> None:
    with pytest.raises(ScoreError, match="2 headlines but 1 references"):
        score_all(["a", "b"], ["a"], PLAIN)
    with pytest.raises(ScoreError, match="no reference for the headline 'b'"):
        score_all(["a", "b"], ["a", []], PLAIN)


# -- signature ------------------------------------------------------------------------------------


def test_signature() -> None:
    assert signature(Settings(), 1) == (
        "metric:ROUGE-1.5.5|references:1|stem:porter+wordnet2.0|normalise:ascii-lower,a-z0-9"
        f"|unknown:keep|bytes:all|w:no|version:ledeline-{__version__}"
    )
    other = Settings(stem=False, weighted=True, limit_bytes=75, unknown="drop")
    assert signature(other, 4) == (
        "metric:ROUGE-1.5.5|references:4|stem:no|normalise:ascii-lower,a-z0-9"
        f"|unknown:drop|bytes:75|w:1.2|version:ledeline-{__version__}"
    )
    assert "|references:varied|" in signature(PLAIN, 0)


def test_signatures_tell_settings_apart() -> None:
    settings = [
        Settings(stem=stem, weighted=weighted, limit_bytes=limit, unknown=unknown)
        for stem in (True, False)
        for weighted in (True, False)
        for limit in (None, 75, 100)
        for unknown in ("keep", "drop", "strict")
    ]
    assert len({signature(each, 1) for each in settings}) == len(settings)


def test_exports() -> None:
    exports = {"Rouge", "Score", "Settings", "mean", "score", "score_all", "signature"}
    assert set(rouge.__all__) == exports
    assert all(hasattr(rouge, name) for name in exports)
