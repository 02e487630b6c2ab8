"""The page in a real browser, where there is one: it loads, fits, follows the theme, prints."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ledeline.report import write_report
from report_folders import Pair, TestSet, newsroom, write_evaluation

NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason=f"needs a browser: {', '.join(NAMES)}")

PHONE, DESK = 390, 1280
LONG = "x" * 10_000

# Put into a copy of a page: tells the page around it what it looks like.
PROBE = """<script>
addEventListener("load", () => {
  const root = document.documentElement, style = getComputedStyle(document.body);
  const series = getComputedStyle(document.querySelector(".bar")).fill;
  parent.postMessage({name: location.search, wide: root.scrollWidth, room: root.clientWidth,
    text: style.color, page: style.backgroundColor, series: series}, "*");
});
</script>"""
FRAME = """<!doctype html><body><script>
const seen = {};
addEventListener("message", event => {
  seen[event.data.name] = event.data;
  document.body.dataset.seen = JSON.stringify(seen);
});
</script>%s</body>"""


def browse(tmp_path: Path, page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    assert BROWSER is not None
    command = [
        BROWSER,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-dev-shm-usage",
        f"--user-data-dir={tmp_path / 'browser'}",
        *options,
        page.as_uri(),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)


def complaints(tmp_path: Path, page: Path) -> list[str]:
    """What the browser writes to its console when it loads a page."""
    ended = browse(tmp_path, page, "--enable-logging=stderr", "--dump-dom")
    assert "How it was made" in ended.stdout
    return [line for line in ended.stderr.splitlines() if "CONSOLE" in line]


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
    sets = {"set " + "y" * 200: TestSet(nasty)}
    odd = write_evaluation(base / "nasty", LONG, sets, command=f"ledeline {LONG}", device=LONG)
    write_report([odd], base / "nasty.html", title=LONG)
    return {name: base / f"{name}.html" for name in ("usual", "nasty")}


def test_it_loads_without_a_complaint(pages: dict[str, Path], tmp_path: Path) -> None:
    assert complaints(tmp_path, pages["usual"]) == []


def test_its_policy_is_enforced(pages: dict[str, Path], tmp_path: Path) -> None:
    tampered = tmp_path / "tampered.html"
    page = pages["usual"].read_text()
    tampered.write_text(page.replace("</body>", "<script>document.title=''</script></body>"))
    assert any("Content Security Policy" in line for line in complaints(tmp_path, tampered))


def look(pages: dict[str, Path], tmp_path: Path, *options: str) -> dict[str, dict[str, Any]]:
    """Show each page in frames as wide as a phone and a desk; what each looks like."""
    frames = ""
    for name, path in pages.items():
        page = re.sub("<meta http-equiv[^>]*>", "", path.read_text())
        (tmp_path / f"{name}.html").write_text(page.replace("</body>", PROBE + "</body>"))
        for width in (PHONE, DESK):
            source = f"{name}.html?{name}-{width}"
            frames += f'<iframe src="{source}" width="{width}" height="800"></iframe>'
    frame = tmp_path / "frame.html"
    frame.write_text(FRAME % frames)
    ended = browse(tmp_path, frame, "--virtual-time-budget=3000", "--dump-dom", *options)
    found = re.search('data-seen="([^"]*)"', ended.stdout)
    assert found is not None
    seen: dict[str, dict[str, Any]] = json.loads(html.unescape(found[1]))
    assert len(seen) == 2 * len(pages)
    return {name.removeprefix("?"): one for name, one in seen.items()}


class TestLooks:
    @pytest.fixture(scope="class")
    @staticmethod
    def themes(
        pages: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
    ) -> dict[str, dict[str, dict[str, Any]]]:
        return {
            name: look(
                pages,
                tmp_path_factory.mktemp(name),
                f"--blink-settings=preferredColorScheme={number}",
            )
            for name, number in (("dark", 0), ("light", 1))
        }

    def test_the_page_never_scrolls_sideways(
        self, themes: dict[str, dict[str, dict[str, Any]]]
    ) -> None:
        for theme in themes.values():
            for name, one in theme.items():
                assert one["wide"] <= one["room"], name
                assert one["room"] > int(name.split("-")[1]) - 30

    def test_it_follows_the_theme(self, themes: dict[str, dict[str, dict[str, Any]]]) -> None:
        light, dark = (themes[name][f"usual-{DESK}"] for name in ("light", "dark"))
        assert light["page"] == "rgb(255, 255, 255)"
        assert light["text"] == "rgb(27, 30, 35)"
        assert dark["page"] == "rgb(20, 23, 27)"
        assert dark["text"] == "rgb(228, 230, 233)"
        assert light["series"] != dark["series"]


def test_it_prints(pages: dict[str, Path], tmp_path: Path) -> None:
    output = tmp_path / "report.pdf"
    browse(tmp_path, pages["usual"], f"--print-to-pdf={output}", "--no-pdf-header-footer")
    found = output.read_bytes()
    assert found.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", found)) > 1
