"""The templates: laid out for readers, escaped by default, all of them in use."""

import re
from importlib import resources

import pytest
from jinja2 import DictLoader, UndefinedError
from markupsafe import Markup

from ledeline.report import page
from ledeline.report.sections.alignment_section import AlignmentSection
from ledeline.report.sections.checks_section import ChecksSection
from ledeline.report.sections.details_section import DetailsSection
from ledeline.report.sections.examples_section import ExamplesSection
from ledeline.report.sections.odd_words_section import OddWordsSection
from ledeline.report.sections.results_section import ResultsSection

TEMPLATES = sorted(one.name for one in (resources.files("ledeline.report") / "templates").iterdir())


def rendered(template: str, **values: object) -> str:
    environment = page._environment().overlay(loader=DictLoader({"t": template}))
    return environment.get_template("t").render(values)


def test_line_breaks_of_a_template_are_left_out() -> None:
    assert rendered("<p>\n  <b>{{ x }}</b> of\n\n</p>\n", x="a\n b") == "<p><b>a\n b</b> of</p>"


def test_spaces_within_a_line_stay() -> None:
    assert rendered("<b>{{ x }}</b> {% if x %} {{ x }} {% endif %}", x=1) == "<b>1</b>  1 "


@pytest.mark.parametrize("how", ["{{ x }}", "{{ 'a' ~ x }}", "{% set y = x %}{{ y }}"])
def test_text_is_escaped(how: str) -> None:
    shown = rendered(how, x="<b title='\"'>&\x00")
    assert shown.removeprefix("a") == "&lt;b title=&#x27;&quot;&#x27;&gt;&amp;\ufffd"


def test_markup_is_not() -> None:
    assert rendered("{{ x }}", x=Markup("<b>")) == "<b>"
    assert rendered("{% macro m(x) %}<i>{{ x }}</i>{% endmacro %}{{ m('<') }}") == "<i>&lt;</i>"


def test_a_name_that_is_not_there_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        rendered("{{ x }}")


def test_a_name_breaks_at_its_joints() -> None:
    template = "{% from 'macros.html.j2' import name %}{{ name('a+b/<c') }}"
    environment = page._environment()
    shown = environment.from_string(template).render()
    assert shown == "<bdi>a+<wbr>b/<wbr>&lt;c</bdi>"


def test_each_template_is_used() -> None:
    sections = (
        ResultsSection,
        OddWordsSection,
        ChecksSection,
        AlignmentSection,
        ExamplesSection,
        DetailsSection,
    )
    used = [section.template for section in sections]
    assert sorted([*used, "macros.html.j2", "page.html.j2"]) == TEMPLATES
    assert len({section.anchor for section in sections}) == len(sections)


def test_none_says_that_text_is_safe() -> None:
    """Only Python decides what is markup: drawings, and the style sheet."""
    for name in TEMPLATES:
        source = (resources.files("ledeline.report") / "templates" / name).read_text("utf-8")
        assert not re.search(r"\|\s*safe|autoescape", source), name
