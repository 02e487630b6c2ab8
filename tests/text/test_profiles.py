import re
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ledeline.text.profiles import (
    HEADLINE_PUNCTUATION,
    JOINER,
    NATURAL,
    PAPER,
    PROFILES,
    TYPOGRAPHIC,
    Profile,
    clean,
)

# Any code point at all, with the troublesome ones made likely.
_NASTY = st.sampled_from(
    list("\x00\x07\x1b\x85\u00a0\u00ad\u200b\u200d\u200f\u2028\u202e\u2060\u3000\ufeff\ufffd")
    + [
        "\ud800",
        "\udfff",
        "\ud83d",
        "\ude00",
        JOINER,
        "e\u0301",
        "\u0301",
        "İ",
        "ﬁ",
        "🔴",
        "़",
        "－",
    ]
)
_NEWS = st.sampled_from(
    list("aBz09 .,:;!?'\"`-–—…’‘“”()[]{}<>$£%&/\\_#@\t\n")
    + [
        "U.S.",
        "Corp.",
        "n't",
        "'s",
        "--",
        "``",
        "''",
        "UNK",
        "<unk>",
        "-lrb-",
        " a.m.",
        "\\/",
        "&amp;",
    ]
)
_TYPESET = st.sampled_from([*TYPOGRAPHIC, "Japan’s", "3–4", "a—b", " — "])
any_text = st.lists(
    st.one_of(_NASTY, _NEWS, _TYPESET, st.characters(codec=None, categories=None)), max_size=30
).map("".join)
EVERY_MARK = NATURAL.keeping_marks(TYPOGRAPHIC)  # the profile that leaves them all as they are


class TestClean:
    @pytest.mark.parametrize(
        ("raw", "cleaned"),
        [
            ("", ""),
            (" \t\n ", ""),
            ("a\u00a0b\u2003c\u3000d\u2028e\x85f\x1cg", "a b c d e f g"),
            ("stock\u200bs fe\u00adll\ufeff \u202ehere\u202c", "stocks fell here"),
            ("bell\x07 null\x00 escape\x1b[0m del\x7f c1\x9f", "bell null escape[0m del c1"),
            ("\ud800lone\udfff", "\ufffdlone\ufffd"),
            ("\ud83d\ude00", "😀"),
            ("cafe\u0301", "café"),
            ("e\u200d\u0301", "é"),  # removal comes before composition
            ("½ ™ ﬁ", "½ ™ ﬁ"),  # NFC, not NFKC
            (f"a{JOINER}b", "a■b"),
            ("❤\ufe0f", "❤"),
        ],
    )
    def test_defined_answers(self, raw: str, cleaned: str) -> None:
        assert clean(raw) == cleaned

    @given(any_text)
    @settings(max_examples=500)
    def test_what_holds_behind_the_door(self, raw: str) -> None:
        text = clean(raw)
        assert clean(text) == text
        assert unicodedata.is_normalized("NFC", text)
        assert text == " ".join(text.split())
        assert JOINER not in text
        assert not re.search("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2060\ufeff\ud800-\udfff]", text)
        text.encode()  # no lone surrogate is left

    def test_every_code_point_has_an_answer(self) -> None:
        for code in range(0x110000):
            category = unicodedata.category(chr(code))
            text = clean(chr(code))
            if category in {"Zs", "Zl", "Zp", "Cc"}:
                assert text == "", hex(code)
            elif category == "Cs":
                assert text == "\ufffd", hex(code)
            elif category == "Cn" and text == "":
                assert 0xE0000 <= code <= 0xE0FFF or 0x2060 <= code <= 0x206F or code >= 0xFFF0


