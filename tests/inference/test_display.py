import io
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.segment import Segment

from html_page import Elements
from ledeline.inference.checks.doubt import Doubt
from ledeline.inference.display import COLOURS, render_html, render_terminal
from ledeline.inference.headline import (
    WARNING_KINDS,
    Alignment,
    Candidate,
    Headline,
    HeadlineWarning,
)

SOURCE = ("Tokyo", " stocks", " rose", " sharply", " (", "5", "%", ")", " on", " Friday", ".")
WORDS = ("Tokyo", " stocks", " rise", ",", " rise")
LINKED = (0, 1, 2, 6, 2)  # the place of each word's source word; two come from one


def rows(peak: float) -> tuple[tuple[float, ...], ...]:
    """Each word's source word has the peak, less one hundredth a word."""
    return tuple(
        tuple(peak - j / 100 if i == place else 0.01 for i in range(len(SOURCE)))
        for j, place in enumerate(LINKED)
    )


ALIGNED = Headline(
    "".join(SOURCE),
    "".join(WORDS),
    tuple(word.strip() for word in WORDS),
    -0.314,
    alignment=Alignment(SOURCE, WORDS, rows(0.71), rows(0.93)),
)
ATTENDED = replace(ALIGNED, alignment=Alignment(SOURCE, WORDS, rows(0.71), None))
PLAIN = replace(ALIGNED, alignment=None)
CAUTIONS = (
    HeadlineWarning("cut", "3 words of [Friday] were left out"),
    HeadlineWarning("repetition", "rise"),
)
BEST = tuple(
    Candidate(text, (), score, truncated)
    for text, score, truncated in [
        ("Tokyo stocks rise, rise", -0.314, False),
        ("Tokyo & <b>co</b> [rise]", -0.526, False),
        ("", -1.5, False),
        ("Tokyo stocks on", -2.0, True),
    ]
)
DOUBTS = (
    Doubt(0, 5, "Tokyo", "place", 'the lede has "Osaka"'),
    Doubt(6, 17, "stocks rise", "role", "bonds rose"),
)
CHECKED = replace(
    PLAIN,
    support=0.126,
    doubts=DOUBTS,
    warnings=(*CAUTIONS, *(HeadlineWarning("doubt", str(one)) for one in DOUBTS)),
)
EMPTY = Headline("", "", warnings=(HeadlineWarning("empty", WARNING_KINDS["empty"]),))


# --- terminal -------------------------------------------------------------------------------------


