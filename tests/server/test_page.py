"""The page of `ledeline serve` in a real browser, where there is one, against a real server."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

pytest.importorskip("uvicorn")

from chromium import BROWSER, CONTROL, NAMES, Browser, Page
from ledeline.inference.headliner import Headliner
from ledeline.inference.sample_ledes import LEDES as EXAMPLES
from ledeline.server.app import create_app
from ledeline.server.settings import LimitsConfig
from ledeline.server.web_page import FILES, PAGE
from ledeline.synth.newsroom import generate
from live import listening

pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason=f"needs a browser: {', '.join(NAMES)}"),
    pytest.mark.usefixtures("one_thread"),
]

LEDES: Final = [story.lede for story in generate(8, 7)]
TOKEN: Final = "only-for-this-test"
HAS_RESULT: Final = "document.querySelector('.result')"
# What is marked in the lede: the place of a word, and the number above it.
MARKED: Final = """Object.fromEntries([...document.querySelectorAll(".lede .source")]
    .map((word, place) => [place, word])
    .filter(([, word]) => word.classList.contains("marked"))
    .map(([place, word]) => [place, word.dataset.share]))"""
FOCUSED: Final = "document.activeElement.innerText"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as started:
        yield started


@pytest.fixture(scope="module")
def server(serve: Callable[..., Any]) -> Iterator[Any]:
    with serve() as running:
        yield running


def address(running: Any) -> str:
    return f"http://127.0.0.1:{running.port}/"


@pytest.fixture
def blank(browser: Browser) -> Iterator[Page]:
    """A page that nothing is in, whatever it will say."""
    page = browser.page()
    yield page
    page.close()


@pytest.fixture
def page(blank: Page, server: Any) -> Iterator[Page]:
    """The page; whatever a test does with it, all is asked of its server, and nothing is amiss."""
    blank.open(address(server), HAS_RESULT)
    yield blank
    assert blank.complaints() == []
    assert all(one.startswith(address(server)) for one in blank.addresses())
    assert len(blank.addresses()) >= 5


def write(page: Page, *ledes: str) -> None:
    """Type ledes, one per line, and press Ctrl+Enter."""
    page.click("#text")
    page.select_all()
    page.type("\n".join(ledes))
    page.press("Enter", CONTROL)


def written(page: Page, *ledes: str) -> None:
    write(page, *ledes)
    page.wait("/^\\d+ headlines? in/.test(document.getElementById('status').innerText)")


def asked(running: Any, lede: str, **more: Any) -> dict[str, Any]:
    """What the page should show."""
    request = {"texts": [lede], "n_best": 3, "heat_map": True, **more}
    found: dict[str, Any] = running.headlines(request).json["headlines"][0]
    return found


def expected_marks(shares: list[float]) -> dict[str, str]:
    return {
        str(place): str(int(100 * share + 0.5)) if share >= 0.05 else ""
        for place, share in enumerate(shares)
        if share >= 0.01
    }


def word(place: int) -> str:
    return f".headline .word[data-place='{place}']"


class TestExample:
    def test_it_is_there_at_first(self, page: Page, server: Any) -> None:
        worked = asked(server, EXAMPLES[0])
        assert page.text("#results-title") == "An example"
        assert page.text(".headline").removesuffix(" …") == worked["headline"]
        assert page.text(".lede") == "".join(worked["alignment"]["heat_map"]["source"])
        first, *others = page.texts(".alternatives tbody th")
        assert first == "This headline"
        shown = [text.removesuffix(" Copy").removesuffix(" …") for text in others]
        assert shown == [one["headline"] for one in worked["alternatives"][1:]]
        assert page.get(MARKED)  # those of one word, unasked
        end = page.get("document.querySelector('.alternatives').getBoundingClientRect().bottom")
        assert end < 900  # all of it on the first screen

    def test_scores_are_also_probabilities(self, page: Page, server: Any) -> None:
        scores = [one["score"] for one in asked(server, EXAMPLES[0])["alternatives"]]
        rows = [tuple(row.split("\t")[1:]) for row in page.texts(".alternatives tbody tr")]
        assert len(rows) == 3
        for (score, share), value in zip(rows, scores, strict=True):
            assert float(score.replace("−", "-")) == pytest.approx(value, abs=0.0051)
            assert float(share.removesuffix(" %")) == pytest.approx(100 * 2.718282**value, abs=0.51)

    def test_dropped_words_are_struck_out(self, page: Page, server: Any) -> None:
        alignment = asked(server, EXAMPLES[0])["alignment"]
        dropped = [one["word"] for one in alignment["dropped"]]
        assert page.texts(".lede .dropped") == dropped
        assert page.get(
            "[...document.querySelectorAll('.lede .source')].every((one) =>"
            "one.classList.contains('dropped') === Boolean(one.closest('del')))"
        )
        style = "getComputedStyle(document.querySelector('.lede del')).textDecorationLine"
        assert page.get(style) == "line-through"
        assert page.texts("p.note .dropped") == ["dropped"]

    def test_examples_fill_the_box(self, page: Page) -> None:
        page.click("#examples button:nth-of-type(2)")
        assert page.get("text.value") == EXAMPLES[1]
        page.click("#examples button:last-child")
        assert page.get("text.value.split('\\n')") == list(EXAMPLES)
        assert page.text("#write") == "Write 5 headlines"

    def test_examples_take_nothing_away(self, page: Page) -> None:
        page.click("#text")
        page.type("My own lede.")
        page.click("#examples button:nth-of-type(1)")
        assert page.get("text.value") == f"My own lede.\n{EXAMPLES[0]}"


class TestWriting:
    def test_a_lede_gets_its_headline(self, page: Page, server: Any) -> None:
        written(page, LEDES[0])
        answer = asked(server, LEDES[0])
        assert page.text(".headline").removesuffix(" …") == answer["headline"]
        assert page.text("#results-title") == "Headline"
        assert answer["headline"] in page.text("#status")
        assert page.get("document.activeElement.id") == "text"

    def test_the_button_writes_with_the_settings(self, page: Page, server: Any) -> None:
        page.click("#settings summary")
        settings = {"beam": 4, "n-best": 2, "min-length": 2, "max-length": 5}
        for name, value in settings.items():
            page.click(f"#{name}")
            page.select_all()
            page.type(str(value))
        page.click("#text")
        page.type(LEDES[1])
        page.click("#write")
        page.wait("document.getElementById('results-title').innerText === 'Headline'")
        search = server.headliner.options[-1].search
        found = (search.beam, search.n_best, search.min_length, search.max_length)
        assert found == tuple(settings.values())
        assert len(page.texts(".alternatives tbody tr")) == 2

    def test_settings_that_cannot_be_are_not_sent(self, page: Page, server: Any) -> None:
        num_asked = len(server.headliner.options)
        page.get("document.getElementById('beam').value = 2")
        write(page, LEDES[0])
        assert page.shows("#n-best")  # they have been opened
        assert "beam" in page.get("document.getElementById('n-best').validationMessage")
        assert len(server.headliner.options) == num_asked

    def test_several_ledes(self, page: Page, server: Any) -> None:
        written(page, LEDES[0], "", LEDES[1], LEDES[2])
        assert page.texts(".result > summary > span") == ["1 of 3", "2 of 3", "3 of 3"]
        shown = [text.removesuffix(" …") for text in page.texts(".result .headline")]
        assert shown == [asked(server, lede)["headline"] for lede in LEDES[:3]]
        page.hover(".result:nth-child(3) .word")
        assert page.get("document.querySelectorAll('.result:nth-child(3) .marked').length") > 0
        assert page.get("document.querySelectorAll('.result:nth-child(2) .marked').length") == 0

    def test_many_ledes_fold(self, page: Page, server: Any) -> None:
        written(page, *LEDES)
        assert len(page.texts(".headline")) == 1
        assert page.get("document.querySelectorAll('details.result').length") == len(LEDES)
        short = page.text(".result:nth-child(2) > summary strong bdi")
        assert short == asked(server, LEDES[1])["headline"]
        page.click(".result:nth-child(2) > summary")
        page.wait("document.querySelectorAll('.headline').length === 2")
        page.click("#fold")
        page.wait("document.getElementById('fold').innerText === 'Open all'")
        page.click("#fold")
        page.wait(f"document.querySelectorAll('.headline').length === {len(LEDES)}")

    def test_it_can_be_cancelled(self, page: Page, server: Any) -> None:
        server.headliner.go.clear()
        try:
            write(page, LEDES[3])
            page.wait("document.getElementById('write').innerText === 'Writing …'")
            assert page.get("document.getElementById('results').ariaBusy") == "true"
            page.click("#cancel")
            page.wait("document.getElementById('status').innerText.startsWith('Cancelled')")
        finally:
            server.headliner.go.set()
        assert page.get("text.value") == LEDES[3]
        assert not page.shows("#cancel")
        assert page.get("document.activeElement.id") == "write"
        assert page.text("#results-title") == "An example"

    def test_nothing_is_not_sent(self, page: Page, server: Any) -> None:
        num_asked = len(server.headliner.options)
        write(page, "", " ")
        assert "lede first" in page.text("#error")
        assert len(server.headliner.options) == num_asked


class TestMarks:
    def test_pointing_at_a_word_marks_its_sources(self, page: Page, server: Any) -> None:
        written(page, LEDES[0])
        heat_map = asked(server, LEDES[0])["alignment"]["heat_map"]
        assert page.get(MARKED) == {}
        assert "Point at a word" in page.text(".readout")
        for place, shares in enumerate(heat_map["spm"]):
            page.hover(word(place))
            assert page.get(MARKED) == expected_marks(shares)
            best = max(range(len(shares)), key=shares.__getitem__)
            said = f"by SPM, from {heat_map['source'][best].strip()} ({100 * shares[best]:.0f} %)"
            assert said in page.text(".readout")
        page.hover("h1")
        assert page.get(MARKED) == {}

    def test_numbers_are_rounded(self, page: Page) -> None:
        forged = TestOddTexts.forged("x", [0.126, 0.035])
        page.get(f"window.fetch = async () => new Response({json.dumps(forged)})")
        written(page, LEDES[0])
        page.hover(word(0))
        assert page.get(MARKED) == {"0": "13", "1": ""}  # small ones are marked only, and named
        assert page.text(".readout").endswith("from x (13 %), x (4 %)")

    def test_keys_do_the_same(self, page: Page, server: Any) -> None:
        written(page, LEDES[0])
        heat_map = asked(server, LEDES[0])["alignment"]["heat_map"]
        page.get(f'document.querySelector("{word(0)}").focus()')
        assert page.get(MARKED) == expected_marks(heat_map["spm"][0])
        page.press("ArrowRight")
        assert page.get(FOCUSED) == heat_map["headline"][1].strip()
        assert page.get(MARKED) == expected_marks(heat_map["spm"][1])
        page.press("End")
        assert page.get(FOCUSED) == heat_map["headline"][-1].strip()
        page.press("Enter")  # keeps the marks
        assert page.get("document.activeElement.ariaPressed") == "true"
        described = (
            "document.getElementById(document.activeElement.getAttribute('aria-describedby'))"
        )
        assert "by SPM" in page.get(f"{described}.innerText")
        page.press("Tab")
        assert page.get(FOCUSED) == "Copy"  # the words are one stop
        assert page.get(MARKED) == expected_marks(heat_map["spm"][-1])

    def test_attention_instead(self, page: Page, server: Any) -> None:
        written(page, LEDES[0])
        heat_map = asked(server, LEDES[0])["alignment"]["heat_map"]
        page.click(word(1))
        page.click("#by-attention")
        assert page.get(MARKED) == expected_marks(heat_map["attention"][1])
        assert "by attention" in page.text(".readout")
        page.click("#by-spm")
        assert page.get(MARKED) == expected_marks(heat_map["spm"][1])

    def test_a_model_without_spm_says_so(
        self, blank: Page, make_model: Callable[..., Path]
    ) -> None:
        model = Headliner.load(make_model(spm=False), device="cpu")
        with listening(create_app(model)) as where:
            blank.open(f"{where}/", HAS_RESULT)
            assert "no SPM" in blank.text("#views")
            assert blank.get("document.getElementById('by-spm').matches(':disabled')")
            blank.hover(word(0))
            assert "by attention" in blank.text(".readout")
            assert blank.complaints() == []

    def test_the_heat_map(self, page: Page, server: Any) -> None:
        written(page, LEDES[0])
        heat_map = asked(server, LEDES[0])["alignment"]["heat_map"]
        assert not page.get("document.querySelectorAll('.map table').length")
        page.click(".map summary")
        page.wait("document.querySelectorAll('.map table').length === 1")
        heads = "[...document.querySelectorAll('.map th[scope=%s]')].map((one) => one.textContent)"
        assert page.get(heads % "col") == [one.strip() for one in heat_map["headline"]]
        assert page.get(heads % "row") == [one.strip() for one in heat_map["source"]]
        rows = [text.split("\t")[1:] for text in page.texts(".map tbody tr")]
        for i, row in enumerate(rows):
            shares = [one[i] for one in heat_map["spm"]]
            shown = [str(int(100 * share + 0.5)) if share >= 0.01 else "" for share in shares]
            assert [cell.strip() for cell in row] == shown
        page.hover(".map tbody tr:nth-child(2) td:nth-of-type(1)")
        assert self.value(heat_map, 1, 0) in page.text(".scroll + .note")
        page.get("document.querySelector('.map td[tabindex=\"0\"]').focus()")
        page.press("ArrowDown")
        page.press("ArrowRight")
        assert self.value(heat_map, 1, 1) in page.text(".scroll + .note")
        page.click("#by-attention")
        assert "by attention" in page.text(".map div > .note")

    @staticmethod
    def value(heat_map: dict[str, Any], i: int, j: int) -> str:
        source, headline = heat_map["source"][i].strip(), heat_map["headline"][j].strip()
        return f"{headline} from {source}: SPM {100 * heat_map['spm'][j][i]:.1f} %, attention"


class TestCopying:
    CLIPBOARD = "navigator.clipboard.readText()"

    def test_the_headline(self, page: Page, server: Any) -> None:
        page.allow_clipboard()
        page.click(".copy")
        page.wait("document.getElementById('status').innerText.startsWith('Copied')")
        assert page.text(".copy") == "Copied"
        assert page.get(self.CLIPBOARD) == asked(server, EXAMPLES[0])["headline"]

    def test_an_alternative_without_a_secure_address(self, page: Page, server: Any) -> None:
        page.allow_clipboard()
        page.get("navigator.clipboard.writeText = undefined")
        page.click(".alternatives tr:nth-child(2) button")
        page.wait("document.getElementById('status').innerText.startsWith('Copied')")
        copied = asked(server, EXAMPLES[0])["alternatives"][1]["headline"]
        assert page.get(self.CLIPBOARD) == copied
        assert page.get("document.activeElement.className") == "alternative"


class TestOddTexts:
    def test_markup_stays_text(self, page: Page) -> None:
        lede = f"<img src=x onerror=alert(1)><b>{LEDES[0]}</b><script>alert(2)</script>"
        written(page, lede)
        assert "<b>" in page.text(".lede")
        # And where a server, or somebody on the way, sends some.
        forged = self.forged("<b>x</b>")
        page.get(f"window.fetch = async () => new Response({json.dumps(forged)})")
        written(page, lede)
        page.click(word(0))
        page.get("document.querySelector('.map').open = true")
        page.wait("document.querySelectorAll('.map table').length === 1")
        page.hover(".map tbody td")
        for part in (
            ".headline",
            ".lede",
            ".readout",
            ".warnings",
            ".alternative",
            ".map",
        ):
            assert "<b>x</b>" in page.text(part), part
        marked_up = "document.querySelectorAll('b, img, main script').length"
        assert page.get(marked_up) == 0
        assert page.events("Page.javascriptDialogOpening") == []

    @staticmethod
    def forged(text: str, shares: Sequence[float] = (0.5, 0.5)) -> str:
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
        return json.dumps({"headlines": [one]})

    def test_direction_does_not_spread(self, page: Page) -> None:
        written(page, "\u05d0\u202e")  # nothing that the model knows: it is shown as it came
        assert page.text(".lede") == "\u05d0\u202e"
        style = "getComputedStyle(document.querySelector('%s'))"
        assert page.get(f"{style % '.lede'}.direction") == "rtl"
        assert page.get(f"{style % '.lede'}.unicodeBidi") == "isolate"
        assert page.get(f"{style % '#list'}.direction") == "ltr"
        written(page, LEDES[0], f"{LEDES[1]} \u05d0")
        page.hover(word(0))
        for part in ("summary", ".readout", ".alternative"):
            assert page.get(f"{style % f'{part} bdi'}.unicodeBidi") == "isolate", part

    def test_warnings_are_in_words(self, page: Page, server: Any) -> None:
        lede = LEDES[0].replace(" ", " Ωmega ", 1)
        written(page, lede)
        messages = [one["message"] for one in asked(server, lede)["warnings"]]
        assert len(messages) > 0
        assert [text.split(": ", 1)[1] for text in page.texts(".warnings li")] == messages
        assert page.texts(".warnings li")[0].startswith("Unknown word: ")

    def test_no_headline(self, page: Page) -> None:
        written(page, "\U0001f600 \U0001f600")
        assert page.text(".headline") == "(no headline)"
        assert page.texts(".warnings li")
        assert not page.shows(".copy")
        assert not page.shows("#views")

    def test_ten_thousand_words(self, blank: Page, serve: Callable[..., Any]) -> None:
        with serve(limits=LimitsConfig(characters=100_000)) as running:
            blank.open(address(running), HAS_RESULT)
            written(blank, "rain " * 10_000)
            assert blank.text(".lede").endswith(" …")
            blank.click(".map summary")
            blank.wait("document.querySelectorAll('.map tbody tr').length === 80")
            assert blank.complaints() == []


class TestErrors:
    def test_a_stopped_server(self, blank: Page, serve: Callable[..., Any]) -> None:
        with serve() as running:
            blank.open(address(running), HAS_RESULT)
        write(blank, LEDES[0])
        blank.wait("document.getElementById('error').innerText.includes('cannot be reached')")
        assert "ledeline serve" in blank.text("#error")
        assert blank.text("#error button") == "Try again"
        assert blank.get("text.value") == LEDES[0]
        assert blank.text("#write") == "Write headline"

    def test_a_busy_server(
        self, blank: Page, serve: Callable[..., Any], until: Callable[..., None]
    ) -> None:
        with serve(limits=LimitsConfig(texts=2, waiting=2)) as running:
            blank.open(address(running), HAS_RESULT)
            running.headliner.go.clear()
            others = [running.asking({"texts": LEDES[:1]})]
            until(lambda: running.load == (0, 1))
            others.append(running.asking({"texts": LEDES[:2]}))
            until(lambda: running.load == (2, 1))
            write(blank, LEDES[0])
            blank.wait("document.getElementById('error').innerText.includes('busy')")
            assert re.fullmatch(r"Try again in \d+ s", blank.text("#error button"))
            blank.click("#error button")  # too early
            assert "busy" in blank.text("#error")
            running.headliner.go.set()
            assert [one.answer.status for one in others] == [200, 200]
            blank.wait("document.querySelector('#error button').innerText === 'Try again'")
            blank.click("#error button")
            blank.wait("document.getElementById('status').innerText.startsWith('1 headline in')")
            assert not blank.shows("#error")

    def test_a_refusal_is_in_the_words_of_the_server(self, blank: Page, server: Any) -> None:
        blank.open(address(server), HAS_RESULT)
        blank.wait("document.getElementById('model').innerText")
        blank.get("(() => { beam.max = 999; beam.value = 999; })()")
        write(blank, LEDES[0])
        blank.wait("!document.getElementById('error').hidden")
        refused = server.headlines({"texts": [LEDES[0]], "beam": 999}).detail
        assert blank.text("#error").lower() == f"{refused.removesuffix('.')}.".lower()

    def test_what_failed_there(self, blank: Page, server: Any) -> None:
        blank.open(address(server), HAS_RESULT)
        server.headliner.poison = LEDES[4]
        write(blank, LEDES[4])
        blank.wait("document.getElementById('error').innerText.includes('error (500)')")
        server.headliner.poison = None

    def test_limits_are_said_before(self, blank: Page, serve: Callable[..., Any]) -> None:
        with serve(limits=LimitsConfig(texts=2, characters=20, beam=7)) as running:
            blank.open(address(running), HAS_RESULT)
            blank.wait("document.getElementById('count').innerText.includes('2 ledes of 20')")
            assert blank.get("beam.value") == "7"
            write(blank, "a", "b", "c")
            assert "the server takes 2" in blank.text("#count")
            assert "the server takes 2" in blank.text("#error")
            write(blank, "\U0001f600" * 20, "x" * 21)
            assert "Line 2 has 21 characters" in blank.text("#error")
            assert blank.get("text.ariaInvalid") == "true"
            assert running.headliner.options == []
            assert blank.complaints() == []

    def test_a_token_is_asked_for(self, blank: Page, serve: Callable[..., Any]) -> None:
        with serve(token=TOKEN) as running:
            blank.open(address(running), HAS_RESULT)  # the example is public
            blank.wait("!document.getElementById('token-form').hidden")
            write(blank, LEDES[0])
            blank.wait("document.activeElement.id === 'token'")
            self.give(blank, "wrong")
            blank.wait("document.getElementById('token-note').innerText.includes('not accept')")
            self.give(blank, TOKEN)
            blank.wait("document.getElementById('status').innerText.startsWith('1 headline in')")
            assert not blank.shows("#token-form")
            assert "parameters" in blank.text("#model")
            kept = "[Object.values({...sessionStorage}), localStorage.length, document.cookie]"
            assert blank.get(kept) == [[TOKEN], 0, ""]
            assert TOKEN not in "".join(blank.addresses())

    @staticmethod
    def give(page: Page, token: str) -> None:
        page.click("#token")
        page.type(token)
        page.press("Enter")


class TestLooks:
    WIDE = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"

    @pytest.mark.parametrize("theme", ["light", "dark"])
    @pytest.mark.parametrize(("width", "zoom"), [(1280, 1), (1280, 2), (360, 1), (360, 2)])
    def test_it_never_scrolls_sideways(self, page: Page, theme: str, width: int, zoom: int) -> None:
        page.theme(theme)
        page.resize(width, 800)
        page.get(f"document.documentElement.style.fontSize = '{100 * zoom}%'")
        page.click("#settings summary")
        written(page, f"{'x' * 300} {LEDES[0]}")
        page.click(".map summary")
        page.wait("document.querySelectorAll('.map table').length === 1")
        wide, room = page.get(self.WIDE)
        assert room == width
        assert wide <= room
        ground = page.get("getComputedStyle(document.body).backgroundColor")
        assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}[theme]

    @pytest.mark.parametrize("theme", ["light", "dark"])
    def test_what_is_written_can_be_read(self, page: Page, theme: str) -> None:
        page.theme(theme)
        page.click("#text")
        page.press("Enter", CONTROL)  # for an error
        page.get("document.querySelector('.marked').style.setProperty('--share', 1)")
        for selector in (
            ".marked",
            ".headline .current",
            ".dropped",
            "#error",
            "#write",
            "caption",
        ):
            assert page.get(CONTRAST % json.dumps(selector)) >= 4.5, selector

    def test_the_policy_is_enforced(self, blank: Page, server: Any) -> None:
        blank.open(address(server), HAS_RESULT)
        blank.get("document.body.setAttribute('style', 'color: red')")
        blank.wait("true")
        assert any("Content Security Policy" in one for one in blank.complaints())


# The contrast of an element's text with what is behind it, as WCAG 2 defines it.
CONTRAST: Final = """((selector) => {
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
    const element = document.querySelector(selector);
    const behind = [];
    for (let one = element; one; one = one.parentElement) {
        behind.unshift(getComputedStyle(one).backgroundColor);
    }
    behind.forEach(paint);
    const ground = light();
    paint(getComputedStyle(element).color);
    return Math.max(light(), ground) / Math.min(light(), ground);
})(%s)"""


def test_it_is_small_and_asks_for_nothing_from_elsewhere() -> None:
    names = ("base.css", "page.css", "page.js", "icon.svg")
    files = [PAGE / "index.html", *map(FILES.__getitem__, names)]
    assert sum(len(file.read_bytes()) for file in files) < 41_000
    for file in files:
        found = re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\"' )]*", file.read_text("utf-8"))
        assert [one for one in found if "www.w3.org" not in one] == []
