"""A headline for people: in a terminal, and in a notebook.

With an alignment, a headline word and the source word it came from have the same colour, and
dropped words are dim. Colour is never the only sign: in a terminal dropped words stand in brackets,
and a table has the links; in a notebook dropped words are smaller, and the headline word stands
above the source word.

Doubted words are underlined. A line for each doubt says what kind it is, and why.
"""

from collections import defaultdict
from collections.abc import Iterator
from html import escape
from itertools import groupby
from typing import Final, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ledeline.inference.checks.doubt import Doubt
from ledeline.inference.headline import Alignment, Candidate, Headline, Link

# Contrast of 4.5:1 or more against black and against white; neighbours differ most.
COLOURS: Final = (
    "#1274e4", "#ba5c0a", "#1d8838", "#d9278f", "#10838d", "#e1302a", "#7d790a", "#9b53da",
)  # fmt: skip
NO_HEADLINE: Final = "(no headline)"
_CONTROLS: Final = dict.fromkeys([*range(32), *range(127, 160)], "\ufffd") | str.maketrans(
    "\t\n\r", "   "
)


class _Piece(NamedTuple):
    """A used word of the source, or a run of dropped ones."""

    space: str  # before it
    text: str
    links: tuple[Link, ...]  # to it; none for dropped words


def _pieces(alignment: Alignment) -> Iterator[_Piece]:
    """The source text, split at used words."""
    links: dict[int, tuple[Link, ...]] = defaultdict(tuple)
    for link in alignment.links:
        links[link.source] += (link,)
    places = range(len(alignment.source))
    for used, run in groupby(places, key=lambda place: place if place in links else None):
        text = "".join(alignment.source[place] for place in run)
        yield _Piece(*_split_space(text), () if used is None else links[used])


def _split_space(text: str) -> tuple[str, str]:
    """The space before a text, and the text."""
    word = text.lstrip()
    return text[: len(text) - len(word)], word


def _colours(alignment: Alignment) -> dict[int, str]:
    """Place of a used source word -> its colour, which its headline words have too.

    Colours are assigned in the order of the headline; words from one source word share one.
    """
    used = dict.fromkeys(link.source for link in alignment.links)
    return {place: COLOURS[number % len(COLOURS)] for number, place in enumerate(used)}


def percent(share: float) -> str:
    """A share as people read it."""
    return f"{100 * share:.0f} %"


def _messages(headline: Headline) -> list[str]:
    """Its warnings and doubts, a line each; the warnings that only repeat a doubt are left out."""
    doubts = [f"doubt ({doubt.kind}): {doubt}" for doubt in headline.doubts]
    warnings = [str(one) for one in headline.warnings if not (doubts and one.kind == "doubt")]
    return [*warnings, *doubts]


def _support(headline: Headline) -> str | None:
    """Its support in words; none where there is no headline, or it was not checked."""
    if not headline or headline.support is None:
        return None
    return f"support {percent(headline.support)}"


def _printable(text: str) -> str:
    """The text without characters that control a terminal; as long as before."""
    return text.translate(_CONTROLS)


# --- terminal -------------------------------------------------------------------------------------


def render_terminal(headline: Headline) -> RenderableType:
    """What `rich.print` shows."""
    parts: list[RenderableType] = [headline_text(headline)]
    if support := _support(headline):
        parts.append(Text(support, style="dim"))
    if len(headline.alternatives) > 1:
        parts.append(_alternatives_table(headline.alternatives))
    parts += [Text(_printable(one), style="yellow") for one in _messages(headline)]
    if headline and headline.alignment is not None:
        parts += ["", _source_text(headline.alignment), "", _links_table(headline.alignment)]
    return Group(*parts)


def headline_text(headline: Headline) -> Text:
    """The headline in bold, its doubted words underlined."""
    if not headline:
        return Text(NO_HEADLINE, style="dim")
    text = Text(style="bold")
    if headline.alignment is None:
        text.append(_printable(headline.text))
    else:
        colour = _colours(headline.alignment)
        for word, link in zip(headline.alignment.headline, headline.alignment.links, strict=True):
            text.append(word, style=colour[link.source])
    for doubt in headline.doubts:
        text.stylize("underline", doubt.start, doubt.end)
    return text


