"""One HTML page that compares systems, from the folders of `ledeline evaluate`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ledeline.core.atomic import atomic_write
from ledeline.core.errors import ScoreError
from ledeline.report.page import render_page
from ledeline.report.study import read_study

__all__ = ["report_page", "write_report"]

SUFFIXES: Final = (".html", ".htm")
TITLE: Final = "Headline systems compared"


def write_report(
    folders: Sequence[Path], output: Path, *, baseline: str | None = None, title: str = TITLE
) -> None:
    """Write the page, whole or not at all; see `report_page`."""
    if output.suffix.lower() not in SUFFIXES:
        raise ScoreError(f"{output}: the page is HTML; name a file that ends in .html")
    html = report_page(folders, baseline=baseline, title=title)
    with atomic_write(output) as part:
        part.write_bytes(html.encode())


def report_page(folders: Sequence[Path], *, baseline: str | None = None, title: str = TITLE) -> str:
    """Compare the systems of some folders; the baseline is a system by name, or the first.

    The page is one file: it loads nothing, runs no script, and follows the reader's light or dark
    theme. The same folders give the same page. An error in a folder is a ``ScoreError``.
    """
    return render_page(read_study(folders, baseline), title)
