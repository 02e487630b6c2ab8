"""The page of `ledeline serve` as its tests use it: its parts, and what a person does with it."""

import re
from typing import Any, Final

from browser import Locator, Page
from ledeline.inference.sample_ledes import LEDES as EXAMPLES
from ledeline.synth.newsroom import generate

BEAM: Final = 5  # that the page asks for at first
LEDES: Final = [story.lede for story in generate(8, 7)]


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
    request = {"texts": [lede], "beam": BEAM, "n_best": 3, "heat_map": True, **more}
    found: dict[str, Any] = running.headlines(request).json["headlines"][0]
    return found


def example(running: Any) -> dict[str, Any]:
    """What the page shows at first, as the model writes it by default."""
    return asked(running, EXAMPLES[0], beam=None)


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
