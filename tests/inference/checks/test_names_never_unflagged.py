"""The hard rule: a name or place that the lede does not have is never printed unflagged."""

import random

import pytest

from ledeline.inference.checks.rules import RuleChecker, rule_doubts

# Who, without a name; what happened to them in a lede; the same in a headline.
PEOPLE = (
    "The prime minister",
    "A singer",
    "The 62-year-old actor",
    "He",
    "She",
    "The president",
    "A former police officer",
    "The company's chief executive",
    "A retired teacher from the north",
    "The head of the central bank",
    "The team's manager",
    "Her lawyer",
    "The opposition leader",
    "A schoolboy",
    "The couple",
)
EVENTS = (
    ("has been taken to hospital with chest pains.", "taken to hospital with chest pains"),
    ("was found guilty of all charges on Tuesday.", "found guilty of all charges"),
    ("died peacefully at home on Sunday, the family said.", "dies peacefully at home"),
    ("will step down at the end of the season.", "to step down at end of season"),
    ("has won a seat on the city council after a recount.", "wins city council seat after recount"),
    ("was arrested after a car chase through the town.", "arrested after car chase"),
    ("said that taxes would rise next spring.", "says taxes would rise next spring"),
    ("signed a deal worth millions with a rival.", "signs deal worth millions with rival"),
    ("apologised for comments made on the radio.", "apologises for radio comments"),
    ("was seen at the airport with two suitcases.", "seen at airport with two suitcases"),
)
FIRST = (
    "Boris Donald Nicola Kamala Elon Marta Ingrid Pavel Yusuf Chidi Aisha Rafael Hiroshi Siobhan "
    "Wojciech Lakshmi Gareth Tamsin Dmitri Beyonce Oluwaseun Jean-Luc Mark Grant Rose"
).split()
LAST = (
    "Johnson Trump Sturgeon Harris Musk Kowalski Lindqvist Novotny Demir Okafor Rahman Duarte "
    "Tanaka O'Brien Szymanski Iyer Pritchard Penhaligon Volkov Knowles Adeyemi Picard Zuckerberg "
    "Macron McDonnell DeSouza Brown Wood Hunt"
).split()
ALONE = "Walmart Toyota Netanyahu Putin Zelensky Rihanna Lufthansa Kardashian Ronaldo".split()
PLACES = "Nigeria London Texas Moscow Ukraine Melbourne India Scotland Chicago Brazil".split()
WORDS = {"Mark", "Grant", "Rose", "Brown", "Wood", "Hunt"}  # names that are words, too
SMALL = {"to", "of", "at", "on", "with", "after", "for", "in"}


def title_case(text):
    words = text.split()
    return " ".join(word if word in SMALL else word[0].upper() + word[1:] for word in words)


def nameless_pairs(number, seed):
    """Ledes without names, each with headlines that name somebody, and the name."""
    random_ = random.Random(seed)
    for _ in range(number):
        told, short = random_.choice(EVENTS)
        lede = f"{random_.choice(PEOPLE)} {told}"
        name = f"{random_.choice(FIRST)} {random_.choice(LAST)}"
        if random_.random() < 0.2:
            name = random_.choice(ALONE)
        sentence = random_.choice(
            (f"{name} {short}", f"{name}'s brother {short}", f"Singer {name} {short}")
        )
        yield lede, sentence, name
        yield lede, title_case(sentence), name
        yield lede, sentence.upper(), name.upper()
        if not any(part in WORDS for part in name.split()):
            yield lede, sentence.lower(), name.lower()


def test_a_name_that_the_lede_does_not_have_is_doubted():
    seen = 0
    for lede, headline, name in nameless_pairs(500, seed=20):
        doubts = [doubt for doubt in rule_doubts(lede, headline) if doubt.kind == "name"]
        start = headline.index(name)
        assert any(doubt.start < start + len(name) and start < doubt.end for doubt in doubts), (
            lede,
            headline,
        )
        seen += 1
    assert seen > 1500


def test_all_words_of_an_unknown_name_are_in_the_doubt():
    for lede, headline, name in nameless_pairs(500, seed=21):
        if any(part.capitalize() in WORDS for part in name.split()):
            continue  # that one of the two is doubted must do
        checker = RuleChecker(lede)
        named = [doubt.words for doubt in checker.doubts(headline) if doubt.kind == "name"]
        assert any(name.split()[-1] in words for words in named), (lede, headline)
        assert any(name.split()[0] in words for words in named), (lede, headline)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("form", [str, title_case])
def test_a_place_that_the_lede_does_not_have_is_doubted(place, form):
    for told, short in EVENTS:
        lede = f"The mayor {told}"
        for headline in (
            f"{place}: Mayor {short}",
            f"Mayor {short} in {place}",
            f"{place} mayor {short}",
        ):
            doubts = rule_doubts(lede, form(headline))
            assert any(doubt.words == place and doubt.kind == "place" for doubt in doubts), headline


@pytest.mark.parametrize(
    ("lede", "headline", "words"),
    [
        (
            "The prime minister has been taken to hospital with chest pains.",
            "Boris Johnson taken to hospital with chest pains",
            "Boris Johnson",
        ),
        (
            "He was found guilty of all charges on Tuesday.",
            "Donald Trump Found Guilty of All Charges",
            "Donald Trump",
        ),
        ("The 62-year-old singer died.", "Nicola Sturgeon, 62, dies", "Nicola Sturgeon"),
        ("Mr Kowalski was arrested.", "Pavel Kowalski arrested", "Pavel"),
        ("Calvin Harris will tour again.", "Kamala Harris to tour again", "Kamala"),
    ],
)
def test_the_doubt_says_whom_the_lede_does_not_name(lede, headline, words):
    (doubt,) = [doubt for doubt in rule_doubts(lede, headline) if doubt.kind == "name"]
    assert doubt.words == words
    assert doubt.why == f"the lede does not name {words}"
    assert headline[doubt.start : doubt.end] == words


@pytest.mark.parametrize(
    ("lede", "headline", "doubted"),
    [
        ("Prices rose up suddenly.", "US prices rise suddenly", ["US"]),
        ("The use of unusual kettles rose.", "UK kettle use rises", ["UK"]),
        ("The United States sent aid.", "US sends aid", []),
        ("A man was held in Los Angeles.", "LA man held", []),
        ("Work on artificial intelligence grew.", "AI work grows", []),
    ],
)
def test_first_letters_make_a_place_only_of_words_with_capitals(lede, headline, doubted):
    found = [
        doubt.words for doubt in rule_doubts(lede, headline) if doubt.kind in ("place", "name")
    ]
    assert found == doubted
