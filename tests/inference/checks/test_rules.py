"""Each rule on pairs that it must doubt, and on pairs that it must not."""

import pytest

from ledeline.inference.checks.doubt import DOUBT_KINDS
from ledeline.inference.checks.pair_words import Lede, PairWords
from ledeline.inference.checks.rules import RULES, RuleChecker, rule_doubts


def found(rule, lede, headline):
    return [(doubt.words, doubt.kind) for doubt in RULES[rule](PairWords(Lede(lede), headline))]


@pytest.mark.parametrize(
    ("lede", "headline", "doubted"),
    [
        ("About 282 million people went hungry.", "300 million people hungry", []),
        ("About 282 million people went hungry.", "280 million people hungry", []),
        ("About 282 million people went hungry.", "290 million people hungry", ["290 million"]),
        ("About 282 million people went hungry.", "282 people hungry", ["282"]),
        ("The club paid £1,500,000.", "Club pays £1.5m", []),
        ("The club paid £1,500,000.", "Club pays $1.5m", ["$1.5m"]),
        ("Sales rose 12 per cent.", "Sales up 12%", []),
        ("Sales rose 12 per cent.", "Sales up 12 pct", []),
        ("Sales rose by 12 units.", "Sales up 12%", ["12%"]),
        ("Twenty-one sheep escaped.", "21 sheep escape", []),
        ("Twenty-one sheep escaped.", "Two dozen sheep escape", ["Two dozen"]),
        ("Twenty-four sheep escaped.", "Two dozen sheep escape", []),
        ("Some 297 jobs will go.", "Nearly 300 jobs to go", []),
        ("Some 297 jobs will go.", "Over 400 jobs to go", ["400"]),
        ("A couple were rescued.", "Two rescued", []),
        ("Half of all pupils passed.", "50% of pupils pass", []),
        ("Two thirds of pupils passed.", "2/3 of pupils pass", []),
        ("Two thirds of pupils passed.", "2-thirds of pupils pass", []),
        ("Rovers won the second leg.", "Rovers win 2nd leg", []),
        ("Rovers won the second leg.", "Rovers win third leg", ["third"]),
        ("Rovers beat United 3-2.", "Rovers 3-2 United", []),
        ("Rovers beat United 3-2.", "Rovers 3-1 United", ["1"]),
        ("A man, 62, was found.", "62-year-old man found", []),
        ("A man, 62, was found.", "26-year-old man found", ["26"]),
        ("Covid cases fell.", "Covid-19 cases fall", []),
        ("Between three and four billion seeds grew.", "3 billion seeds grow", []),
        ("The tax costs Rs 5 crore.", "Tax costs Rs 5cr", []),
        ("Hundreds fled.", "Hundreds of thousands flee", ["Hundreds of thousands"]),
        ("Some 340 people fled.", "Hundreds flee", []),
        ("The third season is out.", "Season 3 is out", []),
        ("He was hurt on the Fourth of July.", "Man hurt on Fourth of July", []),
        ("The mill closed.", "Mill closes in 1999", ["1999"]),
    ],
)
def test_numbers_by_value(lede, headline, doubted):
    assert [words for words, _ in found("numbers", lede, headline)] == doubted


@pytest.mark.parametrize(
    ("lede", "headline", "doubted"),
    [
        ("Duarte scored two goals in four games.", "Duarte scores four goals", ["four"]),
        ("Duarte scored two goals in four games.", "Duarte scores 2 goals", []),
        ("Duarte scored two goals in four games.", "Duarte has four stitches", []),
        ("The 13-year-old won 2 cups.", "Boy, 13, cups in hand", []),
    ],
)
def test_numbers_count_the_same_things(lede, headline, doubted):
    assert [words for words, _ in found("counts", lede, headline)] == doubted


@pytest.mark.parametrize(
    ("lede", "headline", "why"),
    [
        ("About 282 million went hungry.", "290 million hungry", "the lede has 282 million"),
        ("Nobody came.", "12 come", "the lede has no number"),
        ("In all 40 came for 3 days.", "41 come", "the lede has 40"),
    ],
)
def test_the_nearest_number_is_quoted(lede, headline, why):
    assert [doubt.why for doubt in rule_doubts(lede, headline) if doubt.kind == "number"] == [why]