class TestPaper:
    @pytest.mark.parametrize(
        ("text", "tokens"),
        [
            ("Japan's NEC Corp. rose 3.5%, dealers said.", "japan 's nec corp. rose #.# % , dealers said ."),
            ("They don't; can't (won't) yield!", "they do n't ; ca n't -lrb- wo n't -rrb- yield !"),
            ('He said "no." Then: "Why not?"', "he said `` no. '' then : `` why not ? ''"),
            ("“Never,” she said — ‘ever’…", "`` never , '' she said -- ` ever ' ..."),
            ("At 10:30 a.m. on Jan. 5 in the U.S.", "at ##:## a.m. on jan. # in the u.s. ."),
            ("The market fell. It rose again.", "the market fell . it rose again ."),
            ("$1,234.50 or US$5 or £3m", "$ #,###.## or us$ # or £ #m"),
            ("Workers' union, O'Neill's and/or '90s", "workers ' union , o'neill 's and\\/or '##s"),
            ("U.S.-led [sic] {x} rock 'n' roll", "u.s.-led -lsb- sic -rsb- -lcb- x -rcb- rock 'n' roll"),
            ("AT&T, S&amp;P; done", "at&t , s&amp;p ; done"),
            ("2010–12 deal – maybe", "####-## deal -- maybe"),
            ("tokyo stocks closed higher, dealers said friday.", "tokyo stocks closed higher , dealers said friday ."),
            ("Arabic ٣ and fullwidth ５", "arabic # and fullwidth #"),
            ("'Hello,' he said", "` hello , ' he said"),
            ('("x")', "-lrb- `` x '' -rrb-"),
            ("etc...", "etc ..."),
            ("World No. 1 said no.", "world no. # said no ."),
            ("'It is Japan's' shouldn't've", "` it is japan 's ' should n't 've"),
            ("", ""),
            ("?", "?"),
            ("🔴", "🔴"),
        ],
    )  # fmt: skip
    def test_tokens(self, text: str, tokens: str) -> None:
        assert " ".join(PAPER.words(text)) == tokens

    @pytest.mark.parametrize(
        "line",
        [
            "sri lanka 's u.s. envoy -lrb- aged ## -rrb- said `` no '' to #.# billion us$ .",
            "nec UNK in computer sales tie-up",
            "the <unk> rose ##,###-## ,### points , s&amp;p said ; cote d'ivoire 's `` rock 'n' roll ''",
            "ministers meet in washington d.c.",
            "hiv\\/aids talks open _ first in ## years --",
            "rare abbrev. stays as it is in tokenised text .",
            "he did n't say it 's `` over . ''",
            '" quoted "',
        ],
    )
    def test_tokenised_text_passes_unchanged(self, line: str) -> None:
        assert " ".join(PAPER.words(line)) == line

    def test_a_final_period_betrays_raw_lower_case_text(self) -> None:
        assert PAPER.words("they met mr. smith friday.")[-2:] == ["friday", "."]

    @given(any_text)
    @settings(max_examples=1000)
    @example("'tis the 'season'")
    @example('."\'."')
    @example("a.'b.")
    @example("İ\u093c")
    def test_tokenising_twice_is_tokenising_once(self, text: str) -> None:
        words = PAPER.words(text)
        assert PAPER.words(PAPER.join(words)) == words

    @given(any_text)
    def test_no_capital_digit_or_space_is_left(self, text: str) -> None:
        for word in PAPER.words(text):
            assert word
            assert not any(character.isspace() or character.isdecimal() for character in word)
            assert word == "UNK" or word == word.lower()

    def test_headline_loses_its_punctuation(self) -> None:
        words = "`` stocks , bonds '' fall - why ? -lrb- again -rrb- \\/ '".split()
        assert PAPER.target_words(words) == "stocks bonds fall why -lrb- again".split()
        assert len(HEADLINE_PUNCTUATION) == 15


