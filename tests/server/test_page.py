"""The page of `ledeline serve` in a real browser, where there is one, against a real server."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

pytest.importorskip("uvicorn")

from playwright.sync_api import Browser, Locator, Page, expect

from browser import Log, launched, opened
from ledeline.inference.headliner import Headliner
from ledeline.inference.sample_ledes import LEDES as EXAMPLES
from ledeline.server.app import create_app
from ledeline.server.settings import LimitsConfig
from ledeline.synth.newsroom import generate
from live import TOKEN, listening

pytestmark = pytest.mark.usefixtures("one_thread")

LEDES: Final = [story.lede for story in generate(8, 7)]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as started:
        yield started


@pytest.fixture(scope="module")
def server(serve: Callable[..., Any]) -> Iterator[Any]:
    with serve() as running:
        yield running


@pytest.fixture
def blank(browser: Browser) -> Iterator[Page]:
    """A page that nothing is in, whatever it will say."""
    with opened(browser) as empty:
        yield empty


@pytest.fixture
def log(blank: Page) -> Log:
    return Log(blank)


@pytest.fixture
def page(blank: Page, log: Log, server: Any) -> Iterator[Page]:
    """The page; whatever a test does with it, all is asked of its server, and nothing is amiss."""
    visit(blank, address(server))
    yield blank
    assert log.complaints == []
    assert all(one.startswith(address(server)) for one in log.addresses)
    assert len(log.addresses) >= 5


def address(running: Any) -> str:
    return f"http://127.0.0.1:{running.port}/"


def visit(page: Page, where: str) -> None:
    """Go there, and wait for the example that is shown at first."""
    page.goto(where)
    page.locator(".result").wait_for()


def lede_box(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Your ledes")


def status(page: Page) -> Locator:
    return page.get_by_role("status")


def error(page: Page) -> Locator:
    return page.get_by_role("alert")


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name)


def write(page: Page, *ledes: str) -> None:
    """Type ledes, one per line, and press Ctrl+Enter."""
    lede_box(page).fill("\n".join(ledes))
    lede_box(page).press("Control+Enter")


def wait_until_written(page: Page) -> None:
    status(page).filter(has_text=re.compile(r"^\d+ headlines? in")).wait_for()


def written(page: Page, *ledes: str) -> None:
    write(page, *ledes)
    wait_until_written(page)


def asked(running: Any, lede: str, **more: Any) -> dict[str, Any]:
    """What the page should show."""
    request = {"texts": [lede], "n_best": 3, "heat_map": True, **more}
    found: dict[str, Any] = running.headlines(request).json["headlines"][0]
    return found


def headlines(page: Page) -> list[str]:
    shown = page.locator(".headline").all_inner_texts()
    return [text.removesuffix(" …") for text in shown]


def word(page: Page, place: int) -> Locator:
    """A word of the headline."""
    return page.locator(f".headline .word[data-place='{place}']")


def marks(page: Page) -> dict[int, str]:
    """What is marked in the lede: the place of a word, and the number above it."""
    found = page.locator(".lede .source").evaluate_all("""(words) => words
        .map((word, place) => [place, word])
        .filter(([, word]) => word.classList.contains("marked"))
        .map(([place, word]) => [place, word.dataset.share])""")
    return dict(found)


def expected_marks(shares: list[float]) -> dict[int, str]:
    return {
        place: str(int(100 * share + 0.5)) if share >= 0.05 else ""
        for place, share in enumerate(shares)
        if share >= 0.01
    }


class TestExample:
    def test_it_is_there_at_first(self, page: Page, server: Any) -> None:
        example = asked(server, EXAMPLES[0])
        expect(page.locator("#results-title")).to_have_text("An example")
        assert headlines(page) == [example["headline"]]
        source = "".join(example["alignment"]["heat_map"]["source"])
        assert page.locator(".lede").inner_text() == source
        first, *others = page.locator(".alternatives tbody th").all_inner_texts()
        assert first == "This headline"
        shown = [text.removesuffix(" Copy").removesuffix(" …") for text in others]
        assert shown == [one["headline"] for one in example["alternatives"][1:]]
        assert marks(page)  # those of one word, unasked
        box = page.locator(".alternatives").bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < 900  # all of it on the first screen

    def test_scores_are_also_probabilities(self, page: Page, server: Any) -> None:
        scores = [one["score"] for one in asked(server, EXAMPLES[0])["alternatives"]]
        shown = page.locator(".alternatives tbody tr").all_inner_texts()
        assert len(shown) == 3
        for row, value in zip(shown, scores, strict=True):
            _, score, share = row.split("\t")
            assert float(score.replace("−", "-")) == pytest.approx(value, abs=0.0051)
            assert float(share.removesuffix(" %")) == pytest.approx(100 * 2.718282**value, abs=0.51)

    def test_dropped_words_are_struck_out(self, page: Page, server: Any) -> None:
        alignment = asked(server, EXAMPLES[0])["alignment"]
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
        settings = {"Beam": 4, "Headlines": 2, "Least length": 2, "Most length": 5}
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


class TestMarks:
    @pytest.fixture
    def heat_map(self, page: Page, server: Any) -> dict[str, Any]:
        """That of a headline which the page shows."""
        written(page, LEDES[0])
        found: dict[str, Any] = asked(server, LEDES[0])["alignment"]["heat_map"]
        return found

    def test_pointing_at_a_word_marks_its_sources(
        self, page: Page, heat_map: dict[str, Any]
    ) -> None:
        readout = page.locator(".readout")
        assert marks(page) == {}
        expect(readout).to_contain_text("Point at a word")
        for place, shares in enumerate(heat_map["spm"]):
            word(page, place).hover()
            assert marks(page) == expected_marks(shares)
            best = max(range(len(shares)), key=shares.__getitem__)
            said = f"by SPM, from {heat_map['source'][best].strip()} ({100 * shares[best]:.0f} %)"
            assert said in readout.inner_text()
        page.get_by_role("heading", name="ledeline").hover()
        assert marks(page) == {}

    def test_numbers_are_rounded(self, page: Page) -> None:
        page.route("**/v1/headlines", lambda route: route.fulfill(json=forged("x", [0.126, 0.035])))
        written(page, LEDES[0])
        word(page, 0).hover()
        assert marks(page) == {0: "13", 1: ""}  # small ones are marked only, and named
        expect(page.locator(".readout")).to_have_text(re.compile(r"from x \(13 %\), x \(4 %\)$"))

    def test_keys_do_the_same(self, page: Page, heat_map: dict[str, Any]) -> None:
        focused, words = page.locator(":focus"), [one.strip() for one in heat_map["headline"]]
        word(page, 0).focus()
        assert marks(page) == expected_marks(heat_map["spm"][0])
        page.keyboard.press("ArrowRight")
        expect(focused).to_have_text(words[1])
        assert marks(page) == expected_marks(heat_map["spm"][1])
        page.keyboard.press("End")
        expect(focused).to_have_text(words[-1])
        page.keyboard.press("Enter")  # keeps the marks
        expect(focused).to_have_attribute("aria-pressed", "true")
        expect(focused).to_have_accessible_description(re.compile("by SPM"))
        page.keyboard.press("Tab")
        expect(focused).to_have_text("Copy")  # the words are one stop
        assert marks(page) == expected_marks(heat_map["spm"][-1])

    def test_attention_instead(self, page: Page, heat_map: dict[str, Any]) -> None:
        word(page, 1).click()
        page.get_by_role("radio", name="attention").click()
        assert marks(page) == expected_marks(heat_map["attention"][1])
        expect(page.locator(".readout")).to_contain_text("by attention")
        page.get_by_role("radio", name="SPM").click()
        assert marks(page) == expected_marks(heat_map["spm"][1])

    def test_a_model_without_spm_says_so(
        self, blank: Page, log: Log, make_model: Callable[..., Path]
    ) -> None:
        model = Headliner.load(make_model(spm=False), device="cpu")
        with listening(create_app(model)) as where:
            visit(blank, where)
            expect(blank.locator("#views")).to_contain_text("no SPM")
            expect(blank.locator("#by-spm")).to_be_disabled()
            word(blank, 0).hover()
            expect(blank.locator(".readout")).to_contain_text("by attention")
            assert log.complaints == []

    def test_the_heat_map(self, page: Page, heat_map: dict[str, Any]) -> None:
        table, readout = page.get_by_role("grid", name="Heat map"), page.locator(".scroll + .note")
        expect(table).to_have_count(0)
        page.get_by_text("Heat map: all words").click()
        expect(table).to_be_visible()
        for role, words in (("columnheader", "headline"), ("rowheader", "source")):
            heads = table.get_by_role(role).all_text_contents()
            assert heads == [one.strip() for one in heat_map[words]]
        for i, row in enumerate(table.locator("tbody tr").all_inner_texts()):
            shares = [one[i] for one in heat_map["spm"]]
            shown = [str(int(100 * share + 0.5)) if share >= 0.01 else "" for share in shares]
            assert [cell.strip() for cell in row.split("\t")[1:]] == shown
        table.locator("[data-i='1'][data-j='0']").hover()
        expect(readout).to_contain_text(self.value(heat_map, 1, 0))
        table.locator("td[tabindex='0']").focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowRight")
        expect(readout).to_contain_text(self.value(heat_map, 1, 1))
        page.get_by_role("radio", name="attention").click()
        expect(page.locator(".map div > .note").first).to_contain_text("by attention")

    @staticmethod
    def value(heat_map: dict[str, Any], i: int, j: int) -> str:
        source, headline = heat_map["source"][i].strip(), heat_map["headline"][j].strip()
        return f"{headline} from {source}: SPM {100 * heat_map['spm'][j][i]:.1f} %, attention"


class TestCopying:
    CLIPBOARD = "navigator.clipboard.readText()"

    def test_the_headline(self, page: Page, server: Any) -> None:
        copying = page.locator(".copy")
        copying.click()
        expect(status(page)).to_have_text(re.compile("^Copied"))
        expect(copying).to_have_text("Copied")
        assert page.evaluate(self.CLIPBOARD) == asked(server, EXAMPLES[0])["headline"]

    def test_an_alternative_without_a_secure_address(self, page: Page, server: Any) -> None:
        page.evaluate("navigator.clipboard.writeText = undefined")
        alternative = page.locator(".alternative").first
        alternative.click()
        expect(status(page)).to_have_text(re.compile("^Copied"))
        copied = asked(server, EXAMPLES[0])["alternatives"][1]["headline"]
        assert page.evaluate(self.CLIPBOARD) == copied
        expect(alternative).to_be_focused()


def forged(text: str, shares: Sequence[float] = (0.5, 0.5)) -> dict[str, Any]:
    """An answer that no server of ours would send."""
    one = {
        "source": text,
        "headline": text,
        "score": -0.5,
        "truncated": False,
        "warnings": [{"kind": text, "message": text}],
        "alternatives": [{"headline": text, "score": -0.5, "truncated": False}] * 2,
        "alignment": {
            "words": [],
            "dropped": [{"word": text, "place": 1}],
            "heat_map": {
                "source": [text, text],
                "headline": [text],
                "attention": [[0.5, 0.5]],
                "spm": [list(shares)],
            },
        },
    }
    return {"headlines": [one]}


class TestOddTexts:
    def test_markup_stays_text(self, page: Page) -> None:
        dialogs = []
        page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
        lede = f"<img src=x onerror=alert(1)><b>{LEDES[0]}</b><script>alert(2)</script>"
        written(page, lede)
        expect(page.locator(".lede")).to_contain_text("<b>")
        # And where a server, or somebody on the way, sends some.
        page.route("**/v1/headlines", lambda route: route.fulfill(json=forged("<b>x</b>")))
        written(page, lede)
        word(page, 0).click()
        page.get_by_text("Heat map: all words").click()
        page.locator(".map tbody td").first.hover()
        for part in (".headline", ".lede", ".readout", ".warnings", ".alternative", ".map"):
            expect(page.locator(part)).to_contain_text("<b>x</b>")
        expect(page.locator("b, img, main script")).to_have_count(0)
        assert dialogs == []

    def test_direction_does_not_spread(self, page: Page) -> None:
        written(page, "\u05d0\u202e")  # nothing that the model knows: it is shown as it came
        lede = page.locator(".lede")
        assert lede.inner_text() == "\u05d0\u202e"
        expect(lede).to_have_css("direction", "rtl")
        expect(lede).to_have_css("unicode-bidi", "isolate")
        expect(page.locator("#list")).to_have_css("direction", "ltr")
        written(page, LEDES[0], f"{LEDES[1]} \u05d0")
        word(page, 0).first.hover()
        for part in ("summary", ".readout", ".alternative"):
            expect(page.locator(f"{part} bdi").first).to_have_css("unicode-bidi", "isolate")

    def test_warnings_are_in_words(self, page: Page, server: Any) -> None:
        lede = LEDES[0].replace(" ", " Ωmega ", 1)
        written(page, lede)
        messages = [one["message"] for one in asked(server, lede)["warnings"]]
        assert len(messages) > 0
        shown = page.get_by_role("list", name="Warnings").get_by_role("listitem").all_inner_texts()
        assert [text.split(": ", 1)[1] for text in shown] == messages
        assert shown[0].startswith("Unknown word: ")

    def test_no_headline(self, page: Page) -> None:
        written(page, "\U0001f600 \U0001f600")
        expect(page.locator(".headline")).to_have_text("(no headline)")
        expect(page.locator(".warnings li")).not_to_have_count(0)
        expect(page.locator(".copy")).to_be_hidden()
        expect(page.locator("#views")).to_be_hidden()

    def test_ten_thousand_words(self, blank: Page, log: Log, serve: Callable[..., Any]) -> None:
        with serve(limits=LimitsConfig(characters=100_000)) as running:
            visit(blank, address(running))
            written(blank, "rain " * 10_000)
            expect(blank.locator(".lede")).to_have_text(re.compile(" …$"))
            blank.get_by_text("Heat map: all words").click()
            expect(blank.locator(".map tbody tr")).to_have_count(80)
            assert log.complaints == []


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
        with serve(limits=LimitsConfig(texts=2, characters=20, beam=7)) as running:
            visit(blank, address(running))
            expect(blank.locator("#count")).to_contain_text("2 ledes of 20")
            expect(blank.locator("#beam")).to_have_value("7")
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
            field = blank.get_by_label("This server asks for a token")
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
    @pytest.mark.parametrize("theme", ["light", "dark"])
    @pytest.mark.parametrize(("width", "zoom"), [(1280, 1), (1280, 2), (360, 1), (360, 2)])
    def test_it_never_scrolls_sideways(self, page: Page, theme: str, width: int, zoom: int) -> None:
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate(f"document.documentElement.style.fontSize = '{100 * zoom}%'")
        page.get_by_text("Settings").click()
        written(page, f"{'x' * 300} {LEDES[0]}")
        page.get_by_text("Heat map: all words").click()
        expect(page.get_by_role("grid", name="Heat map")).to_be_visible()
        root = "document.documentElement"
        assert page.evaluate(f"{root}.clientWidth") == width
        assert page.evaluate(f"{root}.scrollWidth") <= width
        ground = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}[theme]
        expect(page.locator("body")).to_have_css("background-color", ground)

    @pytest.mark.parametrize("theme", ["light", "dark"])
    def test_what_is_written_can_be_read(self, page: Page, theme: str) -> None:
        page.emulate_media(color_scheme=theme)
        lede_box(page).press("Control+Enter")  # for an error
        page.locator(".marked").first.evaluate("(one) => one.style.setProperty('--share', 1)")
        for part in (".marked", ".headline .current", ".dropped", "#error", "#write", "caption"):
            assert page.locator(part).first.evaluate(CONTRAST) >= 4.5, part

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
