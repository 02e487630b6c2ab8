"""HTML from Python: what is not `Html` is text, and is escaped."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

# What no page may hold: control characters, halves of characters, what Unicode calls no character.
_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_VOID: Final = frozenset({"meta", "wbr"})


class Html(str):
    """Markup that is safe to put on the page as it stands."""

    __slots__ = ()


def text(value: str) -> Html:
    """Text as markup; markup stays as it is."""
    return value if isinstance(value, Html) else Html(escape(_FORBIDDEN.sub("\ufffd", value)))


def joined(parts: Iterable[str], between: str = "") -> Html:
    """Parts one after another."""
    return Html(text(between).join(map(text, parts)))


def element(name: str, /, *children: str, **attributes: str | float | None) -> Html:
    """An element; `class_` and `stroke_width` are attributes `class` and `stroke-width`.

    An attribute that is None is left out.
    """
    given = [
        f' {key.rstrip("_").replace("_", "-")}="{text(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    ]
    begin = f"<{name}{''.join(given)}>"
    return Html(begin if name in _VOID else f"{begin}{joined(children)}</{name}>")


def name_of(label: str) -> Html:
    """A name from outside: it keeps its direction of writing, and is best broken at its joints."""
    return element("bdi", joined(re.split(r"(?<=[+/_])", label), element("wbr")))


def scrolling(content: str, label: str) -> Html:
    """A box of its own for what may be wider than the page; keys can scroll it."""
    return element("div", content, class_="scroll", role="region", aria_label=label, tabindex=0)


def table(
    caption: str, label: str, head: Sequence[str], bodies: Sequence[Sequence[str]], class_: str = ""
) -> Html:
    """A table of rows, in a box that scrolls; `label` is what is read out for the box."""
    parts = [
        element("caption", caption),
        element("thead", *head),
        *(element("tbody", *rows) for rows in bodies),
    ]
    return scrolling(element("table", *parts, class_=class_ or None), label)


def row(*cells: str, class_: str | None = None) -> Html:
    """A row of a table."""
    return element("tr", *cells, class_=class_)


def column_heads(names: Iterable[str]) -> Html:
    """A row of names of columns."""
    return row(*(element("th", name, scope="col") for name in names))


def row_group(title: str, num_columns: int) -> Html:
    """A row that names those below it."""
    cell = element("th", title, colspan=num_columns, scope="rowgroup")
    return row(cell, class_="group")


def note(*sentences: str) -> Html:
    """Small print below a table or a figure."""
    return element("p", joined(sentences, " "), class_="note")


def terms(pairs: Iterable[tuple[str, str]], class_: str = "facts") -> Html:
    """A list of names and what stands behind them."""
    entries = (element("div", element("dt", name), element("dd", value)) for name, value in pairs)
    return element("dl", *entries, class_=class_)


# --- numbers --------------------------------------------------------------------------------------


def whole(number: int) -> str:
    """A count: 12,345."""
    return f"{number:,}"


def percent(share: float) -> str:
    """A score from 0 to 1 as papers print it: 45.74."""
    return f"{100 * share:.2f}"


def signed(share: float) -> str:
    """A difference of scores: +0.44 or −0.12, with a minus as wide as the plus."""
    return f"{100 * share:+.2f}".replace("-", "−")


def interval(low: str, high: str, between: str = "–") -> Html:
    """From low to high in small type, to be broken in the middle where there is no room."""
    return element("small", low, between, element("wbr"), high)


def plural(number: int, noun: str) -> str:
    """Such as 1 pair, 2,000 pairs."""
    return f"{whole(number)} {noun}{'' if number == 1 else 's'}"
