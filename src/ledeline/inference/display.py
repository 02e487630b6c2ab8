"""A headline for people: in a terminal, and in a notebook.

With an alignment, a headline word and the source word it came from have the same colour, and
dropped words are dim. Colour is never the only sign: in a terminal dropped words stand in brackets,
and a table has the links; in a notebook dropped words are smaller, and the headline word stands
above the source word.
"""

from collections import defaultdict
from collections.abc import Iterator
from html import escape
from itertools import groupby
from typing import Final, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ledeline.inference.headline import Alignment, Candidate, Headline, Link

# Contrast of 4.5:1 or more against black and against white; neighbours differ most.
COLOURS: Final = (
    "#1274e4", "#ba5c0a", "#1d8838", "#d9278f", "#10838d", "#e1302a", "#7d790a", "#9b53da",
)  # fmt: skip
NO_HEADLINE: Final = "(no headline)"


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


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


# --- terminal -------------------------------------------------------------------------------------


def render_terminal(headline: Headline) -> RenderableType:
    """What `rich.print` shows."""
    parts: list[RenderableType] = [_headline_text(headline)]
    if len(headline.alternatives) > 1:
        parts.append(_alternatives_table(headline.alternatives))
    parts += [Text(str(warning), style="yellow") for warning in headline.warnings]
    if headline and headline.alignment is not None:
        parts += ["", _source_text(headline.alignment), "", _links_table(headline.alignment)]
    return Group(*parts)


def _headline_text(headline: Headline) -> Text:
    if not headline:
        return Text(NO_HEADLINE, style="dim")
    if headline.alignment is None:
        return Text(headline.text, style="bold")
    text, colour = Text(style="bold"), _colours(headline.alignment)
    for word, link in zip(headline.alignment.headline, headline.alignment.links, strict=True):
        text.append(word, style=colour[link.source])
    return text


def _alternatives_table(alternatives: tuple[Candidate, ...]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", no_wrap=True, style="dim")
    for one in alternatives:
        table.add_row(f"{one.score:.2f}", Text(_shown(one)))
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
        shares = [_percent(share) for share in (link.spm, link.attention) if share is not None]
        words = (word.strip(), f"← {source.strip()}")
        table.add_row(*(Text(text, style=colour[link.source]) for text in words), *shares)
    return table


# --- notebook -------------------------------------------------------------------------------------


def render_html(headline: Headline) -> str:
    """HTML for a notebook: a fragment that loads nothing and takes its colours from the page."""
    parts = [f'<p dir="auto" style="{_HEADLINE}">{_headline_html(headline)}</p>']
    if len(headline.alternatives) > 1:
        parts.append(_alternatives_html(headline.alternatives))
    parts += [f'<p style="{_WARNING}">{escape(str(warning))}</p>' for warning in headline.warnings]
    if headline and headline.alignment is not None:
        parts.append(f'<p dir="auto" style="{_SOURCE}">{_source_html(headline.alignment)}</p>')
    return f'<div role="group" aria-label="headline">{"".join(parts)}</div>'


_HEADLINE: Final = "font-size:1.2em;font-weight:bold;overflow-wrap:anywhere"
_SOURCE: Final = "line-height:2;overflow-wrap:anywhere"
_WARNING: Final = "border-left:.25em solid #ba5c0a;padding-left:.5em"
_DROPPED: Final = "font-size:.85em;opacity:.65;text-decoration:none"


def _headline_html(headline: Headline) -> str:
    if not headline:
        return f'<span style="opacity:.6">{NO_HEADLINE}</span>'
    if headline.alignment is None:
        return escape(headline.text)
    alignment, colour = headline.alignment, _colours(headline.alignment)
    html = ""
    for word, link in zip(alignment.headline, alignment.links, strict=True):
        space, word = _split_space(word)
        html += f'{space}<span style="{_underlined(colour[link.source])}">{escape(word)}</span>'
    return html


def _alternatives_html(alternatives: tuple[Candidate, ...]) -> str:
    items = "".join(
        f"<li>{escape(_shown(one))} <small>{one.score:.2f}</small></li>" for one in alternatives
    )
    return f'<ol dir="auto">{items}</ol>'


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
    spm = "" if link.spm is None else f"SPM {_percent(link.spm)}, "
    return f"{word.strip()} ← {source.strip()}, {spm}attention {_percent(link.attention)}"


def _underlined(colour: str) -> str:
    return f"color:inherit;background:{colour}40;border-bottom:.15em solid {colour}"