class TestNatural:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("Stocks rose 5.25%, (CNN) said.", "Stocks rose 5.25 ￭% ￭, (￭ CNN ￭) said ￭."),
            ('Japan\'s U.S.-led "talks"', 'Japan ￭\'s U.S. ￭-￭ led "￭ talks ￭"'),
            ("don't O'Neill's workers' '90s", "don't O'Neill ￭'s workers ￭' '￭ 90s"),
            ("$1,234.5bn at 10:30 a.m.", "$￭ 1,234.5 ￭bn at 10:30 a.m."),
            ("🔴Live", "🔴￭ Live"),
            ("हिन्दी में", "हिन्दी में"),
        ],
    )
    def test_words(self, text: str, words: str) -> None:
        assert NATURAL.words(text) == words.split(" ")
        assert NATURAL.join(NATURAL.words(text)) == text

    @given(any_text)
    @settings(max_examples=1000)
    def test_joining_gives_the_text_back(self, text: str) -> None:
        words = EVERY_MARK.words(text)
        assert EVERY_MARK.join(words) == clean(text)
        assert all(word.strip(JOINER) and not re.search(r"\s", word) for word in words)

    @given(st.text(st.characters(codec="ascii", min_codepoint=32, max_codepoint=126)))
    def test_printable_ascii_comes_back_up_to_runs_of_spaces(self, text: str) -> None:
        assert NATURAL.join(NATURAL.words(text)) == " ".join(text.split())

    def test_plain_words_have_no_joiners(self) -> None:
        assert NATURAL.plain(["$￭", "5", "￭-￭", "￭."]) == ["$", "5", "-", "."]
        assert PAPER.plain(["$", "#"]) == ["$", "#"]

    def test_what_counts_when_headlines_are_compared(self):
        raw = "Rain, wind and 'snow' hit Oslo's port: $25 million"
        natural = "Rain wind and snow hit Oslo 's port 25 million".split()
        assert NATURAL.compared_words(NATURAL.words(raw)) == natural
        assert NATURAL.compared_words(natural) == natural
        tokens = "rain wind and snow hit oslo 's port : $ ## million".split()
        assert PAPER.compared_words(PAPER.words(raw)) == tokens
        assert PAPER.compared_words(tokens) == tokens

    @pytest.mark.parametrize(
        ("words", "spaced"),
        [
            ("Stocks rose 5.25 ￭% ￭, (￭ CNN ￭) said ￭.", "Stocks| rose| 5.25|%|,| (|CNN|)| said|."),
            ("U.S. ￭-￭ led", "U.S.|-|led"),
            ("￭, first", ",| first"),
            ("last (￭", "last| ("),
            ("a ￭ b ￭￭ c", "a||b||c"),
        ],
    )
    def test_spaces_are_where_no_joiner_is(self, words: str, spaced: str) -> None:
        assert NATURAL.spaced(words.split()) == spaced.split("|")

    def test_headline_keeps_everything(self) -> None:
        assert NATURAL.target_words(["Why", "￭?"]) == ["Why", "￭?"]

    def test_join_takes_whatever_a_model_writes(self) -> None:
        assert NATURAL.join([JOINER, "a", JOINER + JOINER, "b"]) == "ab"
        assert NATURAL.join([]) == ""


