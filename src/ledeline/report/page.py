"""The page: one file that loads nothing, runs nothing, and is the same for the same study."""

import base64
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream
from markupsafe import Markup

from ledeline.report.escaping import escape
from ledeline.report.numbers import plural
from ledeline.report.sections import Section
from ledeline.report.sections.alignment_section import alignment_section
from ledeline.report.sections.checks_section import checks_section
from ledeline.report.sections.details_section import details_section
from ledeline.report.sections.examples_section import examples_section
from ledeline.report.sections.odd_words_section import odd_words_section
from ledeline.report.sections.results_section import results_section
from ledeline.report.study import Study

_PACKAGE: Final = "ledeline.report"
_STYLE_SHEETS: Final = ("base.css", "page.css")


@dataclass(frozen=True)
class Page:
    """What the template shows."""

    title: str
    style: Markup
    policy: str
    num_systems: str
    num_test_sets: str
    systems: tuple[str, ...]
    test_sets: tuple[str, ...]
    baseline: str | None  # None where there is one system
    sections: tuple[Section, ...]


def render_page(study: Study, title: str) -> str:
    """The page of a study."""
    return _environment().get_template("page.html.j2").render(page=_page(study, title))


def _page(study: Study, title: str) -> Page:
    style = _style()
    return Page(
        title=title,
        style=style,
        policy=_policy(style),
        num_systems=plural(len(study.systems), "system"),
        num_test_sets=plural(len(study.test_sets), "test set"),
        systems=tuple(system.label for system in study.systems),
        test_sets=study.test_sets,
        baseline=study.baseline.label if len(study.systems) > 1 else None,
        sections=tuple(_sections(study)),
    )


def _sections(study: Study) -> Iterator[Section]:
    yield results_section(study)
    yield odd_words_section(study)
    checks = checks_section(study)
    if checks is not None:
        yield checks
    alignment = alignment_section(study)
    if alignment is not None:
        yield alignment
    yield examples_section(study)
    yield details_section(study)


@cache
def _style() -> Markup:
    """The style sheets, which are ours and need no escaping."""
    package = resources.files(_PACKAGE)
    return Markup("\n".join((package / name).read_text("utf-8") for name in _STYLE_SHEETS))


def _policy(style: str) -> str:
    """Nothing but this very style sheet is allowed: no script, no image, no font, no connection."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


# --- templates ------------------------------------------------------------------------------------


class _JoinLines(Extension):
    """Leaves out the line breaks of templates, with the spaces around them.

    So templates can be laid out for readers, and the page has no white space between elements.
    """

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        for token in stream:
            if token.type == "data":
                yield Token(token.lineno, token.type, re.sub(r"\s*\n\s*", "", token.value))
            else:
                yield token


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(_PACKAGE),
        extensions=[_JoinLines],
        autoescape=True,
        finalize=escape,
        undefined=StrictUndefined,
    )
    environment.filters["joints"] = _joints
    return environment


def _joints(label: str) -> list[str]:
    """The parts of a name between which it may be broken."""
    return re.split(r"(?<=[+/_])", label)
