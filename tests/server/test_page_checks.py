"""Support and doubts on the page of `ledeline serve`, and the check of one's own headline."""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

pytest.importorskip("uvicorn")

from browser import Page, expect
from ledeline.server.settings import LimitsConfig
from server_page import address, button, error, headlines, lede_box, status, visit, word, written

pytestmark = pytest.mark.usefixtures("one_thread")

LEDE: Final = "Profit rose to 282 million pounds last year, Jane Miller said on Tuesday."
# The flag is two UTF-16 units a letter: positions count characters.
WORDS: Final = ["\U0001f1ec\U0001f1e7", " Jane", " Miller", " says", " profit", " was", " 28m"]
HEADLINE: Final = "".join(WORDS)
WHY: Final = "the lede has 282 million"


def doubt(words: str, why: str) -> dict[str, Any]:
    start = HEADLINE.index(words)
    return {"start": start, "end": start + len(words), "words": words, "kind": "number", "why": why}


def answer(support: float | None, *doubts: dict[str, Any]) -> dict[str, Any]:
    """An answer of /v1/headlines."""
    shares = [[0.5, 0.5] for _ in WORDS]
    checked = {} if support is None else {"support": support, "doubts": list(doubts)}
    warnings = [{"kind": "doubt", "message": f'"{one["words"]}": {one["why"]}'} for one in doubts]
    alternative = {"headline": HEADLINE, "score": -0.5, "truncated": False}
    other = {} if support is None else {"support": 0.046, "doubts": []}
    one = {
        "source": LEDE,
        "headline": HEADLINE,
        "score": -0.5,
        "truncated": False,
        "warnings": warnings,
        **checked,
        "alternatives": [alternative | checked, alternative | other],
        "alignment": {
            "words": [],
            "dropped": [],
            "heat_map": {
                "source": ["Profit", " rose"],
                "headline": WORDS,
                "attention": shares,
                "spm": shares,
            },
        },
    }
    return {"headlines": [one]}


def shown(page: Page, given: dict[str, Any]) -> None:
    """Let the page write a headline, with this answer."""
    page.route("**/v1/headlines", lambda route: route.fulfill(json=given))
    written(page, LEDE)


@pytest.fixture(scope="module")
def server(serve: Callable[..., Any]) -> Iterator[Any]:
    with serve() as running:
        yield running


LINE: Final = "(one) => getComputedStyle(one).textDecorationColor"
GROUND: Final = "(one) => getComputedStyle(one).backgroundColor"


class TestDoubts:
    def test_doubted_words_are_underlined(self, page: Page) -> None:
        shown(page, answer(0.934, doubt("was 28m", WHY)))
        doubted = page.locator(".headline .doubt")
        expect(doubted).to_have_text(["was", "28m"])
        for one in doubted.all():
            expect(one).to_have_css("text-decoration-line", "underline")
            expect(one).to_have_css("text-decoration-style", "wavy")

    def test_the_reason_is_shown_on_hover_and_on_focus(self, page: Page) -> None:
        shown(page, answer(0.934, doubt("28m", WHY), doubt("Jane Miller", "nobody")))
        readout = page.locator(".readout")
        word(page, 6).hover()
        expect(readout).to_contain_text(f"(doubtful: {WHY})")
        page.mouse.move(0, 0)
        word(page, 0).focus()
        expect(readout).not_to_contain_text("doubtful")
        page.keyboard.press("ArrowRight")
        expect(readout).to_contain_text("(doubtful: nobody)")

    def test_and_described_for_screen_readers(self, page: Page) -> None:
        shown(page, answer(0.934, doubt("28m", WHY), doubt("was 28m", "it may be")))
        said = re.compile(f"{WHY}.*it may be")
        expect(word(page, 6)).to_have_accessible_description(said)
        expect(word(page, 5)).to_have_accessible_description(re.compile("it may be"))
        for place in (4, 5):
            expect(word(page, place)).not_to_have_accessible_description(re.compile(WHY))

    def test_each_doubt_is_listed_once(self, page: Page) -> None:
        shown(page, answer(0.934, doubt("28m", WHY)))
        items = page.get_by_role("list", name="Warnings").get_by_role("listitem")
        expect(items).to_have_text([f"Doubtful: “28m”: {WHY}"])

    def test_support_is_a_number_with_a_word(self, page: Page) -> None:
        shown(page, answer(0.934))
        expect(page.locator(".support")).to_have_text("support 93 %, no doubtful words")
        rows = page.locator(".alternatives tr").all_inner_texts()
        assert [row.split("\t")[1] for row in rows] == ["support", "93 %", "5 %"]

    def test_what_was_not_checked_has_none(self, page: Page) -> None:
        shown(page, answer(None))
        expect(page.locator(".support, .doubt")).to_have_count(0)
        assert "support" not in page.locator("#results").inner_text().lower()

    def test_a_headline_that_was_left_out(self, page: Page) -> None:
        warning = {"kind": "left out", "message": "the best headline has a support of 0.11"}
        one = {"source": LEDE, "headline": "", "score": None, "truncated": False}
        shown(page, {"headlines": [{**one, "warnings": [warning], "support": 0.11, "doubts": []}]})
        expect(page.locator(".headline")).to_have_text("(no headline)")
        expect(page.locator(".warnings li")).to_have_text([f"Left out: {warning['message']}"])
        expect(page.locator(".support")).to_have_count(0)

    @pytest.mark.parametrize("theme", ["light", "dark"])
    def test_the_line_can_be_seen(self, page: Page, theme: Any) -> None:
        page.emulate_media(color_scheme=theme)
        shown(page, answer(0.934, doubt("28m", WHY)))
        line, ground = word(page, 6).evaluate(LINE), page.locator(".result").evaluate(GROUND)
        assert contrast(line, ground) >= 3


