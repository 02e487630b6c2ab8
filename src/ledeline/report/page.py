"""The whole page: one file that loads nothing, runs nothing, and is the same for the same study."""

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import Final

from ledeline.report.markup import Html, element, joined, name_of, plural
from ledeline.report.sections import (
    alignment_section,
    details_section,
    examples_section,
    odd_words_section,
    results_section,
)
from ledeline.report.study import Study

_BEGIN: Final = Html("<!doctype html>\n")
_SECTIONS: Final = (
    ("results", results_section.TITLE, results_section.results_section),
    ("odd", odd_words_section.TITLE, odd_words_section.odd_section),
    ("alignment", alignment_section.TITLE, alignment_section.alignment_section),
    ("examples", examples_section.TITLE, examples_section.examples_section),
    ("made", details_section.TITLE, details_section.details_section),
)


def page(study: Study, title: str) -> Html:
    """The page of a study."""
    made = [(name, heading, make(study)) for name, heading, make in _SECTIONS]
    filled = [one for one in made if one[2]]
    body = element(
        "body",
        _header(study, title, [(name, heading) for name, heading, _ in filled]),
        element("main", *(_section(*one) for one in filled)),
    )
    return joined([_BEGIN, element("html", _head(title), body, lang="en"), Html("\n")])


def _head(title: str) -> Html:
    style = _style()
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(style)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", style),
    )


@cache
def _style() -> Html:
    """The style sheets, which are ours and need no escaping."""
    package = resources.files("ledeline")
    sheets = package / "report" / "base.css", package / "report" / "page.css"
    return Html("\n".join(sheet.read_text("utf-8") for sheet in sheets))


def _policy(style: str) -> str:
    """Nothing but this very style sheet is allowed: no script, no image, no font, no connection."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _header(study: Study, title: str, contents: list[tuple[str, str]]) -> Html:
    links = (element("li", element("a", heading, href=f"#{name}")) for name, heading in contents)
    return element(
        "header",
        element("h1", title, dir="auto"),
        element("p", _summary(study), class_="lead"),
        element("nav", element("ol", *links), aria_label="Contents"),
    )


def _summary(study: Study) -> Html:
    """What was compared, in a sentence."""
    systems = plural(len(study.systems), "system")
    sets = plural(len(study.test_sets), "test set")
    parts: list[str] = [systems, " on ", sets, " (", _names(study.test_sets), "): "]
    parts.append(_names(tuple(system.label for system in study.systems)))
    if len(study.systems) > 1:
        parts += ["; the baseline is ", name_of(study.baseline.label)]
    return joined([*parts, "."])


def _names(labels: tuple[str, ...]) -> Html:
    return joined(map(name_of, labels), ", ")


def _section(name: str, heading: str, content: str) -> Html:
    return element("section", element("h2", heading), content, id=name)
