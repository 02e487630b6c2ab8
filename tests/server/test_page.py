"""The page of `ledeline serve` in a real browser, where there is one, against a real server."""

import re
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, Final

import pytest

pytest.importorskip("uvicorn")

from browser import Log, Page, expect
from ledeline.inference.sample_ledes import LEDES as EXAMPLES
from ledeline.server.settings import LimitsConfig
from live import TOKEN
from server_page import (
    LEDES,
    address,
    asked,
    button,
    error,
    example,
    headlines,
    lede_box,
    marks,
    status,
    visit,
    wait_until_written,
    write,
    written,
)

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def server(serve: Callable[..., Any]) -> Iterator[Any]:
    with serve() as running:
        yield running


class TestExample:
    def test_it_is_there_at_first(self, page: Page, server: Any) -> None:
        shown_first = example(server)
        expect(page.locator("#results-title")).to_have_text("An example")
        assert headlines(page) == [shown_first["headline"]]
        source = "".join(shown_first["alignment"]["heat_map"]["source"])
        assert page.locator(".lede").inner_text() == source
        first, *others = page.locator(".alternatives tbody th").all_inner_texts()
        assert first == "This headline"
        shown = [text.removesuffix(" Copy").removesuffix(" …") for text in others]
        assert shown == [one["headline"] for one in shown_first["alternatives"][1:]]
        assert marks(page)  # those of one word, unasked
        box = page.locator(".alternatives").bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < 900  # all of it on the first screen

    def test_scores_are_also_probabilities(self, page: Page, server: Any) -> None:
        scores = [one["score"] for one in example(server)["alternatives"]]
        shown = page.locator(".alternatives tbody tr").all_inner_texts()
        assert len(shown) == 3
        for row, value in zip(shown, scores, strict=True):
            _, score, share = row.split("\t")
            assert float(score.replace("−", "-")) == pytest.approx(value, abs=0.0051)
            assert float(share.removesuffix(" %")) == pytest.approx(100 * 2.718282**value, abs=0.51)

    def test_dropped_words_are_struck_out(self, page: Page, server: Any) -> None:
        alignment = example(server)["alignment"]
        dropped = [one["word"] for one in alignment["dropped"]]
        assert page.locator(".lede .dropped").all_inner_texts() == dropped
        assert page.locator(".lede del .source").all_inner_texts() == dropped
        struck = page.locator(".lede del").first
        expect(struck).to_have_css("text-decoration-line", "line-through")
        expect(page.locator("p.note .dropped")).to_have_text(["dropped"])

    def test_examples_fill_the_box(self, page: Page) -> None:
        examples = page.get_by_role("group", name="Examples").get_by_role("button")
        examples.nth(1).click()
        expect(lede_box(page)).to_have_value(EXAMPLES[1])
        examples.last.click()
        expect(lede_box(page)).to_have_value("\n".join(EXAMPLES))
        expect(button(page, "Write 5 headlines")).to_be_visible()

    def test_examples_take_nothing_away(self, page: Page) -> None:
        lede_box(page).fill("My own lede.")
        page.get_by_role("group", name="Examples").get_by_role("button").first.click()
        expect(lede_box(page)).to_have_value(f"My own lede.\n{EXAMPLES[0]}")