def contrast(*colours: str) -> float:
    """The contrast of two colours, as WCAG 2 defines it."""

    def light(colour: str) -> float:
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [x / 12.92 if x <= 0.03928 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05

    dark, bright = sorted(map(light, colours))
    return bright / dark


class TestOwnHeadline:
    @staticmethod
    def check(page: Page, lede: str, headline: str) -> None:
        lede_box(page).fill(lede)
        own = page.get_by_role("textbox", name="Your own headline")
        own.fill(headline)
        own.press("Enter")

    def test_it_is_checked_against_the_lede(self, page: Page, server: Any) -> None:
        headline = "\U0001f1ec\U0001f1e7 Profit rose to 28m"
        found = server.ask("/v1/check", {"lede": LEDE, "headline": headline}).json["checks"][0]
        assert [one["words"] for one in found["doubts"]] == ["28m"]
        lede_box(page).fill(LEDE)
        page.get_by_role("textbox", name="Your own headline").fill(headline)
        button(page, "Check").click()
        expect(status(page)).to_have_text(re.compile(r"^Support \d+ %, in "))
        expect(page.locator("#results-title")).to_have_text("Check")
        assert headlines(page) == [headline]
        share = f"{100 * found['support']:.0f}"
        expect(page.locator(".support")).to_have_text(re.compile(rf"^support {share} %, doubtful"))
        doubted = page.locator(".headline .doubt")
        expect(doubted).to_have_text(["28m"])
        expect(doubted).to_have_attribute("title", WHY)
        expect(doubted).to_have_accessible_description(re.compile(WHY))
        page.locator(".copy").focus()
        page.keyboard.press("Shift+Tab")
        expect(doubted).to_be_focused()
        expect(page.locator(".lede")).to_have_text(LEDE)

    def test_markup_stays_text(self, page: Page) -> None:
        self.check(page, LEDE, "<b>Boris Johnson</b><img src=x onerror=alert(1)> rose")
        expect(page.locator(".headline")).to_contain_text("<b>Boris")
        expect(page.locator("main b, main img")).to_have_count(0)

    def test_nothing_to_check(self, page: Page) -> None:
        nothing = {"checks": [{"support": None, "doubts": []}]}
        page.route("**/v1/check", lambda route: route.fulfill(json=nothing))
        self.check(page, "Rain fell.", "\U0001f600")
        expect(status(page)).to_contain_text("Nothing to check")
        expect(page.locator(".support, .doubt")).to_have_count(0)

    @pytest.mark.parametrize(
        ("lede", "headline", "sentence"),
        [
            ("", "Rain falls", "Write or paste a lede first."),
            ("Rain fell.", " ", "Write or paste a headline first."),
            ("Rain fell.\nSnow fell.", "Rain falls", "checked against one lede; there are 2."),
        ],
    )
    def test_what_is_missing_is_said(
        self, page: Page, lede: str, headline: str, sentence: str
    ) -> None:
        self.check(page, lede, headline)
        expect(error(page)).to_contain_text(sentence)

    def test_trying_again_checks_again(self, blank: Page, server: Any) -> None:
        visit(blank, address(server))
        refused = {"status": 503, "json": {"detail": "busy"}, "headers": {"Retry-After": "1"}}
        blank.route("**/v1/check", lambda route: route.fulfill(**refused), times=1)
        self.check(blank, LEDE, "Profit rose to 28m")
        retry = error(blank).get_by_role("button")
        expect(retry).to_have_text("Try again")
        retry.click()
        expect(blank.locator("#results-title")).to_have_text("Check")
        expect(error(blank)).to_be_hidden()

    def test_a_lede_that_is_too_long(self, blank: Page, serve: Callable[..., Any]) -> None:
        with serve(limits=LimitsConfig(characters=20)) as running:
            visit(blank, address(running))
            expect(blank.locator("#count")).to_contain_text("20 characters")
            self.check(blank, LEDE, "Profit rose")
            expect(error(blank)).to_contain_text("characters; the server takes 20")
