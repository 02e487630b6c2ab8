"""Odd generation: the paper's examples, and counting by loops."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledeline.evaluation.odd_words import (
    OddWords,
    count_odd_words,
    irrelevant_places,
    repeating_places,
    total_odd_words,
)
from ledeline.text.function_words import FUNCTION_WORDS, is_content
from ledeline.text.profiles import NATURAL, PAPER

words = st.lists(
    st.sampled_from("the The oil Oil OIL of ## 5 , straße STRASSE".split()), max_size=9
)


def slow_count(output: list[str], reference: list[str], source: list[str]) -> OddWords:
    repeating = irrelevant = 0
    for word in set(output):
        excess = output.count(word) - reference.count(word)
        if output.count(word) > 1 and excess > 0:
            repeating += excess
    relevant = [word.casefold() for word in source + reference]
    for word in output:
        if word not in {"the", "The", "of", "##", ","} and word.casefold() not in relevant:
            irrelevant += 1
    shorter = len(reference) - len(output)
    return OddWords(repeating, shorter if shorter > 0 else 0, irrelevant)


@given(words, words, words)
def test_count(output: list[str], reference: list[str], source: list[str]) -> None:
    assert count_odd_words(output, reference, source) == slow_count(output, reference, source)


@given(words, words, words)
def test_the_words_are_those_counted(
    output: list[str], reference: list[str], source: list[str]
) -> None:
    repeating = {output[place] for place in repeating_places(output, reference)}
    excess = {word: output.count(word) - reference.count(word) for word in repeating}
    assert sum(excess.values()) == count_odd_words(output, reference).repeating
    assert all(output.count(word) > 1 and excess[word] > 0 for word in repeating)
    irrelevant = {output[place] for place in irrelevant_places(output, reference, source)}
    assert (
        sum(map(output.count, irrelevant)) == count_odd_words(output, reference, source).irrelevant
    )


@pytest.mark.parametrize(
    ("output", "reference", "places"),
    [
        (
            "duran duran duran duran",
            "duran duran group",
            [2, 3],
        ),  # the first two are as they should
        ("gas oil gas oil oil", "oil", [0, 2, 3, 4]),
        ("oil oil", "oil oil", []),
        ("oil gas", "", []),
        ("", "oil", []),
    ],
)
def test_where_the_repeating_words_stand(output: str, reference: str, places: list[int]) -> None:
    assert repeating_places(output.split(), reference.split()) == places


def test_where_the_irrelevant_words_stand() -> None:
    output, reference, source = "the Zebra fell in Oil zebra".split(), ["oil"], ["FELL"]
    assert irrelevant_places(output, reference, source) == [1, 5]


@pytest.mark.parametrize(
    ("output", "reference", "repeating", "lacking"),
    [
        # From the paper.
        ("duran duran duran duran", "duran duran group fashionable again", 2, 1),
        ("duran duran fashionably cool once again", "duran duran group fashionable again", 0, 0),
        (
            "college college colleges learn to get ideas for tech center",
            "community college considers building $ ## million technology",
            1,
            0,
        ),
        # Not in the reference at all: the first occurrence counts too.
        ("oil oil", "gas prices", 2, 0),
        ("oil oil", "oil prices", 1, 0),
        ("oil oil", "oil oil oil", 0, 1),
        ("oil", "gas", 0, 0),  # once is no repetition
        ("oil oil gas gas", "oil oil oil oil gas", 1, 1),  # what oil has to spare is not gas's
        ("oil Oil", "gas prices", 0, 0),
        ("", "", 0, 0),
        ("", "gas prices rise", 0, 3),
        ("gas prices rise", "", 0, 0),
        ("oil oil oil", "", 3, 0),
    ],
)
def test_by_hand(output: str, reference: str, repeating: int, lacking: int) -> None:
    assert count_odd_words(output.split(), reference.split()) == OddWords(repeating, lacking, None)


@pytest.mark.parametrize(
    ("output", "irrelevant"),
    [
        ("Acme profits fall", 0),  # reference, source, source
        ("ACME Profits FALL", 0),
        ("zebra profits fall in spain", 2),
        ("zebra zebra zebra", 3),  # every occurrence
        ("the of and 's n't -lrb- , ## $ --", 0),
        ("5", 1),
        ("é", 1),
        ("fal", 1),  # whole words only
        ("", 0),
    ],
)
def test_irrelevant_by_hand(output: str, irrelevant: int) -> None:
    reference, source = "Acme reports loss".split(), "Profits at the maker will fall".split()
    assert count_odd_words(output.split(), reference, source).irrelevant == irrelevant


def test_an_empty_source_is_a_source() -> None:
    assert count_odd_words(["zebra", "oil"], ["oil"], []).irrelevant == 1
    assert count_odd_words(["zebra", "oil"], ["oil"]).irrelevant is None


@pytest.mark.parametrize("word", ["oil", "Oil", "5", "u.s.", "us", "##-year-old", "漢", "<unk>"])
def test_content_words(word: str) -> None:
    assert is_content(word)


@pytest.mark.parametrize(
    "word", ["", "the", "THE", "'s", "’s", "don’t", "##", "--", "…", "$", "😀"]
)
def test_no_content_words(word: str) -> None:
    assert not is_content(word)


def test_function_words_are_as_a_profile_writes_them() -> None:
    assert 100 <= len(FUNCTION_WORDS) <= 200
    for word in FUNCTION_WORDS:
        assert word == word.casefold()
        natural = NATURAL.plain(NATURAL.words(f"it {word} it"))
        assert word in PAPER.words(f"it {word} it") or word in natural


def test_total() -> None:
    assert total_odd_words([]) == OddWords(0, 0, 0)
    assert total_odd_words([OddWords(1, 2, 3)]) == OddWords(1, 2, 3)
    assert total_odd_words(iter([OddWords(1, 2, 3), OddWords(10, 20, 30)])) == OddWords(11, 22, 33)
    assert total_odd_words([OddWords(1, 2, None), OddWords(10, 20, 30)]) == OddWords(11, 22, None)
    assert total_odd_words([OddWords(1, 2, 3), OddWords(10, 20, None)]) == OddWords(11, 22, None)
