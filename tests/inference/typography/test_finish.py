"""Finished headlines: their words, places and time, and the same everywhere."""

import random
import time

import pytest

from ledeline.config import SearchConfig
from ledeline.core.shipped import SHIPPED
from ledeline.inference.attribution import AttributionWeights
from ledeline.inference.checks.spans import verifier_doubts
from ledeline.inference.compose import Composer, distinct
from ledeline.inference.headliner import Headliner
from ledeline.inference.options import Options
from ledeline.inference.source_text import read_source_text
from ledeline.inference.typography.draft import Edit, HeadlineDraft, LedeText
from ledeline.inference.typography.finish import finish, finished_draft, printed_words
from ledeline.model.verifier_labels import KINDS
from ledeline.search import Hypothesis
from ledeline.text.profiles import PAPER
from ledeline.text.subwords import UNK
from ledeline.text.tokenizer import Tokenizer

LEDE = 'The bank\'s neighbour paid a $5 million fine in the centre of Oslo, its "biggest loss".'
WRITTEN = "Bank 's neighbor pays 5 million fine, 'biggest loss of center ,"
PRINTED = "Bank's neighbour pays $5 million fine, 'biggest loss' of centre"
TOKENIZER = Tokenizer.load(SHIPPED)
PLAIN = Options()


@pytest.fixture(scope="module")
def headliner():
    return Headliner.load(device="cpu")


def composed(texts, lede=LEDE, tokenizer=TOKENIZER, options=PLAIN):
    """The candidates that a composer makes of written texts."""
    found = [Hypothesis(tuple(tokenizer.encode(tokenizer.words(text))), 1.0) for text in texts]
    source = read_source_text(lede, 1, tokenizer, 400)
    return source, Composer(tokenizer).candidates(source, found, {}, options)


class TestDraft:
    def test_places_are_those_of_the_text_as_written(self):
        draft = HeadlineDraft("ab cd", range(5)).edited(
            [Edit(0, 1), Edit(2, 4, "XYZ"), Edit(5, 5, "!")]
        )
        assert draft.text == "bXYZd!"
        assert list(draft.places) == [1, 2, 3, 3, 4, 4]

    def test_a_mark_before_a_word_and_one_behind_it_belong_to_it(self):
        draft = HeadlineDraft("a 5 b", range(5)).edited([Edit(2, 2, "$"), Edit(3, 3, "%")])
        assert draft.text == "a $5% b"
        assert list(draft.places) == [0, 1, 2, 2, 2, 3, 4]

    def test_every_character_has_a_place(self):
        draft = finished_draft(WRITTEN, LedeText(LEDE))
        assert draft.text == PRINTED
        assert len(draft.places) == len(PRINTED)
        assert list(draft.places) == sorted(draft.places)


class TestWords:
    def test_each_word_has_the_word_that_the_model_wrote_for_it(self):
        written = TOKENIZER.words(WRITTEN)
        printed = printed_words(TOKENIZER.join(written), written, LedeText(LEDE), TOKENIZER)
        assert printed is not None
        assert printed.text == PRINTED == TOKENIZER.join(printed.words)
        own = TOKENIZER.plain(written)
        pairs = dict(zip(TOKENIZER.plain(printed.words), printed.origins, strict=True))
        assert own[pairs["neighbour"]] == "neighbor"
        assert own[pairs["$"]] == own[pairs["5"]] == "5"
        assert own[pairs["centre"]] == "center"

    def test_none_if_nothing_changes_or_nothing_is_left(self):
        for text in ("Rain falls", "", '"', "..", "1" * 2000 + " ,"):
            assert printed_words(text, TOKENIZER.words(text), LedeText(LEDE), TOKENIZER) is None


