"""The page in a real browser, where there is one: it loads, fits, follows the theme, prints."""

import re
from itertools import product
from pathlib import Path

import pytest

from browser import Log, Page, expect
from ledeline.inference.checks.check import Check
from ledeline.inference.checks.doubt import Doubt
from ledeline.report import write_report
from report_folders import Pair, TestSet, newsroom, write_evaluation

PHONE, DESK = 390, 1280
LONG = "x" * 10_000


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A report with several of everything, and one of texts that are hard on a layout."""
    base = tmp_path_factory.mktemp("pages")
    systems = {"EncDec": 0.6, "EncDec+SPM": 0.3, "EncDec+sGate+SPM": 0.2}
    usual = [
        write_evaluation(
            base / name,
            name,
            {
                one: TestSet(newsroom(40, seed, oddness), num_heat_maps=int(seed == 0))
                for seed, one in enumerate(("news", "gigaword-rush", "wire", "duc"))
            },
        )
        for name, oddness in systems.items()
    ]
    write_report(usual, base / "usual.html")
    nasty = [Pair(LONG, f"{LONG} gold", f"{LONG} {LONG}"), Pair("\u05d0\u202e x", "x", "<b>x x")]
    checks = [Check(0.1, (Doubt(0, len(one.headline), "", "role", LONG),)) for one in nasty]
    sets = {"set " + "y" * 200: TestSet(nasty, checks=checks)}
    odd = write_evaluation(base / "nasty", LONG, sets, command=f"ledeline {LONG}", device=LONG)
    write_report([odd], base / "nasty.html", title=LONG)
    return {name: base / f"{name}.html" for name in ("usual", "nasty")}


def test_it_loads_without_a_complaint(pages: dict[str, Path], blank: Page, log: Log) -> None:
    blank.goto(pages["usual"].as_uri())
    expect(blank.get_by_role("heading", name="How it was made")).to_be_visible()
    assert log.complaints == []
    assert log.addresses == [pages["usual"].as_uri()]


def test_its_policy_is_enforced(
    pages: dict[str, Path], blank: Page, log: Log, tmp_path: Path
) -> None:
    tampered = tmp_path / "tampered.html"
    html = pages["usual"].read_text()
    tampered.write_text(html.replace("</body>", "<script>document.title=''</script></body>"))
    blank.goto(tampered.as_uri())
    assert any("Content Security Policy" in line for line in log.complaints)
    assert blank.title()


@pytest.mark.parametrize("name", ["usual", "nasty"])
def test_it_never_scrolls_sideways(pages: dict[str, Path], blank: Page, name: str) -> None:
    blank.goto(pages[name].as_uri())
    for theme, width in product(("light", "dark"), (PHONE, DESK)):
        blank.emulate_media(color_scheme=theme)
        blank.set_viewport_size({"width": width, "height": 800})
        root = "document.documentElement"
        assert blank.evaluate(f"{root}.clientWidth") == width
        assert blank.evaluate(f"{root}.scrollWidth") <= width, (theme, width)


def test_it_follows_the_theme(pages: dict[str, Path], blank: Page) -> None:
    blank.goto(pages["usual"].as_uri())
    body, bar = blank.locator("body"), blank.locator(".bar").first
    seen = []
    for theme, ground, text in (
        ("light", "rgb(255, 255, 255)", "rgb(27, 30, 35)"),
        ("dark", "rgb(20, 23, 27)", "rgb(228, 230, 233)"),
    ):
        blank.emulate_media(color_scheme=theme)
        expect(body).to_have_css("background-color", ground)
        expect(body).to_have_css("color", text)
        seen.append(bar.evaluate("(one) => getComputedStyle(one).fill"))
    assert len(set(seen)) == 2


def test_it_prints(pages: dict[str, Path], blank: Page) -> None:
    blank.goto(pages["usual"].as_uri())
    found = blank.pdf()
    assert found.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", found)) > 1


def test_why_words_are_doubted_is_heard_and_not_seen(pages: dict[str, Path], blank: Page) -> None:
    blank.goto(pages["nasty"].as_uri())
    why = blank.locator(".unseen").first
    expect(why).to_contain_text(f"(doubt: role: {LONG})")
    box = why.bounding_box()
    assert box is not None
    assert (box["width"], box["height"]) == (1, 1)
    assert blank.locator("u").first.get_attribute("title") == f"role: {LONG}"
