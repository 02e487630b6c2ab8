"""A headless Chromium for tests, spoken to in the DevTools protocol over a pair of pipes.

Messages are JSON, each ended by a NUL byte; Chromium reads file descriptor 3 and writes to 4.
"""

import base64
import fcntl
import itertools
import json
import os
import shutil
import signal
import threading
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Final, Self

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
BROWSER: Final = next(filter(None, map(shutil.which, NAMES)), None)
OPTIONS: Final = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
PATIENCE: Final = 15.0  # seconds that anything may take
# Name: key code and, where it has one, the text that the key types.
KEYS: Final = {
    "Enter": (13, "\r"),
    "Escape": (27, ""),
    "Tab": (9, ""),
    "ArrowLeft": (37, ""),
    "ArrowUp": (38, ""),
    "ArrowRight": (39, ""),
    "ArrowDown": (40, ""),
    "Home": (36, ""),
    "End": (35, ""),
}
CONTROL: Final = 2  # of the modifiers of a key


class Browser:
    """A process of Chromium, ended with the `with` block."""

    def __init__(self, folder: Path) -> None:
        assert BROWSER is not None
        to_read, self._to_write = _pipe()
        self._to_read, to_write = _pipe()
        nothing = os.open(os.devnull, os.O_RDWR)
        files = [(os.POSIX_SPAWN_DUP2, nothing, one) for one in range(3)]
        files += [(os.POSIX_SPAWN_DUP2, to_read, 3), (os.POSIX_SPAWN_DUP2, to_write, 4)]
        command = [BROWSER, *OPTIONS, f"--user-data-dir={folder}", "about:blank"]
        # A group of its own, so that a Chromium that hangs can be ended with all it started.
        self._process = os.posix_spawn(
            BROWSER, command, os.environ, file_actions=files, setpgroup=0
        )
        for one in (to_read, to_write, nothing):
            os.close(one)
        self._numbers = itertools.count(1)
        self._answers: dict[int, SimpleQueue[dict[str, Any]]] = {}
        self.events: dict[str | None, list[dict[str, Any]]] = defaultdict(list)  # by session
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(OSError, AssertionError):
            self.send("Browser.close")
        ends = time.monotonic() + 5
        while os.waitpid(self._process, os.WNOHANG) == (0, 0):
            if time.monotonic() > ends:
                os.killpg(self._process, signal.SIGKILL)
            time.sleep(0.02)
        os.close(self._to_write)
        self._reader.join(PATIENCE)
        os.close(self._to_read)

    def send(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """The result of a command of the protocol."""
        number = next(self._numbers)
        answer = self._answers[number] = SimpleQueue()
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        left = json.dumps(message).encode() + b"\0"
        while left:
            left = left[os.write(self._to_write, left) :]
        try:
            found = answer.get(timeout=PATIENCE)
        except Empty:
            raise AssertionError(f"{method}: no answer") from None
        assert "error" not in found, f"{method}: {found['error']}"
        return found["result"]  # type: ignore[no-any-return]

    def page(self, **size: int) -> "Page":
        """An empty page that shares no storage with others."""
        context = self.send("Target.createBrowserContext")["browserContextId"]
        target = self.send("Target.createTarget", url="about:blank", browserContextId=context)
        attached = self.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        return Page(self, attached["sessionId"], context, **size)

    def _read(self) -> None:
        begun = b""
        while some := os.read(self._to_read, 1 << 16):
            *whole, begun = (begun + some).split(b"\0")
            for one in map(json.loads, whole):
                if "id" in one:
                    self._answers.pop(one["id"]).put(one)
                else:
                    self.events[one.get("sessionId")].append(one)


def _pipe() -> tuple[int, int]:
    """Both ends, with numbers that are not in the way of those that Chromium wants."""
    ends = []
    for end in os.pipe():
        ends.append(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10))
        os.close(end)
    return ends[0], ends[1]