class TestComposer:
    def test_text_and_tokens_are_those_that_are_printed(self):
        lede, (one,) = composed([WRITTEN])
        assert one.candidate.text == PRINTED
        assert one.candidate.tokens == tuple(TOKENIZER.plain(TOKENIZER.words(PRINTED)))
        assert TOKENIZER.join(one.words.words) == WRITTEN
        headline = Composer(TOKENIZER).headline(lede, [one], None, PLAIN)
        assert headline.text == PRINTED

    def test_an_alignment_has_the_printed_words_with_their_own_weights(self):
        lede, (one,) = composed([WRITTEN])
        rows = [
            [float(word == place) for place in range(len(lede.ids))] for word in one.words.word_ids
        ]
        weights = AttributionWeights(rows, rows)
        headline = Composer(TOKENIZER).headline(lede, [one], weights, Options(explain=True))
        alignment = headline.alignment
        assert "".join(alignment.headline) == PRINTED
        assert len(alignment.attention) == len(alignment.spm) == len(alignment.headline)
        dollar = alignment.headline.index(" $")
        assert alignment.attention[dollar] == alignment.attention[dollar + 1]
        assert len(alignment.links) == len(alignment.headline)

    def test_candidates_that_become_the_same_are_one(self):
        _, candidates = composed(
            ["Bank pays neighbor", "Bank pays neighbour", "Bank pays", "Bank pays"]
        )
        texts = [one.candidate.text for one in distinct(candidates)]
        assert texts == ["Bank pays neighbour", "Bank pays", "Bank pays"]  # the search found two

    def test_a_headline_with_an_unknown_word_stays(self):
        found = [Hypothesis((*TOKENIZER.encode(TOKENIZER.words("Bank pays neighbor")), UNK), 1.0)]
        source = read_source_text(LEDE, 1, TOKENIZER, 400)
        (one,) = Composer(TOKENIZER).candidates(source, found, {}, Options(replace_unknown=False))
        assert "neighbor" in one.candidate.text
        assert one.printed is None

    def test_the_paper_profile_stays(self):
        paper = Tokenizer(PAPER, TOKENIZER.subwords)
        _, (one,) = composed(["the neighbor 's labor , they 'd say"], "the neighbour 's", paper)
        assert one.candidate.text == "the neighbor 's labor , they 'd say"
        assert one.printed is None

    def test_what_the_lede_has_in_typographic_marks_is_the_same(self):
        _, (one,) = composed(["Bank told of 'biggest loss of year"], LEDE.replace('"', "”"))
        assert one.candidate.text == "Bank told of 'biggest loss' of year"


class TestDoubts:
    def test_doubts_stand_at_printed_words(self, headliner):
        lede = "The centre's neighbour paid."
        for text in ("Centre 's neighbor dies in center", "'Centre pays 9 million , neighbor told"):
            _, (one,) = composed([text], lede)
            (check,) = headliner.checker().check_batch([(lede, one.candidate.text)])
            for doubt in check.doubts:
                assert one.candidate.text[doubt.start : doubt.end] == doubt.words

    @pytest.mark.parametrize("target", ["Nice", "day", "labour", "Bob"])
    def test_those_of_the_verifier_skip_what_was_replaced(self, target):
        written = ["'", "Nice", "day", "labor", "at", "laborer", "Bob", "'s", "labour"]
        headline = "Nice day labour at laborer Bob's labour"
        number = {"labour": 8}.get(target, written.index(target))
        wrong = [(n, 0.9 if n == number else 0.0) for n in range(len(written))]
        (doubt,) = verifier_doubts("Rain.", headline, written, wrong, KINDS.index("event"))
        assert doubt.words == target == headline[doubt.start : doubt.end]
        if target == "labour":
            assert doubt.end == len(headline)

    def test_a_word_is_not_found_inside_another(self):
        wrong = [(0, 0.1), (1, 0.9)]
        (doubt,) = verifier_doubts("Rain.", "End programme", ["End", "program"], wrong, 0)
        assert doubt.words == "End"