class TestTypographic:
    @pytest.mark.parametrize(
        ("marks", "typed"),
        [
            ("‘’‚‛‹›ʻʼ´′", "'"),
            ("“”„‟«»″", '"'),
            ("–‐‑‒−", "-"),
            ("—―", " - "),
            ("…", "..."),
            ("‥", ".."),
            ("․", "."),
            ("⁄", "/"),
        ],
    )
    def test_what_each_becomes(self, marks: str, typed: str) -> None:
        for mark in marks:
            assert NATURAL.join(NATURAL.words(f"a{mark}b")) == f"a{typed}b"
            assert NATURAL.join(NATURAL.words(mark)) == typed.strip()

    def test_all_of_them_are_tested_here(self) -> None:
        assert sorted(TYPOGRAPHIC) == sorted("‘’‚‛‹›ʻʼ´′“”„‟«»″–‐‑‒−—―…‥․⁄")

    @pytest.mark.parametrize(
        ("typeset", "straight"),
        [
            ("Japan’s “U.S.‑led” talks", 'Japan\'s "U.S.-led" talks'),
            ("He didn’t – he couldn’t", "He didn't - he couldn't"),
            ("the deal—its first—was 10–12", "the deal - its first - was 10-12"),
            ("the deal — its first\u00a0—\u2009was", "the deal - its first - was"),
            ("— Oslo —", "- Oslo -"),
            ("‘It’s… over’", "'It's... over'"),
            ("−5 °C, 3⁄4", "-5 °C, 3/4"),
        ],
    )
    def test_sentences(self, typeset: str, straight: str) -> None:
        assert NATURAL.words(typeset) == NATURAL.words(straight)
        assert NATURAL.join(NATURAL.words(typeset)) == straight

    @pytest.mark.parametrize(
        "text", ["£5 €6 ₹7 © 1° · • ™", "½ ﬁ é 😀", "今天，天气「好」。", "`a`"]
    )
    def test_what_no_keyboard_has_a_mark_for_stays(self, text: str) -> None:
        assert NATURAL.join(NATURAL.words(text)) == text

    @given(any_text)
    @settings(max_examples=500)
    def test_folding_twice_is_folding_once(self, text: str) -> None:
        words = NATURAL.words(text)
        joined = NATURAL.join(words)
        assert NATURAL.words(joined) == words
        assert TYPOGRAPHIC.keys().isdisjoint(joined)
        assert clean(joined) == joined

    @given(any_text, st.sets(st.sampled_from([*TYPOGRAPHIC])))
    def test_a_profile_that_keeps_some_folds_the_others(self, text: str, kept: set[str]) -> None:
        profile = NATURAL.keeping_marks(kept)
        words = profile.words(text)
        assert profile.words(profile.join(words)) == words
        assert {*profile.join(words)} & TYPOGRAPHIC.keys() == {*clean(text)} & kept
        assert NATURAL.words(profile.join(words)) == NATURAL.words(text)

    def test_words_with_marks_that_are_kept(self) -> None:
        profile = NATURAL.keeping_marks("abc’—“")
        assert profile.words("O’Neill’s “no”—yes") == 'O’Neill ￭’s “￭ no ￭" ￭—￭ yes'.split()

    def test_profiles_that_do_the_same_are_one(self) -> None:
        assert NATURAL.keeping_marks("abc") is NATURAL
        assert NATURAL.keeping_marks("x’«") is NATURAL.keeping_marks("«’") is not NATURAL
        assert NATURAL.keeping_marks("’").keeping_marks("«") is NATURAL.keeping_marks("’«")
        assert PAPER.keeping_marks("’") is PAPER
        assert NATURAL.keeping_marks("’").name == "natural"


class TestSpaced:
    @pytest.mark.parametrize("profile", [PAPER, NATURAL], ids=lambda profile: profile.name)
    @given(st.lists(st.text(st.sampled_from(["a", "é", ".", "#", JOINER]), max_size=4)))
    def test_words_keep_their_number_and_join_to_the_text(
        self, profile: Profile, words: list[str]
    ) -> None:
        spaced = profile.spaced(iter(words))
        assert "".join(spaced) == profile.join(words)
        assert [word.removeprefix(" ") for word in spaced] == list(profile.plain(words))

    def test_tokens_have_a_space_before_each_but_the_first(self) -> None:
        assert PAPER.spaced(["japan", "'s", "$", "#"]) == ["japan", " 's", " $", " #"]
        assert PAPER.join(["japan", "'s"]) == "japan 's"
        assert PAPER.spaced([]) == NATURAL.spaced([]) == []


def test_profiles_are_found_by_name() -> None:
    assert PROFILES == {"paper": PAPER, "natural": NATURAL}
