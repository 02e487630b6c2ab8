"""ROUGE: slow, obvious references and examples worked by hand."""

import dataclasses
import random
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ledeline import rouge
from ledeline.rouge import Rouge, Score, mean, score
from ledeline.rouge.statistics import Overlap, gather, lcs_length, ngram_overlap, tokens

NOTHING = Score(0.0, 0.0, 0.0)
KELVIN = "\u212a"  # lower-cases to k in Unicode
DOTTED_I = "\u0130"  # lower-cases to i and a mark

words = st.lists(st.sampled_from("abcde"), max_size=12)
nasty_texts = st.text(
    st.sampled_from(f"abkKZ09 --$#.<>'_\t\n\r\f\0\u0085\u2028\ud800é{KELVIN}{DOTTED_I}ſ漢٣😀"),
    max_size=30,
)


# -- slow references ------------------------------------------------------------------------------


def slow_tokens(text: str) -> list[str]:
    """The row "normalise" of the specification, step by step, on bytes."""
    spaced = b""
    for byte in text.encode("utf-8", "surrogatepass"):
        if ord("A") <= byte <= ord("Z"):
            byte += ord("a") - ord("A")
        if byte == ord("-"):
            spaced += b" - "
        elif ord("a") <= byte <= ord("z") or ord("0") <= byte <= ord("9"):
            spaced += bytes([byte])
        else:
            spaced += b" "
    found = [token.decode() for token in spaced.split(b" ") if token]
    return [token for token in found if token[0] in "abcdefghijklmnopqrstuvwxyz0123456789$"]


def slow_lcs(one: list[str], other: list[str]) -> int:
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one, start=1):
        for j, b in enumerate(other, start=1):
            longest = max(table[i - 1][j], table[i][j - 1])
            table[i][j] = table[i - 1][j - 1] + 1 if a == b else longest
    return table[-1][-1]


def slow_overlap(candidate: list[str], reference: list[str], n: int) -> tuple[int, int, int]:
    ours = [tuple(candidate[k : k + n]) for k in range(len(candidate)) if k + n <= len(candidate)]
    theirs = [tuple(reference[k : k + n]) for k in range(len(reference)) if k + n <= len(reference)]
    left = theirs.copy()
    num_matches = 0
    for gram in ours:
        if gram in left:
            left.remove(gram)
            num_matches += 1
    return num_matches, len(ours), len(theirs)


def printed(number: Fraction | float) -> float:
    return float(f"{float(number):.5f}")


def slow_score(num_matches: int, num_candidate: int, num_reference: int) -> Score:
    if num_matches == 0:
        return NOTHING
    p = printed(Fraction(num_matches, num_candidate))
    r = printed(Fraction(num_matches, num_reference))
    return Score(p, r, printed(p * r / (0.5 * p + 0.5 * r)))


# -- text -> tokens -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        (" \t ", ""),
        ("# . , - -- $ '' <> ...", ""),
        ("u.s. stocks", "u s stocks"),
        ("<unk> UNK", "unk unk"),
        ("well-known --x- -5", "well known x 5"),
        ("$3.4bn #1 ##", "3 4bn 1"),
        ("Japan's can't", "japan s can t"),
        ("snake_case", "snake case"),
        (f"300{KELVIN} {KELVIN}elvin {DOTTED_I}x", "300 elvin x"),
        ("café naïve", "caf na ve"),
        ("漢字 ٣ ²", ""),
        ("one\u2028two\u0085three\ffour\rfive\nsix", "one two three four five six"),
        ("a\0b\ud800c", "a b c"),
        ("ABCXYZ[@`{", "abcxyz"),
    ],
)
def test_tokens(text: str, expected: str) -> None:
    assert tokens(text) == expected.split()


@given(nasty_texts)
@example(KELVIN)
def test_tokens_as_specified(text: str) -> None:
    assert tokens(text) == slow_tokens(text)


def test_tokens_of_every_byte() -> None:
    for number in range(0x180):
        text = f"x{chr(number)}Y"
        assert tokens(text) == slow_tokens(text)


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


@given(words, words, st.integers(1, 4))
def test_ngrams(candidate: list[str], reference: list[str], n: int) -> None:
    assert ngram_overlap(candidate, reference, n) == slow_overlap(candidate, reference, n)


def test_matches_are_clipped() -> None:
    assert ngram_overlap("a a a a".split(), "a a b".split(), 1) == Overlap(2, 4, 3)
    assert ngram_overlap("a b".split(), "a a b b".split(), 1) == Overlap(2, 2, 4)
    assert ngram_overlap("a a a a".split(), "a a b".split(), 2) == Overlap(1, 3, 2)


def test_parts_of_the_statistics() -> None:
    statistics = gather("police kill the gunman", "the gunman was shot by police")
    assert statistics.rouge1 == Overlap(3, 4, 6)
    assert statistics.rouge2 == Overlap(1, 3, 5)
    assert statistics.rouge_l == Overlap(2, 4, 6)


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
    full = Score(1.0, 1.0, 1.0)
    assert score("word", "word") == Rouge(full, NOTHING, full)
    assert score("one word", "word").rouge2 == NOTHING


def test_marks_and_case_do_not_matter() -> None:
    full = Score(1.0, 1.0, 1.0)
    assert score("U.S. well-known $5", "u s Well Known 5") == Rouge(full, full, full)


def test_precision_is_of_the_candidate() -> None:
    one, other = score("a b", "a b c d"), score("a b c d", "a b")
    assert (one.rouge1.precision, one.rouge1.recall) == (1.0, 0.5)
    assert (other.rouge_l.precision, other.rouge_l.recall) == (0.5, 1.0)
    assert one.rouge2 == Score(1.0, 0.33333, 0.5)


@given(nasty_texts, nasty_texts)
@example("a b c d e", "a b c d e f g")
def test_score(candidate: str, reference: str) -> None:
    ours, theirs = slow_tokens(candidate), slow_tokens(reference)
    lcs = slow_lcs(ours, theirs)
    assert score(candidate, reference) == Rouge(
        slow_score(*slow_overlap(ours, theirs, 1)),
        slow_score(*slow_overlap(ours, theirs, 2)),
        slow_score(lcs, len(ours), len(theirs)),
    )


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
    with pytest.raises(ValueError, match="no scores"):
        mean([])


def test_exports() -> None:
    assert set(rouge.__all__) == {"Rouge", "Score", "mean", "score"}
