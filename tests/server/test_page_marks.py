"""Results on the page of `ledeline serve`, in a real browser: marks, heat map, copying, odd texts."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")

from browser import Log, Page, expect
from ledeline.inference.headliner import Headliner
from ledeline.server.app import create_app
from ledeline.server.settings import LimitsConfig
from live import listening
from server_page import LEDES, address, asked, example, marks, status, visit, word, written

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def server(serve: Callable[..., Any]) -> Iterator[Any]:
    with serve() as running:
        yield running


def expected_marks(shares: list[float]) -> dict[int, str]:
    return {
        place: str(int(100 * share + 0.5)) if share >= 0.05 else ""
        for place, share in enumerate(shares)
        if share >= 0.01
    }


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
            named = f"{heat_map['source'][best].strip()} ({100 * shares[best]:.0f} %)"
            said = f"by SPM, from {named if shares[best] >= 0.01 else 'no word with 1 % or more'}"
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
        assert page.evaluate(self.CLIPBOARD) == example(server)["headline"]

    def test_an_alternative_without_a_secure_address(self, page: Page, server: Any) -> None:
        page.evaluate("navigator.clipboard.writeText = undefined")
        alternative = page.locator(".alternative").first
        alternative.click()
        expect(status(page)).to_have_text(re.compile("^Copied"))
        copied = example(server)["alternatives"][1]["headline"]
        assert page.evaluate(self.CLIPBOARD) == copied
        expect(alternative).to_be_focused()


class TestOddTexts:
    def test_markup_stays_text(self, page: Page) -> None:  # a dialog would be a complaint
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
