"""The checker: the same answer however it is asked, and doubts that stand where they say.

What the verifier thinks of a pair is not tested here, for that is measured; what rules decide is.
"""

import json

import pytest
import torch

from ledeline.core.errors import ArgumentError, ModelError
from ledeline.core.shipped import SHIPPED
from ledeline.core.steps import run_steps
from ledeline.inference.checks import checker as module
from ledeline.inference.checks.calibration import Calibration, log_odds
from ledeline.inference.checks.check import Check
from ledeline.inference.checks.checker import VERIFIER, Checker, bundled_generator
from ledeline.inference.checks.doubt import DOUBT_KINDS, Doubt
from ledeline.inference.checks.rules import rule_doubts
from ledeline.inference.checks.spans import verifier_doubts
from ledeline.inference.checks.verifier_folder import read_verifier
from ledeline.model.verifier_labels import KINDS
from ledeline.synth.newsroom import generate
from ledeline.text.tokenizer import Tokenizer

NEAR = 2e-4  # supports have four decimals

STORIES = list(generate(12, 20))
PAIRS = [(story.lede, story.headline) for story in STORIES]
WRONG = [  # and what a rule says
    ("About 282 million people went hungry.", "28m people hungry", "28m", "number"),
    ("The prime minister is in hospital.", "Boris Johnson in hospital", "Boris Johnson", "name"),
    ("The mayor was arrested.", "Mayor arrested in Texas", "Texas", "place"),
]

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def checker():
    return Checker.load()


@pytest.fixture(scope="module")
def bundle():
    return read_verifier(VERIFIER)


def made(bundle, **changes):
    """The bundled checker with another calibration."""
    calibration = bundle.calibration._replace(**changes)
    return Checker(
        bundled_generator().engine, Tokenizer.load(SHIPPED), bundle.verifier, calibration
    )


def test_a_model_of_other_sizes_is_refused(monkeypatch):
    """Where its model.json says that the verifier knows it."""
    bundled = bundled_generator()
    monkeypatch.setattr(bundled.engine, "size", 16)
    with pytest.raises(ModelError, match=r"other sizes .* model\.json says check"):
        Checker.load(bundled)


def assert_near(found, expected):
    """That checks are the same, but for the last digit of their support."""
    for one, other in zip(found, expected, strict=True):
        assert one.support == pytest.approx(other.support, abs=NEAR)
        assert one.value == pytest.approx(other.value, abs=1e-3)
        assert [doubt[:4] for doubt in one.doubts] == [doubt[:4] for doubt in other.doubts]


# --- the same answer --------------------------------------------------------------------------


def test_one_by_one_is_all_at_once(checker):
    expected = [checker.check(*pair) for pair in PAIRS]
    assert len({one.support for one in expected}) > 6
    assert_near(checker.check_batch(PAIRS), expected)
    assert_near(checker.check_batch(iter(PAIRS[::-1])), expected[::-1])
    assert_near(checker.check_batch(PAIRS * 2), expected * 2)  # more than are followed at once


def test_steps_give_what_pairs_give(checker):
    asked = [(lede, [headline, "Rain falls", headline]) for lede, headline in PAIRS[:3]]
    found = run_steps(checker.steps(asked))
    for (lede, headlines), checks in zip(asked, found, strict=True):
        assert_near(checks, [checker.check(lede, headline) for headline in headlines])


def test_steps_are_short(checker):
    """One for each sub-word that is followed, and for each headline that is judged."""
    lede, headline = PAIRS[0]
    ids = checker.read(lede, [headline]).headlines[0]
    assert len(list(checker.steps([(lede, [headline])]))) >= len(ids) + 2


def test_many_headlines_of_a_lede_are_judged_as_each_alone(checker):
    lede = PAIRS[0][0]
    headlines = [headline for _, headline in PAIRS] * 8  # more than are judged at once
    (found,) = run_steps(checker.steps([(lede, headlines)]))
    expected = [checker.check(lede, headline) for _, headline in PAIRS]
    assert_near(found, expected * 8)


def test_the_function_is_the_checker(checker, monkeypatch):
    monkeypatch.setattr(module, "_shared_checker", lambda: checker)
    assert module.check(*PAIRS[0]) == checker.check(*PAIRS[0])


def test_no_pairs_give_no_checks(checker):
    assert checker.check_batch([]) == []
    assert run_steps(checker.steps([])) == []
    assert run_steps(checker.steps([("Rain fell.", [])])) == [[]]


# --- what cannot be checked ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lede", "headline"), [("", "Rain"), ("Rain fell.", ""), ("  \n", "Rain"), ("Rain fell.", " ")]
)
def test_without_words_there_is_no_support(checker, lede, headline):
    assert checker.check(lede, headline) == Check(None)
    among = checker.check_batch([PAIRS[0], (lede, headline), PAIRS[1]])
    assert [one.support is None for one in among] == [False, True, False]
    assert_near([among[0], among[2]], [checker.check(*pair) for pair in PAIRS[:2]])