@pytest.mark.parametrize(
    ("lede", "headline", "doubted"),
    [
        ("The United States will send aid.", "U.S. to send aid", []),
        ("American troops left.", "US troops leave", []),
        ("Britain will vote in May.", "UK to vote in May", []),
        ("Moscow denied it.", "Russia denies it", []),
        ("Officials in Nairobi agreed.", "Kenya officials agree", []),
        ("Officials in Kenya agreed.", "Nairobi officials agree", [("Nairobi", "place")]),
        ("The Food and Drug Administration agreed.", "FDA agrees", []),
        ("The Food and Drug Administration agreed.", "FBI agrees", [("FBI", "name")]),
        ("Trump spoke for an hour.", "Donald Trump speaks for an hour", []),
        ("President Trump spoke for an hour.", "Donald Trump speaks for an hour", []),
        ("Ivanka Trump spoke.", "Donald Trump speaks", [("Donald", "name")]),
        ("A judge in Harris County agreed.", "Kamala Harris agrees", [("Kamala", "name")]),
        ("Zelenskyy arrived.", "Zelensky arrives", []),
        ("The app TikTok is down.", "Tik Tok down", []),
        ("Jurek Malinowski resigned.", "Malinowski resigns", []),
        ("A parked van was stolen.", "Parker steals van", [("Parker", "name")]),
        ("It was a challenge.", "Challenge for Allen", [("Allen", "name")]),
        ("The mayor opened a bridge.", "Mayor Opens Bridge Amid Rumours of Trouble", []),
        ("The mayor opened a bridge.", "Dutch mayor opens bridge", [("Dutch", "place")]),
        ("The mayor opened a bridge.", "Africa: Mayor opens bridge", [("Africa", "place")]),
        ("The singer cancelled a tour.", "Swift cancels tour", [("Swift", "name")]),
        ("The rescue was fast.", "Swift rescue", []),
        ("Fires burn in LA.", "Fires burn in Los Angeles", []),
        ("Osterby Mutual Bank failed.", "OsMu fails", []),
        ("She won.", "Ursula von der Leyen wins", [("Ursula von der Leyen", "name")]),
        ("The minister's aide resigned.", "Kovac's aide resigns", [("Kovac", "name")]),
    ],
)
def test_names_and_places(lede, headline, doubted):
    assert found("names", lede, headline) == doubted


@pytest.mark.parametrize(
    ("lede", "headline", "doubted"),
    [
        ("The bank may cut rates in June.", "Bank cuts rates", ["cuts"]),
        ("The bank may cut rates in June.", "Bank may cut rates", []),
        ("The bank may cut rates in June.", "Bank to cut rates", []),
        ("The bank may cut rates in June.", "Bank cuts rates?", []),
        ("He reportedly sold the club.", "He sells club", ["sells"]),
        ("He reportedly sold the club.", "He sells club: report", []),
        ("Crews are trying to rescue whales.", "Crews rescue whales", ["rescue"]),
        ("Crews are trying to rescue whales.", "Crews try to rescue whales", []),
        ("She is accused of stealing a van.", "She stole a van", ["stole"]),
        ("She is accused of stealing a van.", "She is charged with stealing a van", []),
        ("The bank cut rates and may cut jobs.", "Bank cuts rates", []),
    ],
)
def test_what_may_be_is_no_fact(lede, headline, doubted):
    assert [words for words, _ in found("modality", lede, headline)] == doubted


@pytest.mark.parametrize(
    ("lede", "headline", "doubted"),
    [
        ("Talks failed to reach a deal.", "Talks reach deal", ["reach"]),
        ("Talks failed to reach a deal.", "Talks end without deal", []),
        ("The mayor did not open the bridge.", "Mayor opens bridge", ["opens"]),
        ("The mayor didn't open the bridge.", "Mayor refuses to open bridge", []),
        ("The mayor opened the bridge.", "Mayor does not open bridge", ["not"]),
        ("The mayor refused to open the bridge.", "Mayor will not open bridge", []),
    ],
)
def test_a_not_is_neither_lost_nor_added(lede, headline, doubted):
    assert [words for words, _ in found("negation", lede, headline)] == doubted


@pytest.mark.parametrize(
    ("lede", "headline", "doubted"),
    [
        ("The deputy prime minister resigned.", "Prime minister resigns", [("Prime", "role")]),
        ("The deputy prime minister resigned.", "Deputy prime minister resigns", []),
        ("A former coach was held.", "Ex-coach held", []),
        ("A former coach was held.", "Coach held", [("Coach", "role")]),
        ("His half-brother was held.", "Brother held", [("Brother", "role")]),
        ("A suspected thief was held.", "Thief held", [("Thief", "modality")]),
        ("A suspected thief was held.", "Alleged thief held", []),
        ("The acting head met the head of staff.", "Head meets staff", []),
    ],
)
def test_qualifiers_are_kept(lede, headline, doubted):
    assert found("qualifiers", lede, headline) == doubted


