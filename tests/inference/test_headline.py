import json
from dataclasses import replace

import pytest

from ledeline.core.errors import RenamedWarning
from ledeline.inference import headline as module
from ledeline.inference.headline import (
    WARNING_KINDS,
    Alignment,
    Candidate,
    Headline,
    HeadlineWarning,
    Link,
)

SOURCE = ("Stocks", " rose", " sharply", ",")
ATTENTION = ((0.7, 0.1, 0.1, 0.1), (0.1, 0.2, 0.6, 0.1))
SPM = ((0.9, 0.05, 0.05, 0.0), (0.0, 0.8, 0.1, 0.1))


def aligned(spm: tuple[tuple[float, ...], ...] | None) -> Alignment:
    return Alignment(SOURCE, ("Stocks", " rise"), ATTENTION, spm)


class TestLinks:
    def test_the_spm_decides_against_attention(self) -> None:
        assert aligned(SPM).links == (Link(0, 0, 0.9, 0.7), Link(1, 1, 0.8, 0.2))
        assert aligned(SPM).dropped == (2, 3)

    def test_attention_decides_where_there_is_no_spm(self) -> None:
        assert aligned(None).links == (Link(0, 0, None, 0.7), Link(1, 2, None, 0.6))
        assert aligned(None).dropped == (1, 3)

    def test_attention_decides_for_a_word_without_any_probability(self) -> None:
        links = aligned((SPM[0], (0.0,) * 4)).links
        assert links == (Link(0, 0, 0.9, 0.7), Link(1, 2, 0.0, 0.6))

    def test_two_words_may_come_from_one(self) -> None:
        one = aligned((SPM[0], SPM[0]))
        assert [link.source for link in one.links] == [0, 0]
        assert one.dropped == (1, 2, 3)

    def test_of_equals_the_first_is_taken(self) -> None:
        one = aligned(((0.25,) * 4, (0.0, 0.0, 0.5, 0.5)))
        assert [link.source for link in one.links] == [0, 2]

    def test_a_word_that_the_source_has_comes_from_there(self) -> None:
        words = (("52", " to", " 48", ",", " to"), (" TO", " 48", " rise"))
        spm = ((0.9, 0.02, 0.0, 0.0, 0.01), (0.8, 0.1, 0.0, 0.1, 0.0), (0.0, 0.0, 0.0, 0.7, 0.0))
        attention = ((0.2,) * 5, (0.6, 0.1, 0.1, 0.1, 0.1), (0.2,) * 5)
        one = Alignment(*words, attention, spm)
        assert one.links == (Link(0, 1, 0.02, 0.2), Link(1, 2, 0.0, 0.1), Link(2, 3, 0.7, 0.2))
        assert one.dropped == (0, 4)
        attended = Alignment(*words, ((0.1, 0.2, 0.1, 0.1, 0.5), *attention[1:]), None)
        assert [link.source for link in attended.links] == [4, 2, 0]

    def test_no_headline_drops_every_word(self) -> None:
        nothing = Alignment(SOURCE, (), (), ())
        assert nothing.links == ()
        assert nothing.dropped == (0, 1, 2, 3)


class TestAsDict:
    FIELDS = ("source", "headline", "score", "truncated", "warnings")
    HEADLINE = Headline(
        "Stocks rose sharply,",
        "Stocks rise",
        ("Stocks", "rise"),
        -0.25,
        (Candidate("Stocks rise", ("Stocks", "rise"), -0.25), Candidate("Up", ("Up",), -1.5, True)),
        warnings=(HeadlineWarning("cut", "3 words were left out"),),
        alignment=aligned(SPM),
    )

    def test_everything_there_is_goes_through_json(self) -> None:
        assert json.loads(json.dumps(self.HEADLINE.as_dict())) == {
            "source": "Stocks rose sharply,",
            "headline": "Stocks rise",
            "score": -0.25,
            "truncated": False,
            "warnings": [{"kind": "cut", "message": "3 words were left out"}],
            "alternatives": [
                {"headline": "Stocks rise", "score": -0.25, "truncated": False},
                {"headline": "Up", "score": -1.5, "truncated": True},
            ],
            "alignment": {
                "words": [
                    {
                        "word": "Stocks",
                        "source": "Stocks",
                        "place": 0,
                        "spm": 0.9,
                        "attention": 0.7,
                    },
                    {"word": "rise", "source": "rose", "place": 1, "spm": 0.8, "attention": 0.2},
                ],
                "dropped": [{"word": "sharply", "place": 2}, {"word": ",", "place": 3}],
            },
        }

    def test_without_an_spm_its_probability_is_null(self) -> None:
        words = aligned(None).as_dict()["words"]
        assert [word["spm"] for word in words] == [None, None]

    def test_alternatives_and_alignment_are_there_where_asked_for(self) -> None:
        plain = Headline("a", "b", ("b",), -1.0)
        assert tuple(plain.as_dict()) == self.FIELDS
        found = replace(plain, alternatives=self.HEADLINE.alternatives[:1]).as_dict()
        assert tuple(found) == (*self.FIELDS, "alternatives")

    def test_what_was_no_text_has_a_line_as_well(self) -> None:
        fields = Headline(
            None, "", warnings=(HeadlineWarning("invalid", WARNING_KINDS["invalid"]),)
        ).as_dict()
        assert tuple(json.loads(json.dumps(fields))) == self.FIELDS
        assert fields["source"] is fields["score"] is None


def test_a_headline_is_its_text_and_its_words() -> None:
    headline = Headline("Japan's NEC rose.", "NEC rises", ("NEC", "rises"), -1.0)
    assert str(headline) == f"{headline}" == "NEC rises"
    assert list(headline) == ["NEC", "rises"]
    assert headline


def test_without_text_it_is_falsy() -> None:
    headline = Headline(" \t", "", warnings=(HeadlineWarning("empty", WARNING_KINDS["empty"]),))
    assert not headline
    assert list(headline) == []
    assert str(headline.warnings[0]) == "empty: the text has no words"


def test_the_old_name_of_warnings_works_and_warns() -> None:
    with pytest.warns(RenamedWarning, match="Caution is called HeadlineWarning now"):
        assert module.Caution is HeadlineWarning
    with pytest.raises(AttributeError, match="Nothing"):
        module.Nothing  # noqa: B018