def test_an_empty_headline_among_others_has_no_support(checker):
    lede, headline = PAIRS[0]
    (found,) = run_steps(checker.steps([(lede, ["", headline, " "])]))
    assert [one.support is None for one in found] == [True, False, True]
    assert_near(found[1:2], [checker.check(lede, headline)])


@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [
        ([(1, "Rain")], "the lede of pair 1 is of type int; pass a str"),
        ([PAIRS[0], ("Rain", None)], "the headline of pair 2 is of type NoneType; pass a str"),
        ([("Rain", b"Rain")], "the headline of pair 1 is of type bytes; pass a str"),
        ([("Rain",)], "pair 1 is not a lede and a headline"),
        ([("a", "b", "c")], "pair 1 is not a lede and a headline"),
        ([None], "pair 1 is not a lede and a headline"),
        (["ab"], "pair 1 is not a lede and a headline"),  # not its two letters
        ([{"lede": "a", "headline": "b"}], "pair 1 is not a lede and a headline"),
        ("Rain fell.", "pair 1 is not a lede and a headline"),
        (None, "pairs is of type NoneType; pass a list of pairs, such as [(lede, headline)]"),
    ],
)
def test_what_is_not_a_text_is_refused(checker, pairs, sentence):
    with pytest.raises(ArgumentError) as refused:
        checker.check_batch(pairs)
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("lede", "headline"),
    [
        ("\ud800 fell", "rain \udfff"),
        ("雨が降った", "雨"),
        ("word " * 2000, "other " * 200),
        ("x" * 5000, "y" * 5000),
        ("Rain\x00fell", "Rain\x00falls"),
        ("İstanbul’da “yağmur” 🙂", "🙂 İ “yağmur”"),
    ],
)
def test_any_text_has_an_answer(checker, bundle, lede, headline):
    for one in (checker, made(bundle, doubted_below=1.0)):
        check = one.check(lede, headline)
        assert check.support is not None
        assert 0 <= check.support <= 1
        assert_doubts_stand_where_they_say(check, headline)


# --- doubts -------------------------------------------------------------------------------------


def assert_doubts_stand_where_they_say(check, headline):
    for doubt in check.doubts:
        assert doubt.words
        assert headline[doubt.start : doubt.end] == doubt.words
        assert doubt.words == doubt.words.strip()
        assert doubt.kind in DOUBT_KINDS
        assert doubt.why


@pytest.mark.parametrize(("lede", "headline", "words", "kind"), WRONG)
def test_a_rule_is_heard(checker, lede, headline, words, kind):
    check = checker.check(lede, headline)
    assert (words, kind) in [(doubt.words, doubt.kind) for doubt in check.doubts]
    assert not any(doubt.by_verifier for doubt in check.doubts)
    assert_doubts_stand_where_they_say(check, headline)


def test_where_the_verifier_doubts_one_span_is_named(bundle):
    doubtful = made(bundle, doubted_below=1.0)
    seen = 0
    for (_, headline), check in zip(PAIRS, doubtful.check_batch(PAIRS), strict=True):
        assert check.doubts
        assert_doubts_stand_where_they_say(check, headline)
        if check.doubts[0].by_verifier:
            assert len(check.doubts) == 1
            seen += 1
    assert seen > len(PAIRS) / 2


@pytest.mark.parametrize(
    "headline",
    [
        "Rain: 'heavy' rain, rain (rain) falls on rain-soaked rain",
        "RAIN FALLS ON THE TOWN HALL",
        "Mayor’s “rain” plan — “wet”, says   mayor",
        "  Rain falls  ",
        "£5m rain: 5.5% wetter",
        "Antidisestablishmentarianism rains",
        "...",
    ],
)
def test_offsets_are_right_beside_marks_and_repeats(bundle, headline):
    doubtful = made(bundle, doubted_below=1.0)
    check = doubtful.check("Heavy rain fell on the town hall, the mayor said.", headline)
    assert_doubts_stand_where_they_say(check, headline)


@pytest.mark.parametrize(
    ("wrong", "start", "words"),
    [
        ([0.1, 0.1, 0.1, 0.9, 0.1], 16, "rain"),  # the second of two
        ([0.9, 0.1, 0.1, 0.1, 0.1], 0, "rain"),
        ([0.1, 0.1, 0.7, 0.9, 0.1], 13, "on rain"),  # with a neighbour that is nearly as likely
        ([0.1, 0.1, 0.1, 0.1, 0.9], 21, "again"),
    ],
)
def test_the_likeliest_words_are_doubted_where_they_stand(wrong, start, words):
    headline = "rain, rains  on rain again"
    by_word = list(enumerate(wrong))
    text = "rain rains on rain again".split()
    (doubt,) = verifier_doubts("Rain fell.", headline, text, by_word, KINDS.index("event"))
    assert (doubt.start, doubt.words, doubt.kind) == (start, words, "relation")
    assert headline[doubt.start : doubt.end] == words
    assert doubt.by_verifier


