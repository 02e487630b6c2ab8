"""The system's Chromium, driven by playwright, for the fixtures `blank` and `log`.

Test modules take the names of playwright from here: without it, or without a browser, they are
skipped.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install '.[dev]'")

from playwright.sync_api import Dialog, Locator, Page, expect, sync_playwright

__all__ = ["Locator", "Log", "Page", "expect", "launched", "reset"]

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
def launched() -> Iterator[Page]:
    """An empty page of a headless browser, which may use the clipboard.

    Until the end of the block this thread counts as one that runs an event loop, so `asyncio.run`
    fails in it: the tests of a module may share a browser, but not those of a session.
    """
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=PROGRAM, args=OPTIONS) as browser,
        browser.new_context(permissions=["clipboard-read", "clipboard-write"]) as context,
    ):
        context.set_default_timeout(MILLISECONDS)
        yield context.new_page()


def reset(page: Page) -> None:
    """Leave whatever it shows; a new page would take longer than most tests."""
    page.unroute_all()
    page.goto("about:blank")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light", reduced_motion="reduce")  # smooth scrolling takes time


class Log:
    """What a page writes to the console, and what it asks of the network."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._complaints: list[str] = []
        self.addresses: list[str] = []
        self._listeners: dict[str, Callable[[Any], None]] = {
            "console": lambda message: self._complaints.append(message.text),
            "pageerror": lambda error: self._complaints.append(str(error)),
            "dialog": self._dismiss,
            "request": lambda request: self.addresses.append(request.url),
        }
        for event, listener in self._listeners.items():
            page.on(event, listener)

    def _dismiss(self, dialog: Dialog) -> None:
        self._complaints.append(f"{dialog.type}: {dialog.message}")
        dialog.dismiss()

    @property
    def complaints(self) -> list[str]:
        """Errors and warnings of scripts, the network and the security policy; dialogs, too."""
        self._page.evaluate("0")  # what was said before is heard before the answer to this
        return self._complaints

    def close(self) -> None:
        """Listen no more."""
        for event, listener in self._listeners.items():
            self._page.remove_listener(event, listener)
