"""What a lede lets the bundled model write: numbers and names, in whatever form."""

import pytest

from ledeline.core.shipped import SHIPPED
from ledeline.inference.checks.lede_vocabulary import LedeVocabulary
from ledeline.text.subwords import BOS, EOS, PAD, UNK
from ledeline.text.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.load(SHIPPED)


@pytest.fixture(scope="module")
def can_write(tokenizer):
    """Whether the headline of a lede may have some words."""
    vocabulary = LedeVocabulary(tokenizer)

    def told(lede, words):
        ids = tokenizer.encode(tokenizer.headline_words(words))
        assert ids
        return set(ids).isdisjoint(vocabulary.forbidden(lede))

    return told


MILLIONS = "About 282 million people went hungry last year."
JOBS = "Some 1,234 jobs will go."
TWO = "Two men were hurt on Sunday."


@pytest.mark.parametrize(
    ("lede", "allowed", "forbidden"),
    [
        (MILLIONS, ["282m", "282 million", "280m", "280 million"], ["28", "28 million", "300m"]),
        (MILLIONS, ["282", "1", "one"], ["281m", "2023", "two", "ten", "8"]),
        (TWO, ["2", "two", "Two", "2nd"], ["20", "3", "three", "Three", "22"]),
        (JOBS, ["1,234", "1,200", "1234"], ["1,300", "1,000", "12", "200,000"]),
        ("Covid cases fell.", ["Covid-19"], ["Covid-18", "20"]),
        ("The coronavirus spread.", ["Covid-19"], ["18"]),
        ("The mill closed.", ["1", "One"], ["19", "2", "1999", "2020"]),
        ("The mill closed in 1999.", ["1999"], ["1998", "2000s", "2019"]),
        ("The mill closes in 2024.", ["2024"], ["2023", "2025", "25"]),
        ("Sales rose 12 per cent.", ["12%", "12 pct"], ["13%", "15"]),
        ("A firm paid $1.5 billion.", ["$1.5bn", "$1.5 billion"], ["1.6bn", "15"]),
        ("Twenty-one sheep escaped.", ["21"], ["20", "22"]),
        ("It cost 50 million rupees.", ["5 crore", "50m"], ["7 crore"]),
        ("Three-quarters of pupils passed.", ["three-quarters", "75%"], ["two", "four"]),
        ("It cost Rs 5 crore.", ["5 crore", "50 million"], ["6 crore"]),
        ("Rovers won the second leg 3-2.", ["2nd", "3-2"], ["4-2", "4th"]),
        ("A man, 62, was found.", ["62", "62-year-old"], ["26", "63"]),
    ],
)
def test_numbers(can_write, lede, allowed, forbidden):
    assert [words for words in allowed if not can_write(lede, words)] == []
    assert [words for words in forbidden if can_write(lede, words)] == []


NOBODY = "The prime minister has been taken to hospital with chest pains."


@pytest.mark.parametrize(
    ("lede", "allowed", "forbidden"),
    [
        (NOBODY, [], ["Boris", "Boris Johnson", "Donald", "Trump", "Biden", "Starmer"]),
        (NOBODY, [], ["London", "British", "Britain", "India", "Texas", "Russian"]),
        ("Boris Johnson is in hospital.", ["Boris", "Johnson", "Boris Johnson"], ["Donald"]),
        ("Mr Johnson is in hospital.", ["Boris Johnson"], ["Donald", "Trump"]),
        ("Trump spoke.", ["Donald Trump"], ["Boris", "Biden"]),
        ("The UK voted.", ["British", "Britain"], ["French", "German"]),
        ("French police arrested a man.", ["France", "French"], ["Paris", "German"]),
        ("Police in Kyiv arrested a man.", ["Ukraine", "Ukrainian"], ["Russia", "Russian"]),
        ("A Scot won the race.", ["Scottish", "Scotland"], ["Irish"]),
        ("BORIS JOHNSON IS IN HOSPITAL", ["Boris Johnson"], ["Donald"]),
    ],
)
def test_names(can_write, lede, allowed, forbidden):
    assert [words for words in allowed if not can_write(lede, words)] == []
    assert [words for words in forbidden if can_write(lede, words)] == []


@pytest.mark.parametrize(
    "words",
    [
        "Police Court Judge Minister Prime Government Hospital School",
        "Man Woman Officers Death Fire Murder Charged Arrested Killed",
        "Monday Sunday July March May Will House White",
        "Mark Grant Rose Wood Hunt",  # names that are words, too
    ],
)
@pytest.mark.parametrize("lede", ["Rain fell.", NOBODY, "Boris Johnson resigned."])
def test_common_words_in_title_case_are_never_forbidden(can_write, lede, words):
    assert [word for word in words.split() if not can_write(lede, word)] == []


def test_what_any_headline_needs_is_never_forbidden(tokenizer):
    """Marks of punctuation, pieces of words, and the end."""
    forbidden = set(LedeVocabulary(tokenizer).forbidden("Rain fell."))
    assert forbidden.isdisjoint({PAD, UNK, BOS, EOS})
    for number, text in enumerate(tokenizer.types):
        if not any(char.isdigit() for char in text) and (
            text.endswith("@@") or text.islower() or not any(map(str.isalpha, text))
        ):
            is_number = text.casefold() in NUMBERS
            assert number not in forbidden or is_number, text


NUMBERS = "two three four five six seven eight nine ten eleven twelve thirteen fifteen".split() + (
    "fourteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty".split()
)


def test_a_lede_may_always_be_repeated(can_write):
    """Word for word: a constraint that forbids the lede's own words is wrong."""
    for lede in (
        MILLIONS,
        JOBS,
        TWO,
        "Joe Biden met Volodymyr Zelensky in Kyiv, Ukraine, on 20 February 2023.",
        "In the 1990s about 3.5 per cent of £2,500,000 went to 17-year-old Emma O'Brien's U.S. club.",
        "Three-quarters of the G20 backed Boeing's 737 MAX, the A320neo and 5G by a 2/3 vote.",
        "Manchester United beat Real Madrid 3-0 in the UEFA Champions League at 7.45pm.",
    ):
        assert can_write(lede, lede), lede


def test_ids_are_sorted_and_the_same_each_time(tokenizer):
    vocabulary = LedeVocabulary(tokenizer)
    first = vocabulary.forbidden(MILLIONS)
    vocabulary.forbidden("Boris Johnson, 2, is in Texas.")
    assert vocabulary.forbidden(MILLIONS) == first == sorted(set(first))


@pytest.mark.parametrize(
    "lede",
    ["a" * 10**6, "." * 10**6, "1" * 10**5, "1," * 10**5, "$" + "9" * 400 + " million were lost."],
    ids=["letters", "full stops", "digits", "groups", "an amount"],
)
def test_long_words_take_no_longer_than_others(lede, can_write):
    """Each once took minutes, or had no finite value."""
    assert can_write(lede, "one")
    assert not can_write(lede, "62")