class Page:
    """A tab: what a person does with mouse and keyboard, and what the page then is like."""

    def __init__(
        self, browser: Browser, session: str, context: str, width: int = 1280, height: int = 900
    ) -> None:
        self._browser, self._session, self._context = browser, session, context
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setFocusEmulationEnabled", enabled=True)
        self.resize(width, height)

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a command to this page."""
        return self._browser.send(method, self._session, **params)

    def close(self) -> None:
        """Give the page up, and its storage."""
        self._browser.send("Target.disposeBrowserContext", browserContextId=self._context)

    def resize(self, width: int, height: int) -> None:
        """As if the window had so many pixels."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def theme(self, name: str) -> None:
        """`light` or `dark`."""
        feature = {"name": "prefers-color-scheme", "value": name}
        self.send("Emulation.setEmulatedMedia", features=[feature])

    def open(self, address: str, ready: str) -> None:
        """Go to an address, and wait until an expression is true there."""
        self.send("Page.navigate", url=address)
        self.wait(f"document.readyState === 'complete' && Boolean({ready})")

    def get(self, expression: str) -> Any:
        """What an expression of JavaScript, or the promise it gives, comes to."""
        found = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, expression: str) -> Any:
        """What an expression comes to, once that is true."""
        ends = time.monotonic() + PATIENCE
        while True:
            with suppress(AssertionError):  # also while a page is being left
                if found := self.get(expression):
                    return found
            assert time.monotonic() < ends, f"never true: {expression}"
            time.sleep(0.02)

    def text(self, selector: str) -> str:
        """What can be read in an element."""
        return str(self.get(f"document.querySelector({json.dumps(selector)}).innerText"))

    def texts(self, selector: str) -> list[str]:
        """What can be read in each such element."""
        every = f"[...document.querySelectorAll({json.dumps(selector)})]"
        return list(self.get(f"{every}.map((one) => one.innerText)"))

    def shows(self, selector: str) -> bool:
        """Whether there is such an element to be seen."""
        return bool(self.get(f"document.querySelector({json.dumps(selector)})?.checkVisibility()"))

    def hover(self, selector: str) -> tuple[float, float]:
        """Point at the middle of an element, and say where that is."""
        named = json.dumps(selector)
        x, y = self.get(f"""(() => {{
            const one = document.querySelector({named});
            one.scrollIntoView({{block: "center", behavior: "instant"}});
            const box = one.getClientRects()[0];
            return [box.x + box.width / 2, box.y + box.height / 2];
        }})()""")
        self._mouse("mouseMoved", x, y)
        return x, y

    def click(self, selector: str) -> None:
        """Press and release the left button there."""
        x, y = self.hover(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self._mouse(kind, x, y, button="left", clickCount=1)

    def _mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def type(self, text: str) -> None:
        """Write where the focus is."""
        self.send("Input.insertText", text=text)

    def press(self, key: str, modifiers: int = 0) -> None:
        """Press and release a key."""
        code, text = KEYS[key]
        typed = {"text": text} if text and not modifiers else {}
        common = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self.send("Input.dispatchKeyEvent", type="keyDown", **common, **typed)
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def select_all(self) -> None:
        """Select what is in the field that has the focus."""
        self.get("document.activeElement.select()")

    def allow_clipboard(self) -> None:
        """As a person would, when asked."""
        self._browser.send(
            "Browser.grantPermissions",
            permissions=["clipboardReadWrite", "clipboardSanitizedWrite"],
            browserContextId=self._context,
        )

    def events(self, method: str) -> list[dict[str, Any]]:
        """What was told so far, of one kind."""
        told = list(self._browser.events[self._session])
        return [one["params"] for one in told if one["method"] == method]

    def complaints(self) -> list[str]:
        """Errors and warnings in the console: of scripts, the network, the security policy."""
        logged = [one["entry"] for one in self.events("Log.entryAdded")]
        thrown = [one["exceptionDetails"] for one in self.events("Runtime.exceptionThrown")]
        said = [one["args"] for one in self.events("Runtime.consoleAPICalled")]
        return [
            *(f"{one['source']}: {one['text']}" for one in logged),
            *(str(one.get("exception", one)) for one in thrown),
            *map(str, said),
        ]

    def addresses(self) -> list[str]:
        """What was asked for over the network."""
        return [one["request"]["url"] for one in self.events("Network.requestWillBeSent")]

    def picture(self, path: Path) -> None:
        """Save what is seen, as PNG, to look at it when a test fails."""
        found = self.send("Page.captureScreenshot")
        path.write_bytes(base64.b64decode(found["data"]))