def printed(headline: Headline, width: int = 80) -> list[str]:
    """The lines that a file gets."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(headline)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def segments(headline: Headline) -> list[Segment]:
    console = Console(width=80, color_system="truecolor", force_terminal=True)
    found = console.render(render_terminal(headline))
    return [segment for segment in found if segment.text.strip() and segment.style is not None]


def coloured(headline: Headline) -> list[tuple[str, str]]:
    """What has a colour of the palette, in order."""
    return [
        (segment.text.strip(), segment.style.color.name)
        for segment in segments(headline)
        if segment.style is not None and segment.style.color and segment.style.color.name in COLOURS
    ]


class TestTerminal:
    def test_without_alignment_a_headline_is_one_bold_line(self) -> None:
        assert printed(PLAIN) == ["Tokyo stocks rise, rise"]
        assert [str(segment.style) for segment in segments(PLAIN)] == ["bold"]

    def test_a_file_gets_dropped_words_in_brackets_and_the_links(self) -> None:
        assert printed(ALIGNED) == [
            "Tokyo stocks rise, rise",
            "",
            "Tokyo stocks rose [sharply (5]%[) on Friday.]",
            "",
            "headline  ← source   SPM  attention",
            "Tokyo     ← Tokyo   93 %       71 %",
            "stocks    ← stocks  92 %       70 %",
            "rise      ← rose    91 %       69 %",
            ",         ← %       90 %       68 %",
            "rise      ← rose    89 %       67 %",
        ]

    def test_without_an_spm_there_is_attention_alone(self) -> None:
        lines = printed(ATTENDED)
        assert lines[4:6] == ["headline  ← source  attention", "Tokyo     ← Tokyo        71 %"]
        assert lines[:4] == printed(ALIGNED)[:4]

    def test_words_have_the_colour_of_what_they_came_from(self) -> None:
        blue, orange, green, pink, *_ = COLOURS
        headline = [("Tokyo", blue), ("stocks", orange), ("rise", green), (",", pink)]
        source = [("Tokyo", blue), ("stocks", orange), ("rose", green), ("%", pink)]
        found = coloured(ALIGNED)
        assert found[:9] == [*headline, ("rise", green), *source]
        assert str(segments(ALIGNED)[0].style) == f"bold {blue}"
        assert found[-2:] == [("rise", green), ("← rose", green)]  # both rises came from one rose

    def test_colours_come_again_when_all_are_used(self) -> None:
        number = len(COLOURS) + 2
        words, others = (tuple(f" {mark}{j}" for j in range(number)) for mark in "ab")
        share = tuple(
            tuple(float(i + j + 1 == number) for i in range(number)) for j in range(number)
        )
        many = replace(ALIGNED, alignment=Alignment(words, others, share, None))
        of_headline, of_source = coloured(many)[:number], coloured(many)[number : 2 * number]
        assert [colour for _, colour in of_headline] == [*COLOURS, *COLOURS[:2]]
        assert [colour for _, colour in reversed(of_source)] == [*COLOURS, *COLOURS[:2]]

    def test_dropped_words_are_dim_and_used_ones_are_not(self) -> None:
        dim = [one.text.strip() for one in segments(ALIGNED) if one.style and one.style.dim]
        assert dim[:2] == ["[sharply (5]", "[) on Friday.]"]
        assert not {"Tokyo", "rose", "%"} & set(dim)

    def test_colours_read_on_black_and_on_white(self) -> None:
        def linear(part: str) -> float:  # as WCAG 2 defines it
            value = int(part, 16) / 255
            return value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4

        for colour in COLOURS:
            red, green, blue = map(linear, re.findall("[0-9a-f]{2}", colour))
            brightness = 0.2126 * red + 0.7152 * green + 0.0722 * blue
            assert (brightness + 0.05) / 0.05 >= 4.5
            assert 1.05 / (brightness + 0.05) >= 4.5
        assert len(set(COLOURS)) == len(COLOURS)

    def test_several_alternatives_come_with_their_scores(self) -> None:
        lines = printed(replace(PLAIN, alternatives=BEST))
        assert lines == [
            "Tokyo stocks rise, rise",
            "-0.31  Tokyo stocks rise, rise",
            "-0.53  Tokyo & <b>co</b> [rise]",
            "-1.50  (no headline)",
            "-2.00  Tokyo stocks on …",
        ]
        assert printed(replace(PLAIN, alternatives=BEST[:1])) == lines[:1]

    def test_each_warning_is_a_yellow_line(self) -> None:
        warned = replace(PLAIN, warnings=CAUTIONS)
        lines = ["cut: 3 words of [Friday] were left out", "repetition: rise"]
        assert printed(warned)[1:] == lines
        yellow = [one.text for one in segments(warned) if str(one.style) == "yellow"]
        assert yellow == lines

    def test_support_and_doubts_stand_below_each_once(self) -> None:
        lines = [
            "Tokyo stocks rise, rise",
            "support 13 %",
            "cut: 3 words of [Friday] were left out",
            "repetition: rise",
            'doubt (place): "Tokyo": the lede has "Osaka"',
            'doubt (role): "stocks rise": bonds rose',
        ]
        assert printed(CHECKED) == lines
        assert printed(replace(CHECKED, doubts=(), warnings=())) == lines[:2]
        assert printed(replace(PLAIN, support=0.0))[1] == "support 0 %"  # not the same as none

    @pytest.mark.parametrize("alignment", [None, ALIGNED.alignment])
    def test_doubted_words_are_underlined(self, alignment: Alignment | None) -> None:
        found = segments(replace(CHECKED, alignment=alignment))
        lined = [one.text for one in found if one.style and one.style.underline]
        assert "".join(lined).split() == ["Tokyostocks", "rise"]  # not the space, not the rest
        assert not any(one.style and one.style.underline for one in segments(PLAIN))

    def test_a_headline_that_was_left_out_shows_no_support(self) -> None:
        left = (HeadlineWarning("left out", "0.30 is less than 0.8"),)
        shown = printed(Headline("a lede", "", warnings=left, support=0.3))
        assert shown == ["(no headline)", "left out: 0.30 is less than 0.8"]

    def test_alternatives_have_their_support(self) -> None:
        some = (BEST[0]._replace(support=0.5), BEST[1]._replace(support=1.0))
        assert printed(replace(PLAIN, alternatives=some))[1:] == [
            "-0.31   50 %  Tokyo stocks rise, rise",
            "-0.53  100 %  Tokyo & <b>co</b> [rise]",
        ]

    def test_a_headline_does_not_control_the_terminal(self) -> None:
        doubts = (Doubt(0, 5, "\x1b[31m", "name", "no \x9b"),)
        evil = Headline("a", "\x1b[31mBob\nAnn\xa0é", support=0.5, doubts=doubts)
        assert printed(evil)[0] == "\ufffd[31mBob Ann\xa0é"
        assert not {"\x1b", "\x9b"} & set("".join(printed(evil)))

    @pytest.mark.parametrize("alignment", [None, Alignment(SOURCE, (), (), None)])
    def test_no_headline_shows_why(self, alignment: Alignment | None) -> None:
        empty = replace(EMPTY, alignment=alignment)
        assert printed(empty) == ["(no headline)", f"empty: {WARNING_KINDS['empty']}"]
        assert str(segments(empty)[0].style) == "dim"

    @pytest.mark.parametrize("width", [40, 80])
    def test_long_texts_wrap_between_words(self, width: int) -> None:
        endless = "z" * 90
        long = Alignment(
            (*SOURCE, *(" lengthy",) * 60, f" {endless}"),
            (*WORDS, f" {endless}"),
            (*((*row, *(0.0,) * 61) for row in rows(0.71)), (*(0.0,) * 71, 1.0)),
            None,
        )
        many = "many words " * 10
        lines = printed(
            replace(
                ALIGNED,
                alternatives=(*BEST[:1], Candidate(many, (), -0.5)),
                warnings=(HeadlineWarning("cut", many),),
                alignment=long,
            ),
            width,
        )
        assert max(map(len, lines)) <= width
        assert sum(line.count("lengthy") for line in lines) == 60
        assert sum(line.count("many") for line in lines) == 20
        shares = [line.split()[-2] for line in lines if line.endswith("%")]
        assert shares == ["71", "70", "69", "68", "67", "100"]
        assert "".join(lines).count("z") == 4 * 90  # in headline, source and table


# --- notebook -------------------------------------------------------------------------------------

TAGS = {"div", "p", "span", "u", "ol", "li", "small", "ruby", "mark", "rp", "rt", "del"}
SHOWN = {"title", "style", "dir", "role", "aria-label"}


class Page(Elements):
    """What a browser makes of a fragment."""

    def all(self, tag: str) -> list[tuple[str, dict[str, str | None]]]:
        """Text and attributes of each such element."""
        return [("".join(text), about) for name, about, text in self.elements if name == tag]

    def texts(self, tag: str) -> list[str]:
        return [text for text, _ in self.all(tag)]


class TestNotebook:
    def test_without_alignment_it_is_the_headline(self) -> None:
        page = Page(render_html(PLAIN))
        assert page.texts("p") == ["Tokyo stocks rise, rise"]
        assert not page.all("mark")

    def test_each_used_word_is_marked_once_and_says_why(self) -> None:
        assert [
            (text, about["title"]) for text, about in Page(render_html(ALIGNED)).all("mark")
        ] == [
            ("Tokyo", "Tokyo ← Tokyo, SPM 93 %, attention 71 %"),
            ("stocks", "stocks ← stocks, SPM 92 %, attention 70 %"),
            (
                "rose",
                "rise ← rose, SPM 91 %, attention 69 %; rise ← rose, SPM 89 %, attention 67 %",
            ),
            ("%", ", ← %, SPM 90 %, attention 68 %"),
        ]

    def test_without_an_spm_it_is_not_spoken_of(self) -> None:
        html = render_html(ATTENDED)
        assert "SPM" not in html
        assert Page(html).all("mark")[0][1]["title"] == "Tokyo ← Tokyo, attention 71 %"

    def test_without_colour_the_form_tells(self) -> None:
        page = Page(render_html(ALIGNED))
        assert page.texts("del") == ["sharply (5", ") on Friday."]
        assert page.texts("rt") == ["Tokyo", "stocks", "rise, rise", ","]
        assert all("font-size" in (about["style"] or "") for _, about in page.all("del"))

    def test_source_and_headline_are_spaced_as_they_were(self) -> None:
        html = render_html(ALIGNED)
        headline, source = Page(html).texts("p")
        assert headline == "Tokyo stocks rise, rise"
        assert Page(re.sub("<(r[pt])>.*?</\\1>", "", html)).texts("p")[1] == "".join(SOURCE)
        assert source.startswith("Tokyo (Tokyo) stocks (stocks) rose (rise, rise) sharply (5% (,))")

    def test_words_have_the_colour_of_what_they_came_from(self) -> None:
        page = Page(render_html(ALIGNED))
        words = {text: about["style"] for text, about in page.all("span")}
        sources = {text: about["style"] for text, about in page.all("mark")}
        assert words["rise"] == sources["rose"]
        assert words[","] == sources["%"]
        assert len(set(words.values())) == len(set(sources.values())) == 4

    def test_it_takes_the_colour_of_text_from_the_page(self) -> None:
        html = render_html(replace(ALIGNED, alternatives=BEST, warnings=CAUTIONS))
        assert set(re.findall(r"[;\"]color:([^;\"]*)", html)) == {"inherit"}
        backgrounds = set(re.findall(r"background:([^;\"]*)", html))
        assert backgrounds == {f"{colour}40" for colour in COLOURS[:4]}

    def test_several_alternatives_come_with_their_scores(self) -> None:
        page = Page(render_html(replace(PLAIN, alternatives=BEST)))
        assert page.texts("li") == [
            "Tokyo stocks rise, rise -0.31",
            "Tokyo & <b>co</b> [rise] -0.53",
            "(no headline) -1.50",
            "Tokyo stocks on … -2.00",
        ]
        assert "<li>" not in render_html(replace(PLAIN, alternatives=BEST[:1]))

    def test_warnings_are_lines(self) -> None:
        page = Page(render_html(replace(PLAIN, warnings=CAUTIONS)))
        assert page.texts("p")[1:] == [str(warning) for warning in CAUTIONS]

    @pytest.mark.parametrize("alignment", [None, ALIGNED.alignment])
    def test_doubted_words_are_underlined_and_say_why(self, alignment: Alignment | None) -> None:
        page = Page(render_html(replace(CHECKED, alignment=alignment)))
        whole = ["stocks rise"] if alignment is None else ["stocks", "rise"]
        assert [(text, about["title"]) for text, about in page.all("u")] == [
            ("Tokyo", 'place: the lede has "Osaka"'),
            *((text, "role: bonds rose") for text in whole),
        ]
        assert page.texts("p")[:2] == ["Tokyo stocks rise, rise", "support 13 %"]

    def test_doubts_are_lines_for_those_who_cannot_hover(self) -> None:
        lines = Page(render_html(CHECKED)).texts("p")[2:]
        assert lines == printed(CHECKED)[2:]

    def test_doubts_may_overlap(self) -> None:
        both = (DOUBTS[1], Doubt(13, 17, "rise", "time", "in May"))
        found = Page(render_html(replace(PLAIN, doubts=both))).all("u")
        assert [(text, about["title"]) for text, about in found] == [
            ("stocks ", "role: bonds rose"),
            ("rise", "role: bonds rose; time: in May"),
        ]

    def test_alternatives_have_their_support(self) -> None:
        some = (BEST[0]._replace(support=0.5), BEST[1])
        items = Page(render_html(replace(PLAIN, alternatives=some))).texts("li")
        assert items == [
            "Tokyo stocks rise, rise -0.31, support 50 %",
            "Tokyo & <b>co</b> [rise] -0.53",
        ]

    @pytest.mark.parametrize("alignment", [None, Alignment(SOURCE, (), (), None)])
    def test_no_headline_shows_why(self, alignment: Alignment | None) -> None:
        page = Page(render_html(replace(EMPTY, alignment=alignment)))
        assert page.texts("p") == ["(no headline)", f"empty: {WARNING_KINDS['empty']}"]

    @given(
        st.text("<>&\"'/=;abc \u05d0\u2028", min_size=1, max_size=12).map(str.strip).filter(bool)
    )
    def test_no_text_is_ever_markup(self, text: str) -> None:
        evil = Headline(
            text,
            text,
            (text,),
            -1.0,
            (Candidate(text, (text,), -1.0),) * 2,
            warnings=(HeadlineWarning("unseen", text),),
            alignment=Alignment((text, f" {text}"), (text,), ((1.0, 0.0),), None),
            support=0.5,
            doubts=(Doubt(0, len(text), text, "name", text),),
        )
        page = Page(render_html(evil))
        assert {tag for tag, _, _ in page.elements} == TAGS
        assert {name for _, about, _ in page.elements for name in about} == SHOWN
        for tag in ("span", "u", "mark", "rt", "del"):
            assert page.texts(tag) == [text]
        assert page.texts("li") == [f"{text} -1.00"] * 2
        assert page.texts("p")[2] == f"unseen: {text}"
        assert page.texts("p")[3] == f'doubt (name): "{text}": {text}'
        assert page.all("u")[0][1]["title"] == f"name: {text}"
        assert Page(render_html(replace(evil, alignment=None))).texts("p")[0] == text
        assert page.all("mark")[0][1]["title"] == f"{text} ← {text}, attention 100 %"


def test_rich_and_notebooks_find_them() -> None:
    assert printed(PLAIN) == ["Tokyo stocks rise, rise"]  # which the console found by itself
    assert PLAIN._repr_html_() == render_html(PLAIN)
