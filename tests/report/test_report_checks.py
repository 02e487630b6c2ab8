"""Support and doubts on the page of the report."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from html_page import Elements
from ledeline.inference.checks.check import Check
from ledeline.inference.checks.doubt import Doubt
from ledeline.report import report_page
from ledeline.report.chosen_examples import DOUBTED, choose_examples
from ledeline.report.marking import with_doubts
from ledeline.report.study import read_study
from report_folders import Pair, TestSet, newsroom, write_evaluation

LEDE, GOLD = "Sales rose to 282 million.", "Sales rise"
PAIRS = [
    Pair(LEDE, GOLD, "Sales rise to 28m <b>"),
    Pair("Rain fell in Oslo.", "Rain in Oslo", "Rain in Oslo"),
    Pair("Gas is dear.", "Gas dear", ""),
]
NUMBER = Doubt(14, 17, "28m", "number", 'the lede has "282 million" & <b>')
WHOLE = Doubt(0, 21, PAIRS[0].headline, "role", "who")
CHECKS = [Check(0.25, (NUMBER,)), Check(0.875), Check(0.5)]


def folder_of(path: Path, checks: list[Check] | None, **changes: object) -> Path:
    return write_evaluation(path, path.name, {"news": TestSet(PAIRS, checks=checks)}, **changes)


def texts(html: str, tag: str, **wanted: str) -> list[str]:
    return [
        "".join(parts)
        for name, about, parts in Elements(html).elements
        if name == tag and all(about.get(key) == value for key, value in wanted.items())
    ]


def rows(html: str) -> list[list[str]]:
    """The cells of the table of checks."""
    elements = Elements(html).elements
    tables = [place for place, (tag, _, _) in enumerate(elements) if tag == "table"]
    (start,) = (
        place for place in tables if elements[place + 1][2][0].startswith("Headlines check")
    )
    found: list[list[str]] = []
    for tag, _, parts in elements[start + 1 : next((n for n in tables if n > start), None)]:
        if tag == "tr":
            found.append([])
        elif tag in ("th", "td"):
            found[-1].append("".join(parts))
    return found


class TestCounts:
    def test_they_are_those_of_the_folders(self, tmp_path: Path) -> None:
        both = [folder_of(tmp_path / "a", CHECKS), folder_of(tmp_path / "b", [Check(0.5)] * 3)]
        html = report_page(both)
        assert rows(html) == [
            ["System", "Checked", "Support", "Doubted", "Number"],
            ["news"],
            ["a", "3", "0.54", "33.3\xa0%", "333.3"],
            ["b", "3", "0.50", "0.0\xa0%", "0.0"],
        ]
        assert "A doubt is not a proof" in " ".join(texts(html, "p"))
        headings = texts(html, "h2")
        assert headings[1:3] == ["Odd generation", "Support by the lede"]

    def test_only_systems_that_were_checked_are_there(self, tmp_path: Path) -> None:
        both = [folder_of(tmp_path / "a", None), folder_of(tmp_path / "b", CHECKS)]
        assert [row[0] for row in rows(report_page(both))] == ["System", "news", "b"]

    def test_headlines_left_out_have_a_column(self, tmp_path: Path) -> None:
        changes = {"checks": {"checked": 0, "left_out": 3, "doubted": 0, "doubts": {}}}
        sets = {"news": TestSet(PAIRS, changes=changes)}
        html = report_page([write_evaluation(tmp_path, "a", sets)])
        assert rows(html)[0::2] == [
            ["System", "Checked", "Left out", "Support", "Doubted"],
            ["a", "0", "3", "–", "0.0\xa0%"],
        ]

    def test_nothing_is_shown_where_nothing_was_checked(self, tmp_path: Path) -> None:
        html = report_page([folder_of(tmp_path / "a", None)])
        tags = [tag for tag, _, _ in Elements(html).elements]
        body = html.partition("</style>")[2].lower()
        assert "u" not in tags
        assert not any(word in body for word in ("doubt", "support", "unseen", "checks"))

    def test_settings_are_shown(self, tmp_path: Path) -> None:
        checking = {"check": True, "rank": "support", "min_support": None}
        html = report_page([folder_of(tmp_path / "a", CHECKS, checking=checking)])
        assert "check: true, rank: support, min_support: null" in texts(html, "dd")


class TestExamples:
    def test_doubted_words_have_their_reason(self, tmp_path: Path) -> None:
        html = report_page([folder_of(tmp_path / "a", CHECKS)])
        reason = f"number: {NUMBER.why}"
        assert texts(html, "u", title=reason) == ["28m"]
        assert texts(html, "span", **{"class": "unseen"}) == [f" (doubt: {reason})"]
        (shown,) = [one for one in texts(html, "dd") if "28m" in one]
        assert shown == f"Sales rise to 28m (doubt: {reason}) <b> 2 irrelevant support 0.25"
        assert "support 0.88" in " ".join(texts(html, "small"))
        assert "left out, support 0.50" in texts(html, "small")

    def test_words_may_be_odd_and_doubted(self, tmp_path: Path) -> None:
        checks = [Check(0.25, (NUMBER, WHOLE)), *CHECKS[1:]]
        html = report_page([folder_of(tmp_path / "a", checks)])
        assert "28m" in "".join(texts(html, "mark"))
        assert texts(html, "u", title=f"number: {NUMBER.why}; role: who") == ["28m"]
        assert len(texts(html, "span", **{"class": "unseen"})) == 2  # each doubt is read out once

    def test_doubts_are_told_where_other_words_are_shown(self, tmp_path: Path) -> None:
        folder = folder_of(tmp_path / "a", CHECKS)
        output = folder / "news" / "output.txt"
        output.write_text(output.read_text().replace("Sales rise", "sales rise"))
        html = report_page([folder])
        assert texts(html, "u") == []
        assert f'"28m": {NUMBER.why}' in texts(html, "small")

    def test_the_least_supported_come_first(self, tmp_path: Path) -> None:
        pairs = newsroom(30, 1, 0.0)
        doubt = Doubt(0, 1, "x", "name", "y")
        checks = [
            Check(round(1 - number / 30, 2), (doubt,) if number % 2 else ()) for number in range(30)
        ]
        sets = {"news": TestSet(pairs, checks=checks)}
        study = read_study([write_evaluation(tmp_path, "a", sets)])
        choices = {choice.kind: choice.pairs for choice in choose_examples(study, "news")}
        worse = {
            pair for kind, some in choices.items() if kind not in (DOUBTED, None) for pair in some
        }
        left = [number for number in range(29, 0, -2) if number not in worse]
        assert choices[DOUBTED] == tuple(left[:4])
        assert not set(choices[DOUBTED]) & set(choices[None])


@given(st.lists(st.tuples(st.text("ab ", min_size=1), st.booleans()), max_size=5), st.data())
def test_parts_keep_the_headline(parts: list[tuple[str, bool]], data: st.DataObject) -> None:
    headline = "".join(text for text, _ in parts)
    places = st.integers(0, len(headline))
    spans = data.draw(st.lists(st.tuples(places, places).map(sorted), max_size=4))
    doubts = [Doubt(a, b, "", "name", str(n)) for n, (a, b) in enumerate(spans)]
    found = with_doubts(parts, doubts)
    assert "".join(one.text for one in found) == headline
    start = 0
    odd = [is_odd for text, is_odd in parts for _ in text]
    for one in found:
        end = start + len(one.text)
        assert odd[start:end] == [one.is_odd] * len(one.text)
        for doubt in doubts:
            inside = doubt.start <= start and end <= doubt.end
            assert (doubt in one.doubts) == inside
        start = end
    ended = [doubt for one in found for doubt in one.ended]
    assert sorted(ended) == sorted(one for one in doubts if one.start < one.end)
