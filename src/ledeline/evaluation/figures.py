"""Figures of matplotlib, which is loaded when one is made: an empty figure, and its file.

No window is opened and no state is shared.
"""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ledeline.core.atomic import atomic_write
from ledeline.core.errors import ScoreError
from ledeline.core.extras import needed_by

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Format of a file -> the metadata of matplotlib that are left out: date and version.
_METADATA: Final = {"png": {"Software": None}, "svg": {"Creator": None, "Date": None}}
_PIXELS_PER_INCH: Final = 150


def new_figure(width: float, height: float) -> "Figure":
    """An empty white figure, in inches, whose parts make room for each other."""
    with needed_by("drawing", "plot"):
        from matplotlib.figure import Figure
    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def save(figure: "Figure", path: Path) -> None:
    """Write a figure as .png or .svg, whole or not at all; the same figure is the same bytes.

    Text is drawn as it is: dollar signs do not make it a formula. A letter that the font does not
    have is drawn as a box.
    """
    import matplotlib

    kind = picture_format(path)
    _take_text_literally(figure)
    settings = matplotlib.rc_context({"svg.hashsalt": "ledeline", "text.parse_math": False})
    with settings, warnings.catch_warnings(), atomic_write(path) as part:
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from", UserWarning)
        figure.savefig(part, format=kind, metadata=_METADATA[kind], dpi=_PIXELS_PER_INCH)


def picture_format(path: Path) -> str:
    """The format of a file by its suffix; another suffix than .png and .svg is an error."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in _METADATA:
        raise ScoreError(f"{path}: a figure is written as .png or .svg, not as {path.suffix!r}")
    return kind


def _take_text_literally(figure: "Figure") -> None:
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        if isinstance(text, Text):
            text.set_parse_math(False)