@pytest.mark.parametrize(
    ("lede", "headline", "doubted"),
    [
        ("Malinowski praised the work of Duarte.", "Duarte praises Malinowski", True),
        ("Malinowski praised the work of Duarte.", "Malinowski praises Duarte", False),
        ("Malinowski was praised by Duarte.", "Duarte praises Malinowski", False),
        ("Duarte was praised by Malinowski.", "Duarte praises Malinowski", True),
        ("Malinowski praised Duarte.", "Duarte thanks Malinowski", False),
        ("Malinowski and Duarte were praised.", "Duarte praises Malinowski", False),
    ],
)
def test_who_did_it_to_whom(lede, headline, doubted):
    expected = [("Duarte praises Malinowski", "role")] if doubted else []
    assert found("directions", lede, headline) == expected


@pytest.mark.parametrize(
    ("lede", "headline", "doubted"),
    [
        ("The vote is on Monday.", "Vote on Tuesday", ["Tuesday"]),
        ("The vote is on Monday.", "Vote on Mon", []),
        ("The vote is on Sept. 3.", "Vote in September", []),
        ("The vote is soon.", "Vote next week", ["next week"]),
        ("The vote is next week.", "Vote next week", []),
        ("The vote is soon.", "Vote may come soon", []),
    ],
)
def test_times(lede, headline, doubted):
    assert [words for words, _ in found("times", lede, headline)] == doubted


@pytest.mark.parametrize(
    ("lede", "headline", "doubted"),
    [
        (
            "She said the plan was bold.",
            "'This is a mad idea': She slams plan",
            ["'This is a mad idea'"],
        ),
        ('She called it a "bold plan".', "She hails 'bold plan'", []),
        ("She called it a plan.", "She's sure it's a plan that's bold", []),
    ],
)
def test_quotations(lede, headline, doubted):
    assert [words for words, _ in found("quotes", lede, headline)] == doubted


@pytest.mark.parametrize(
    ("lede", "headline", "doubted"),
    [
        ("The pilot is missing.", "Pilot dies", ["dies"]),
        ("The pilot's body was found.", "Pilot dies", []),
        ("Police questioned a man.", "Man arrested", ["arrested"]),
        ("Police detained a man.", "Man arrested", []),
        ("Rovers played on.", "Rovers win", ["win"]),
        ("Rovers were victorious, a victory for all.", "Rovers win", []),
    ],
)
def test_claims(lede, headline, doubted):
    assert [words for words, _ in found("claims", lede, headline)] == doubted


PAIR = (
    "The deputy mayor may open the £2m bridge, which is not finished, in spring.",
    "Helga Lindqvist opens £3m bridge in Texas on Friday: 'Nobody drowned today'",
)


def test_doubts_are_in_order_and_at_their_words():
    doubts = rule_doubts(*PAIR)
    assert [doubt.start for doubt in doubts] == sorted(doubt.start for doubt in doubts)
    assert {doubt.kind for doubt in doubts} == {
        "name",
        "modality",
        "number",
        "place",
        "time",
        "added",
    }
    for doubt in doubts:
        assert PAIR[1][doubt.start : doubt.end] == doubt.words
        assert doubt.kind in DOUBT_KINDS
        assert doubt.why


def test_a_checker_serves_many_headlines():
    checker = RuleChecker(PAIR[0])
    for headline in (PAIR[1], "Mayor opens bridge", PAIR[1]):
        assert checker.doubts(headline) == rule_doubts(PAIR[0], headline)


@pytest.mark.parametrize("lede", ["", "...", "1", "A", "ÆØ ¿?", "₹5", "U.S."])
@pytest.mark.parametrize(
    "headline", ["", "'", "-", "Ünïcödé 5%", "’s", "'a' 'b'", "İstanbul'da", "५ लोग"]
)
def test_odd_texts_do_no_harm(lede, headline):
    for doubt in rule_doubts(lede, headline):
        assert headline[doubt.start : doubt.end] == doubt.words


def test_a_headline_that_says_what_the_lede_says_has_no_doubt():
    lede = "Crews saved 40 sheep from a flooded farm near the village of Dunmore on Friday, police said."
    for headline in (
        "Crews save 40 sheep from flooded farm",
        "Crews Save Forty Sheep From Flooded Farm Near Dunmore",
        "40 sheep saved from flooded Dunmore farm, police say",
    ):
        assert rule_doubts(lede, headline) == []
