"""The system's Chromium, driven by playwright. Modules that import this are skipped without them."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install '.[dev]'")

from playwright.sync_api import Browser, Page, expect, sync_playwright

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
PROGRAM: Final = next(filter(None, map(shutil.which, NAMES)), None)
if PROGRAM is None:
    pytest.skip(f"needs a browser: {', '.join(NAMES)}", allow_module_level=True)

OPTIONS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
MILLISECONDS: Final = 15_000  # that anything may take
expect.set_options(timeout=MILLISECONDS)


@contextmanager
def launched() -> Iterator[Browser]:
    """A headless browser.

    Until the end of the block this thread counts as one that runs an event loop, so `asyncio.run`
    fails in it: tests of a module may share a browser, but not those of a session.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=OPTIONS)
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, **options: Any) -> Iterator[Page]:
    """An empty page that shares no storage with others, and may use the clipboard."""
    with browser.new_context(
        viewport={"width": 1280, "height": 900},
        permissions=["clipboard-read", "clipboard-write"],
        reduced_motion="reduce",  # no waiting for smooth scrolling
        **options,
    ) as context:
        context.set_default_timeout(MILLISECONDS)
        yield context.new_page()


class Log:
    """What a page writes to the console, and what it asks of the network."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._complaints: list[str] = []
        self.addresses: list[str] = []
        page.on("console", lambda message: self._complaints.append(message.text))
        page.on("pageerror", lambda error: self._complaints.append(str(error)))
        page.on("request", lambda request: self.addresses.append(request.url))

    @property
    def complaints(self) -> list[str]:
        """Errors and warnings: of scripts, the network, the security policy."""
        self._page.evaluate("0")  # what was said before is heard before the answer to this
        return self._complaints