class TestWriting:
    def test_a_lede_gets_its_headline(self, page: Page, server: Any) -> None:
        written(page, LEDES[0])
        headline = asked(server, LEDES[0])["headline"]
        assert headlines(page) == [headline]
        expect(page.locator("#results-title")).to_have_text("Headline")
        expect(status(page)).to_contain_text(headline)
        expect(lede_box(page)).to_be_focused()

    def test_the_button_writes_with_the_settings(self, page: Page, server: Any) -> None:
        page.get_by_text("Settings").click()
        settings = {"Beam": 4, "Headlines": 2, "Minimum length": 2, "Maximum length": 5}
        for name, value in settings.items():
            page.get_by_role("spinbutton", name=name).fill(str(value))
        lede_box(page).fill(LEDES[1])
        button(page, "Write headline").click()
        wait_until_written(page)
        search = server.headliner.options[-1].search
        found = (search.beam, search.n_best, search.min_length, search.max_length)
        assert found == tuple(settings.values())
        expect(page.locator(".alternatives tbody tr")).to_have_count(2)

    def test_settings_that_cannot_be_are_not_sent(self, page: Page, server: Any) -> None:
        num_asked = len(server.headliner.options)
        page.locator("#beam").evaluate("(field) => field.value = 2")
        write(page, LEDES[0])
        num_headlines = page.get_by_role("spinbutton", name="Headlines")
        expect(num_headlines).to_be_visible()  # the settings have been opened
        assert "beam" in num_headlines.evaluate("(field) => field.validationMessage")
        assert len(server.headliner.options) == num_asked

    def test_several_ledes(self, page: Page, server: Any) -> None:
        written(page, LEDES[0], "", LEDES[1], LEDES[2])
        results = page.locator(".result")
        expect(results.locator("> summary > span")).to_have_text(["1 of 3", "2 of 3", "3 of 3"])
        assert headlines(page) == [asked(server, lede)["headline"] for lede in LEDES[:3]]
        results.nth(2).locator(".word").first.hover()
        expect(results.nth(2).locator(".marked")).not_to_have_count(0)
        expect(results.nth(1).locator(".marked")).to_have_count(0)

    def test_many_ledes_fold(self, page: Page, server: Any) -> None:
        written(page, *LEDES)
        results, opened_ones = page.locator("details.result"), page.locator(".headline")
        expect(results).to_have_count(len(LEDES))
        expect(opened_ones).to_have_count(1)
        second = results.nth(1).locator("> summary")
        expect(second.locator("strong bdi")).to_have_text(asked(server, LEDES[1])["headline"])
        second.click()
        expect(opened_ones).to_have_count(2)
        button(page, "Close all").click()
        button(page, "Open all").click()
        expect(opened_ones).to_have_count(len(LEDES))

    def test_it_can_be_cancelled(self, page: Page, server: Any) -> None:
        server.headliner.go.clear()
        try:
            write(page, LEDES[3])
            expect(button(page, "Writing …")).to_be_visible()
            expect(page.locator("#results")).to_have_attribute("aria-busy", "true")
            button(page, "Cancel").click()
            expect(status(page)).to_have_text(re.compile("^Cancelled"))
        finally:
            server.headliner.go.set()
        expect(lede_box(page)).to_have_value(LEDES[3])
        expect(button(page, "Cancel")).to_be_hidden()
        expect(button(page, "Write headline")).to_be_focused()
        expect(page.locator("#results-title")).to_have_text("An example")

    def test_nothing_is_not_sent(self, page: Page, server: Any) -> None:
        num_asked = len(server.headliner.options)
        write(page, "", " ")
        expect(error(page)).to_contain_text("lede first")
        assert len(server.headliner.options) == num_asked