def test_without_a_threshold_the_verifier_names_nothing(bundle):
    trusting = made(bundle, doubted_below=0.0)
    for (lede, headline), check in zip(PAIRS, trusting.check_batch(PAIRS), strict=True):
        assert list(check.doubts) == rule_doubts(lede, headline)


def test_as_json(checker):
    lede, headline, words, kind = WRONG[0]
    check = checker.check(lede, headline)
    told = json.loads(json.dumps(check.as_dict()))
    assert told["support"] == check.support
    assert told["doubts"][0].keys() == {"start", "end", "words", "kind", "why"}
    assert told["doubts"][0] | {"words": words, "kind": kind} == told["doubts"][0]


def test_marks_at_the_end_of_doubted_words_are_left_out():
    words, wrong = ["Singer", ",", "62", ",", "dies"], [0.9, 0.8, 0.1, 0.1, 0.1]
    (doubt,) = verifier_doubts(
        "A man died.", "Singer, 62, dies", words, list(enumerate(wrong)), KINDS.index("role")
    )
    assert (doubt.start, doubt.end, doubt.words, doubt.kind) == (0, 6, "Singer", "role")
    (doubt,) = verifier_doubts(
        "A man died.", "Singer, 62, dies", words, list(enumerate([0.9, 0.8, 0.8, 0.8, 0.1])), 0
    )
    assert doubt.words == "Singer, 62"


# --- calibration --------------------------------------------------------------------------------

CALIBRATION = Calibration(
    bias=0.1,
    verifier=0.7,
    score=0.2,
    doubted_below=0.5,
    rank_ok=1.0,
    rank_score=2.0,
    rank_length=0.05,
    rank_rule=3.0,
    caps={"name": 0.2, "role": 0.4},
)
NAME, ROLE = (Doubt(0, 4, "Rain", kind, "why") for kind in ("name", "role"))


def labels_of(odds):
    """Log p of the four labels with these log-odds that the lede supports the headline."""
    good = torch.sigmoid(torch.tensor(odds, dtype=torch.double))
    return torch.stack([0.7 * good, 0.3 * good, 0.4 * (1 - good), 0.6 * (1 - good)]).log().tolist()


def test_more_log_odds_are_more_support():
    odds = [-8.0, -2.0, -0.1, 0.0, 0.1, 2.0, 8.0]
    assert [log_odds(labels_of(one)) for one in odds] == pytest.approx(odds)
    supports = [CALIBRATION.support(labels_of(one), -1.0, []) for one in odds]
    assert supports == sorted(set(supports))
    values = [CALIBRATION.value(labels_of(one), -1.0, 9, []) for one in odds]
    assert values == sorted(set(values))


def test_a_doubt_of_a_rule_lowers_support_and_rank():
    def support(*doubts):
        return CALIBRATION.support(labels_of(1.0), -1.0, doubts)

    def value(*doubts):
        return CALIBRATION.value(labels_of(1.0), -1.0, 9, doubts)

    assert support() > support(ROLE) > support(NAME) == support(NAME, ROLE) == 0.2
    assert (
        support(ROLE._replace(kind="time")) == support(ROLE._replace(by_verifier=True)) == support()
    )
    assert value() - value(ROLE) == pytest.approx(CALIBRATION.rank_rule)
    assert value(ROLE) == value(NAME, ROLE)
    assert value(ROLE._replace(by_verifier=True)) == value()


def test_certainty_is_no_error():
    certain = [0.0, float("-inf"), float("-inf"), float("-inf")]
    assert CALIBRATION.support(certain, 0.0, []) > 0.999
    assert CALIBRATION.support(certain[::-1], -900.0, [NAME]) < 0.001


@pytest.mark.parametrize(("lede", "headline", "words", "kind"), WRONG)
def test_what_a_rule_finds_costs_support(checker, bundle, lede, headline, words, kind):
    assert all(0 < cap < 0.5 for cap in bundle.calibration.caps.values())
    assert bundle.calibration.rank_rule > 0
    assert bundle.calibration.verifier > 0
    deaf = made(bundle, caps={}, rank_rule=0.0).check(lede, headline)
    heard = checker.check(lede, headline)
    assert heard.support <= min(deaf.support, 0.5)
    assert heard.value < deaf.value


def test_supports_are_between_nothing_and_certainty(checker):
    for check in checker.check_batch([*PAIRS, *(one[:2] for one in WRONG)]):
        assert 0 <= check.support <= 1
        assert check.support == round(check.support, 4)