def _alternatives_table(alternatives: tuple[Candidate, ...]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", no_wrap=True, style="dim")
    is_checked = any(one.support is not None for one in alternatives)
    if is_checked:
        table.add_column(justify="right", no_wrap=True, style="dim")
    for one in alternatives:
        support = ["" if one.support is None else percent(one.support)] if is_checked else []
        table.add_row(f"{one.score:.2f}", *support, Text(_shown(one)))
    return table


def _shown(candidate: Candidate) -> str:
    return (candidate.text or NO_HEADLINE) + (" …" if candidate.truncated else "")


def _source_text(alignment: Alignment) -> Text:
    text, colour = Text(), _colours(alignment)
    for piece in _pieces(alignment):
        text.append(piece.space)
        if piece.links:
            text.append(piece.text, style=colour[piece.links[0].source])
        else:
            text.append(f"[{piece.text}]", style="dim")
    return text


def _links_table(alignment: Alignment) -> Table:
    table, colour = Table(box=None, pad_edge=False, header_style="dim"), _colours(alignment)
    table.add_column("headline", overflow="fold")
    table.add_column("← source", overflow="fold")
    for name in ("SPM", "attention") if alignment.spm is not None else ("attention",):
        table.add_column(name, justify="right", no_wrap=True)
    for link in alignment.links:
        word, source = alignment.headline[link.headline], alignment.source[link.source]
        shares = [percent(share) for share in (link.spm, link.attention) if share is not None]
        words = (word.strip(), f"← {source.strip()}")
        table.add_row(*(Text(text, style=colour[link.source]) for text in words), *shares)
    return table


# --- notebook -------------------------------------------------------------------------------------


def render_html(headline: Headline) -> str:
    """HTML for a notebook: a fragment that loads nothing and takes its colours from the page."""
    parts = [f'<p dir="auto" style="{_HEADLINE}">{_headline_html(headline)}</p>']
    if support := _support(headline):
        parts.append(f"<p><small>{support}</small></p>")
    if len(headline.alternatives) > 1:
        parts.append(_alternatives_html(headline.alternatives))
    parts += [f'<p style="{_WARNING}">{escape(one)}</p>' for one in _messages(headline)]
    if headline and headline.alignment is not None:
        parts.append(f'<p dir="auto" style="{_SOURCE}">{_source_html(headline.alignment)}</p>')
    return f'<div role="group" aria-label="headline">{"".join(parts)}</div>'


_HEADLINE: Final = "font-size:1.2em;font-weight:bold;overflow-wrap:anywhere"
_SOURCE: Final = "line-height:2;overflow-wrap:anywhere"
_WARNING: Final = "border-left:.25em solid #ba5c0a;padding-left:.5em"
_DOUBTED: Final = "text-decoration:underline wavy #e1302a"
_DROPPED: Final = "font-size:.85em;opacity:.65;text-decoration:none"


def _headline_html(headline: Headline) -> str:
    if not headline:
        return f'<span style="opacity:.6">{NO_HEADLINE}</span>'
    if headline.alignment is None:
        return _doubted_html(headline.text, 0, headline.doubts)
    alignment, colour = headline.alignment, _colours(headline.alignment)
    html, place = "", 0
    for spaced, link in zip(alignment.headline, alignment.links, strict=True):
        space, word = _split_space(spaced)
        marked = _doubted_html(word, place + len(space), headline.doubts)
        html += f'{space}<span style="{_underlined(colour[link.source])}">{marked}</span>'
        place += len(spaced)
    return html


def _doubted_html(text: str, place: int, doubts: tuple[Doubt, ...]) -> str:
    """A part of a headline that begins at this place, with its doubted words underlined."""

    def doubts_at(offset: int) -> tuple[Doubt, ...]:
        return tuple(one for one in doubts if one.start <= place + offset < one.end)

    html = ""
    for found, run in groupby(range(len(text)), key=doubts_at):
        part = escape("".join(text[offset] for offset in run))
        title = escape("; ".join(f"{one.kind}: {one.why}" for one in found))
        html += f'<u title="{title}" style="{_DOUBTED}">{part}</u>' if found else part
    return html


def _alternatives_html(alternatives: tuple[Candidate, ...]) -> str:
    items = "".join(
        f"<li>{escape(_shown(one))} <small>{_figures(one)}</small></li>" for one in alternatives
    )
    return f'<ol dir="auto">{items}</ol>'


def _figures(candidate: Candidate) -> str:
    support = "" if candidate.support is None else f", support {percent(candidate.support)}"
    return f"{candidate.score:.2f}{support}"


def _source_html(alignment: Alignment) -> str:
    html, colour = "", _colours(alignment)
    for piece in _pieces(alignment):
        html += piece.space
        if piece.links:
            html += _used_html(piece, alignment, colour[piece.links[0].source])
        else:
            html += f'<del style="{_DROPPED}">{escape(piece.text)}</del>'
    return html


def _used_html(piece: _Piece, alignment: Alignment, colour: str) -> str:
    title = "; ".join(_reason(link, alignment) for link in piece.links)
    above = ", ".join(alignment.headline[link.headline].strip() for link in piece.links)
    return (
        f'<ruby><mark title="{escape(title)}" style="{_underlined(colour)}">{escape(piece.text)}'
        f"</mark><rp> (</rp><rt>{escape(above)}</rt><rp>)</rp></ruby>"
    )


def _reason(link: Link, alignment: Alignment) -> str:
    word, source = alignment.headline[link.headline], alignment.source[link.source]
    spm = "" if link.spm is None else f"SPM {percent(link.spm)}, "
    return f"{word.strip()} ← {source.strip()}, {spm}attention {percent(link.attention)}"


def _underlined(colour: str) -> str:
    return f"color:inherit;background:{colour}40;border-bottom:.15em solid {colour}"