class TestErrors:
    def test_a_stopped_server(self, blank: Page, serve: Callable[..., Any]) -> None:
        with serve() as running:
            visit(blank, address(running))
        write(blank, LEDES[0])
        expect(error(blank)).to_contain_text("cannot be reached")
        expect(error(blank)).to_contain_text("ledeline serve")
        expect(error(blank).get_by_role("button")).to_have_text("Try again")
        expect(lede_box(blank)).to_have_value(LEDES[0])
        expect(button(blank, "Write headline")).to_be_visible()

    def test_a_busy_server(
        self, blank: Page, serve: Callable[..., Any], until: Callable[..., None]
    ) -> None:
        with serve(limits=LimitsConfig(texts=2, waiting=2)) as running:
            visit(blank, address(running))
            running.headliner.go.clear()
            others = [running.asking({"texts": LEDES[:1]})]
            until(lambda: running.load == (0, 1))
            others.append(running.asking({"texts": LEDES[:2]}))
            until(lambda: running.load == (2, 1))
            write(blank, LEDES[0])
            expect(error(blank)).to_contain_text("busy")
            retry = error(blank).get_by_role("button")
            expect(retry).to_have_text(re.compile(r"^Try again in \d+ s$"))
            retry.click(force=True)  # too early
            expect(error(blank)).to_contain_text("busy")
            running.headliner.go.set()
            assert [one.answer.status for one in others] == [200, 200]
            retry.click()  # once that is possible
            wait_until_written(blank)
            expect(error(blank)).to_be_hidden()

    def test_a_refusal_is_in_the_words_of_the_server(self, blank: Page, server: Any) -> None:
        visit(blank, address(server))
        expect(blank.locator("#model")).not_to_be_empty()
        blank.locator("#beam").evaluate("(field) => field.value = field.max = 999")
        write(blank, LEDES[0])
        refused = server.headlines({"texts": [LEDES[0]], "beam": 999}).detail
        sentence = f"{refused.removesuffix('.')}."
        expect(error(blank)).to_have_text(sentence, ignore_case=True)

    def test_what_failed_there(self, blank: Page, server: Any) -> None:
        visit(blank, address(server))
        server.headliner.poison = LEDES[4]
        write(blank, LEDES[4])
        expect(error(blank)).to_contain_text("error (500)")
        server.headliner.poison = None

    def test_limits_are_said_before(self, blank: Page, log: Log, serve: Callable[..., Any]) -> None:
        with serve(limits=LimitsConfig(texts=2, characters=20, beam=4)) as running:
            visit(blank, address(running))
            expect(blank.locator("#count")).to_contain_text("2 ledes of 20")
            expect(blank.locator("#beam")).to_have_value("4")
            write(blank, "a", "b", "c")
            expect(blank.locator("#count")).to_contain_text("the server takes 2")
            expect(error(blank)).to_contain_text("the server takes 2")
            write(blank, "\U0001f600" * 20, "x" * 21)
            expect(error(blank)).to_contain_text("Line 2 has 21 characters")
            expect(lede_box(blank)).to_have_attribute("aria-invalid", "true")
            assert running.headliner.options == []
            assert log.complaints == []

    def test_a_token_is_asked_for(self, blank: Page, log: Log, serve: Callable[..., Any]) -> None:
        with serve(token=TOKEN) as running:
            visit(blank, address(running))  # the example is public
            field = blank.get_by_label("This server needs a token")
            expect(field).to_be_visible()
            write(blank, LEDES[0])
            expect(field).to_be_focused()
            field.fill("wrong")
            field.press("Enter")
            expect(blank.locator("#token-note")).to_contain_text("not accept")
            field.fill(TOKEN)
            field.press("Enter")
            wait_until_written(blank)
            expect(field).to_be_hidden()
            expect(blank.locator("#model")).to_contain_text("parameters")
            kept = "[Object.values({...sessionStorage}), localStorage.length, document.cookie]"
            assert blank.evaluate(kept) == [[TOKEN], 0, ""]
            assert TOKEN not in "".join(log.addresses)


class TestLooks:
    @pytest.mark.parametrize(("width", "zoom"), [(1280, 1), (1280, 2), (360, 1), (360, 2)])
    def test_it_never_scrolls_sideways(self, page: Page, width: int, zoom: int) -> None:
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate(f"document.documentElement.style.fontSize = '{100 * zoom}%'")
        page.get_by_text("Settings").click()
        written(page, f"{'x' * 300} {LEDES[0]}")
        page.get_by_text("Heat map: all words").click()
        expect(page.get_by_role("grid", name="Heat map")).to_be_visible()
        for theme, ground in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 23, 27)")):
            page.emulate_media(color_scheme=theme)
            expect(page.locator("body")).to_have_css("background-color", ground)
            assert page.evaluate("document.documentElement.clientWidth") == width
            assert page.evaluate("document.documentElement.scrollWidth") <= width, theme

    def test_what_is_written_can_be_read(self, page: Page) -> None:
        lede_box(page).press("Control+Enter")  # for an error
        page.locator(".marked").first.evaluate("(one) => one.style.setProperty('--share', 1)")
        parts = (".marked", ".headline .current", ".dropped", "#error", "#write", "caption")
        for theme, part in product(("light", "dark"), parts):
            page.emulate_media(color_scheme=theme)
            assert page.locator(part).first.evaluate(CONTRAST) >= 4.5, (theme, part)

    def test_the_policy_is_enforced(self, blank: Page, server: Any) -> None:
        visit(blank, address(server))
        with blank.expect_console_message(lambda one: "Content Security Policy" in one.text):
            blank.evaluate("document.body.setAttribute('style', 'color: red')")


# The contrast of an element's text with what is behind it, as WCAG 2 defines it.
CONTRAST: Final = """(element) => {
    const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
    const paint = (colour) => {
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
    };
    const light = () => {
        const parts = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((part) => part / 255);
        const [red, green, blue] = parts.map((part) =>
            part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05;
    };
    const behind = [];
    for (let one = element; one; one = one.parentElement) {
        behind.unshift(getComputedStyle(one).backgroundColor);
    }
    behind.forEach(paint);
    const ground = light();
    paint(getComputedStyle(element).color);
    return Math.max(light(), ground) / Math.min(light(), ground);
}"""
