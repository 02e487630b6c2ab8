"""SVG from Python, for drawings that are computed; the rest of the page is templates."""

from markupsafe import Markup

from ledeline.report.escaping import escape


def element(name: str, /, *children: str, **attributes: str | float) -> Markup:
    """An element; `class_` and `text_anchor` are the attributes `class` and `text-anchor`.

    Children and values that are not markup are escaped.
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
    )
    return Markup(f"<{name}{given}>{''.join(map(escape, children))}</{name}>")