class TestHeadliner:
    LEDES = (
        "`` They 'd never sign the historic deal , '' Colombia 's president said of the $ 3 million .",
        'The Chicago Bears announced plans for a "state-of-the-art" stadium near the lake.',
        "A neighbour was hospitalised after a colourful parade in the centre of Leeds on Monday.",
        "Mr. Smith 's widow said she 's going to sue the hospital for $ 3 million after his death .",
    )
    OPTIONS = Options(search=SearchConfig(beam=5, n_best=5), explain=True)

    def test_each_headline_is_finished_and_the_same_in_every_batch(self, headliner):
        together = headliner.generate_batch(self.LEDES, self.OPTIONS)
        for lede, one in zip(self.LEDES, together, strict=True):
            assert headliner.generate_batch([lede], self.OPTIONS) == [one]
            texts = [other.text for other in one.alternatives]
            assert texts[0] == one.text
            assert len(set(texts)) == len(texts)
            assert "".join(one.alignment.headline) == one.text
            read = TOKENIZER.join(TOKENIZER.words(lede))
            for other in one.alternatives:
                assert finish(other.text, read) == other.text
                assert not any(apart in other.text for apart in (" 's ", " 'd ", "``", "$ "))
                assert all(other.text[d.start : d.end] == d.words for d in other.doubts)

    def test_the_best_headline_is_the_first_alternative_without_checks_too(self, headliner):
        options = Options(search=self.OPTIONS.search, check=False)
        for one in headliner.generate_batch(self.LEDES, options):
            assert one.alternatives[0].text == one.text
            assert one.alternatives[0].tokens == one.tokens


HOSTILE = (
    "'", '"', "' ", "a' ", "'a ", "`` ", "''", ", ", ",", ".", "..", ". .", "-", " -", "- ", "--", "/",
    "A.", "A. ", "a- ", "$ ", "$5 ", "5 ", "5,", "5.5", "5%", "U.S", "color ", "COLOR ", "Color ", "(",
    "Fema ", "fEma ", "a", "A", "n't ", "'s ", "it 's ", "per cent ", "5 percent ", "é", "’", "‘a",
)  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_time_is_linear(text):
    """Four times the text takes little more than four times as long."""
    lede = 'He said "colour" of FEMA and $5 and 5% and U.S. "' + text * 200

    def seconds(size):
        whole = (text * size)[:size]
        rule_lede, best = LedeText(lede), 9.0
        finished_draft(whole, rule_lede)
        for _ in range(3):
            began = time.perf_counter()
            finished_draft(whole, rule_lede)
            best = min(best, time.perf_counter() - began)
        return best

    assert seconds(1000) < 8 * seconds(250) + 0.005
    assert seconds(1000) < 0.1
    assert seconds(100_000) < 0.1


@pytest.mark.parametrize("text", HOSTILE)
def test_a_long_lede_is_read_in_linear_time(text):
    began = time.perf_counter()
    lede = LedeText(text * 20_000)
    for headline in ("Fema's 5 million 'color of 5 ..", "'COLOR 5.5 (x' , U. S"):
        finished_draft(headline, lede)
    assert time.perf_counter() - began < 3


def test_no_text_breaks_it():
    """Whatever a model writes: each character has a place, and each word one that was written."""
    rng = random.Random(1)
    parts = [*HOSTILE, " ", "Bank", "neighbor", "Minister:", "says", "’", "“", "U.S.", "1,250", "%"]
    for _ in range(3000):
        texts = ["".join(rng.choice(parts) for _ in range(rng.randrange(9))) for _ in range(2)]
        lede = LedeText(TOKENIZER.join(TOKENIZER.words(rng.choice([LEDE, texts[1]]))))
        words = TOKENIZER.words(texts[0])
        text = TOKENIZER.join(words)
        draft = finished_draft(text, lede)
        assert len(draft.places) == len(draft.text)
        assert list(draft.places) == sorted(draft.places)
        assert all(0 <= place < len(text) for place in draft.places)
        letters = [char.lower() for char in text if char.isalpha()]
        if lede.forms.keys().isdisjoint(["colour", "neighbour", "neighbor", "color", "per"]):
            assert [char.lower() for char in draft.text if char.isalpha()] == letters
        if (printed := printed_words(text, words, lede, TOKENIZER)) is not None:
            assert TOKENIZER.join(printed.words) == printed.text == draft.text
            assert len(printed.words) == len(printed.origins)
            assert all(0 <= origin < len(words) for origin in printed.origins)


def test_a_headline_takes_microseconds():
    lede, began = LedeText(LEDE), time.perf_counter()
    for _ in range(1000):
        finished_draft("Bank's neighbour pays $5 million fine after 'biggest loss' in Oslo", lede)
    assert time.perf_counter() - began < 0.25  # a tenth of that on one core
