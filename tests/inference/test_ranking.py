"""Headlines that are checked, ranked by support, and left out, with the bundled model."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ledeline.config import SearchConfig
from ledeline.core.errors import LedelineError
from ledeline.core.shipped import SHIPPED
from ledeline.inference.checks.check import Check
from ledeline.inference.checks.checker import Checker
from ledeline.inference.compose import ComposedCandidate
from ledeline.inference.detokenize import HeadlineWords
from ledeline.inference.generation import _ranked
from ledeline.inference.headline import Candidate, Headline
from ledeline.inference.headliner import Headliner
from ledeline.inference.options import Options
from ledeline.inference.sample_ledes import LEDES
from ledeline.search import Hypothesis
from ledeline.synth.newsroom import generate
from tempted import tempted_model

NEAR = 2e-3  # of a support, which comes from what search saw or from a second reading
NOBODY = "The prime minister has been taken to hospital with chest pains."
TEXTS = [*(story.lede for story in generate(5, 7)), *LEDES[:3], NOBODY]
SEARCH = SearchConfig(beam=6, n_best=6)
RANKED = Options(search=SEARCH)  # as the bundled model ranks by default
PLAIN = Options(search=SEARCH, check=False)
AS_WRITTEN = Options(replace_unknown=False)

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def headliner() -> Headliner:
    return Headliner.load(device="cpu")


@pytest.fixture(scope="module")
def checker(headliner: Headliner) -> Checker:
    return headliner.checker()


@pytest.fixture(scope="module")
def ranked(headliner: Headliner) -> list[Headline]:
    return headliner.generate_batch(TEXTS, RANKED)


@pytest.fixture(scope="module")
def plain(headliner: Headliner) -> list[Headline]:
    return headliner.generate_batch(TEXTS, PLAIN)


def kinds(headline: Headline) -> list[str]:
    return [warning.kind for warning in headline.warnings]


def assert_same(found: list[Headline], expected: list[Headline]) -> None:
    """That headlines are the same, but for the last digits of scores and supports."""
    for one, other in zip(found, expected, strict=True):
        assert [each.text for each in one.alternatives] == [
            each.text for each in other.alternatives
        ]
        assert one.text == other.text
        assert one.doubts == other.doubts
        assert one.support == pytest.approx(other.support, abs=2e-4)
        assert one.warnings == other.warnings


# --- by score -----------------------------------------------------------------------------------


def test_without_checks_it_is_the_plain_search(headliner: Headliner, plain: list[Headline]) -> None:
    config = headliner.resolve_search(SEARCH)
    for text, headline in zip(TEXTS, plain, strict=True):
        (lede,) = headliner.read([text])
        running = headliner._model.model.begin_search([lede.ids], config)
        while running.running:
            running.step()
        (found,) = running.hypotheses
        composed = headliner._model.composer.candidates(lede, found, {}, AS_WRITTEN)
        scores: dict[str, float] = {}  # of several that are printed the same, the first is there
        for one in composed:
            scores.setdefault(one.candidate.text, one.found.score)
        assert [(one.text, one.score) for one in headline.alternatives] == [*scores.items()]
        assert headline.support is None
        assert headline.doubts == ()
        assert "doubt" not in kinds(headline)
        assert "support" not in headline.as_dict()


def test_by_score_checks_change_neither_words_nor_order(
    headliner: Headliner, plain: list[Headline]
) -> None:
    by_score = headliner.generate_batch(TEXTS, replace(RANKED, rank="score"))
    for one, other in zip(by_score, plain, strict=True):
        assert [each.text for each in one.alternatives] == [
            each.text for each in other.alternatives
        ]
        assert one.text == one.alternatives[0].text
        assert all(each.support is not None for each in one.alternatives)


# --- by support ---------------------------------------------------------------------------------


def test_alternatives_are_in_the_order_of_their_value(
    checker: Checker, ranked: list[Headline]
) -> None:
    reordered = 0
    for headline in ranked:
        texts = [one.text for one in headline.alternatives]
        assert headline.text == texts[0]
        values = [one.value for one in checker.check_batch((headline.source, one) for one in texts)]
        assert all(first >= second - 1e-2 for first, second in pairwise(values))
        scores = [one.score for one in headline.alternatives]
        reordered += scores != sorted(scores, reverse=True)
    assert reordered


def test_supports_and_doubts_are_those_of_the_checker(
    checker: Checker, ranked: list[Headline]
) -> None:
    for headline in ranked:
        pairs = [(headline.source or "", one.text) for one in headline.alternatives]
        for one, check in zip(headline.alternatives, checker.check_batch(pairs), strict=True):
            assert one.support == pytest.approx(check.support, abs=NEAR)
            if abs((check.support or 0) - checker._calibration.doubted_below) > NEAR:
                assert [doubt[:4] for doubt in one.doubts] == [doubt[:4] for doubt in check.doubts]


def test_the_headline_carries_what_the_first_alternative_has(ranked: list[Headline]) -> None:
    for headline in ranked:
        first = headline.alternatives[0]
        assert (headline.support, headline.doubts) == (first.support, first.doubts)
        assert (headline.score, headline.tokens) == (first.score, first.tokens)
        told = [warning.message for warning in headline.warnings if warning.kind == "doubt"]
        assert told == [str(doubt) for doubt in headline.doubts]
        fields = headline.as_dict()
        assert fields["support"] == headline.support
        assert fields["doubts"] == [doubt.as_dict() for doubt in headline.doubts]
        assert [one["support"] for one in fields["alternatives"]] == [
            one.support for one in headline.alternatives
        ]


@pytest.mark.parametrize("n_best", [1, 2, 6])
def test_as_many_as_were_asked_for(
    headliner: Headliner, ranked: list[Headline], n_best: int
) -> None:
    """The best of all that the beam found, not of the n best by score."""
    options = replace(RANKED, search=replace(SEARCH, n_best=n_best))
    for one, whole in zip(headliner.generate_batch(TEXTS, options), ranked, strict=True):
        assert one.text == whole.text
        expected = whole.alternatives[:n_best] if n_best > 1 else ()
        assert [each.text for each in one.alternatives] == [each.text for each in expected]


def test_a_headline_does_not_depend_on_its_batch(
    headliner: Headliner, ranked: list[Headline]
) -> None:
    assert_same([headliner(text, options=RANKED) for text in TEXTS], ranked)
    assert_same(headliner.generate_batch(TEXTS[::-1], RANKED)[::-1], ranked)
    assert_same(headliner.generate_batch(TEXTS, replace(RANKED, batch_size=2)), ranked)


@pytest.mark.parametrize("steps", [0, 2, 12, 25, 40])
def test_the_others_get_theirs_where_some_are_given_up(
    headliner: Headliner, ranked: list[Headline], steps: int
) -> None:
    generation = headliner.begin(headliner.read(TEXTS[:4]), RANKED)
    for _ in range(steps):
        generation.advance()
    generation.give_up([0, 2])
    while not generation.done:
        generation.advance()
    found = generation.headlines
    assert found[0] is None
    assert found[2] is None
    assert_same([one for one in found if one is not None], [ranked[1], ranked[3]])


def test_texts_without_words_stay_without_headlines(headliner: Headliner) -> None:
    empty, number, headline = headliner.generate_batch(["", 5, TEXTS[0]], RANKED)
    assert (empty.text, number.text) == ("", "")
    assert (empty.support, number.support) == (None, None)
    assert kinds(empty) == ["empty"]
    assert headline.support is not None


def test_words_that_the_model_does_not_know_are_no_hindrance(headliner: Headliner) -> None:
    text = "Հայաստան and ქართველი signed 契約 in Ереван on Tuesday, the ministry said."
    headline = headliner(text, options=RANKED)
    assert headline.text
    assert all(one.support is not None for one in headline.alternatives)
    for one in headline.alternatives:
        assert all(one.text[doubt.start : doubt.end] == doubt.words for doubt in one.doubts)


# --- constraints --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tempted(tmp_path_factory: pytest.TempPathFactory) -> Headliner:
    """One that would write a name wherever it may."""
    folder = tmp_path_factory.mktemp("tempted") / "model"
    return Headliner.load(tempted_model(folder, ["Boris"], 8.0), device="cpu")


def test_a_known_name_is_not_written_where_the_lede_has_none(tempted: Headliner) -> None:
    plain = tempted(NOBODY, options=PLAIN)
    assert "Boris" in plain.text  # else there would be nothing to keep out
    ranked = tempted(NOBODY, options=RANKED)
    assert ranked.text
    assert all("Boris" not in one.text for one in ranked.alternatives)
    free = tempted(NOBODY, options=replace(RANKED, constrain=False))
    named = [one for one in free.alternatives if "Boris" in one.text]
    assert named
    for one in named:
        assert any("Boris" in doubt.words for doubt in one.doubts)


def test_constraints_can_be_had_without_a_ranking(tempted: Headliner) -> None:
    options = Options(search=SEARCH, check=False, constrain=True)
    (headline,) = tempted.generate_batch([NOBODY], options)
    assert headline.text
    assert all("Boris" not in one.text for one in headline.alternatives)


# --- leaving out --------------------------------------------------------------------------------


def test_what_has_too_little_support_is_left_out(headliner: Headliner) -> None:
    for headline in headliner.generate_batch(TEXTS, replace(RANKED, min_support=1.0)):
        assert not headline
        assert headline.text == ""
        assert headline.score is None
        assert kinds(headline)[-1] == "left out"
        assert headline.warnings[-1].message == (
            f"the best headline has a support of {headline.support:.2f}, less than 1"
        )


def test_another_with_enough_support_is_chosen(
    headliner: Headliner, ranked: list[Headline]
) -> None:
    """Also where the ranking has another first; the rest stays in its order."""
    for text, whole in zip(TEXTS, ranked, strict=True):
        supports = [one.support or 0 for one in whole.alternatives]
        least = max(supports) - 2 * NEAR
        headline = headliner(text, options=replace(RANKED, min_support=least))
        enough = [one.text for one in whole.alternatives if (one.support or 0) >= least]
        others = [one.text for one in whole.alternatives if (one.support or 0) < least]
        assert [one.text for one in headline.alternatives] == enough + others
        assert headline.text == enough[0]
        assert "left out" not in kinds(headline)


@pytest.mark.parametrize(
    ("options", "order"),
    [
        ({"rank": "score"}, "abcd"),
        ({"rank": "support"}, "cbad"),
        ({"rank": "support", "min_support": 0.5}, "bacd"),
        ({"rank": "score", "min_support": 0.5}, "abcd"),
        ({"rank": "score", "min_support": 0.8}, "bacd"),
        ({"rank": "support", "min_support": 0.95}, "cbad"),
    ],
)
def test_the_order_by_value_and_by_enough_support(options: dict[str, Any], order: str) -> None:
    checks = [Check(0.6, value=1), Check(0.9, value=2), Check(0.4, value=3), Check(None, value=9)]
    candidates = [
        ComposedCandidate(Hypothesis((), 0.0), HeadlineWords((), ()), Candidate(name, (), 0))
        for name in "abcd"
    ]
    for number in (1, 3, 4):
        asked = Options(search=SearchConfig(beam=4, n_best=number), **options)
        found = _ranked(candidates, checks, asked)
        assert "".join(one.candidate.text for one in found) == order[:number]
        supports = {name: check.support for name, check in zip("abcd", checks, strict=True)}
        assert all(one.candidate.support == supports[one.candidate.text] for one in found)


def test_nothing_is_left_out_where_nothing_is_asked_for(
    headliner: Headliner, ranked: list[Headline]
) -> None:
    assert_same(headliner.generate_batch(TEXTS, replace(RANKED, min_support=0.0)), ranked)


# --- options ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"check": False, "rank": "support"}, "rank"),
        ({"check": False, "min_support": 0.5}, "min_support"),
        ({"min_support": 1.5}, "min_support"),
        ({"min_support": -0.1}, "min_support"),
        ({"min_support": float("nan")}, "min_support"),
        ({"rank": "truth"}, "rank"),
        ({"check": "yes"}, "check"),
    ],
)
def test_contradictions_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(LedelineError, match=said) as refused:
        Options(**options)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("asked", "resolved"),
    [
        ({}, (True, "support", True)),
        ({"check": False}, (False, "score", False)),
        ({"rank": "score"}, (True, "score", False)),
        ({"constrain": False}, (True, "support", False)),
        ({"rank": "score", "constrain": True}, (True, "score", True)),
    ],
)
def test_defaults_of_the_bundled_model(
    headliner: Headliner, asked: dict[str, Any], resolved: tuple[bool, str, bool]
) -> None:
    options = headliner.resolve_options(Options(**asked))
    assert (options.check, options.rank, options.constrain) == resolved


@pytest.mark.parametrize(
    ("asked", "resolved"),
    [
        ({}, (False, "score", False)),
        ({"check": True}, (True, "score", False)),
        ({"min_support": 0.5}, (True, "score", False)),
        ({"rank": "support"}, (True, "support", True)),
    ],
)
def test_defaults_of_another_model(
    other: Headliner, asked: dict[str, Any], resolved: tuple[bool, str, bool]
) -> None:
    options = other.resolve_options(Options(**asked))
    assert (options.check, options.rank, options.constrain) == resolved


@pytest.fixture(scope="module")
def other(model_folder: Path) -> Headliner:
    return Headliner.load(model_folder, device="cpu")


SHORT = Options(search=SearchConfig(beam=3, n_best=3, max_length=8))


def test_another_model_is_not_checked_unless_asked_for(other: Headliner) -> None:
    headline = other(TEXTS[0], options=SHORT)
    assert headline.support is None
    assert headline.doubts == ()


@pytest.mark.parametrize("rank", ["score", "support"])
def test_another_model_can_be_checked(other: Headliner, checker: Checker, rank: Any) -> None:
    """By the bundled model, which reads its headlines."""
    headline = other(TEXTS[0], options=replace(SHORT, check=True, rank=rank, constrain=False))
    plain = other(TEXTS[0], options=SHORT)
    assert {one.text for one in headline.alternatives} == {one.text for one in plain.alternatives}
    for one in headline.alternatives:
        check = checker.check(TEXTS[0], one.text)
        assert one.support == pytest.approx(check.support, abs=NEAR)
        assert [doubt[:4] for doubt in one.doubts] == [doubt[:4] for doubt in check.doubts]


def test_several_models_are_checked_too(checker: Checker) -> None:
    both = Headliner.load(SHIPPED, SHIPPED, device="cpu")
    headline = both(TEXTS[0], beam=3)
    assert headline.support == pytest.approx(
        checker.check(TEXTS[0], headline.text).support, abs=NEAR
    )


# --- explanations -------------------------------------------------------------------------------


def test_the_alignment_is_that_of_the_chosen_headline(
    headliner: Headliner, ranked: list[Headline], plain: list[Headline]
) -> None:
    explained = headliner.generate_batch(TEXTS, replace(RANKED, explain=True))
    assert any(one.text != other.text for one, other in zip(ranked, plain, strict=True))
    for one, other in zip(explained, ranked, strict=True):
        assert one.text == other.text
        assert one.alignment is not None
        assert "".join(one.alignment.headline) == one.text
        assert len(one.alignment.attention) == len(one.alignment.headline)
        assert all(sum(row) == pytest.approx(1, abs=1e-4) for row in one.alignment.attention)
