"""What the audit shows in a terminal."""

import pytest
from rich.console import Console
from rich.style import Style

from ledeline.cli.views.audit import audit_tables
from ledeline.evaluation.audit import Audit, AuditedTexts, audit
from ledeline.evaluation.check_counts import CheckCounts
from ledeline.evaluation.odd_words import OddWords
from ledeline.inference.checks.check import Check

OUTPUTS = ["duran duran duran duran", "zebra [red]rises[/red]", "", "oil \x1b[31mx"]
REFERENCES = ["duran duran group", "gas prices rise again", "oil rises", "oil"]
SOURCES = ["the group duran duran", "gas :smile: is dear", "oil rises", "x oil"]


def words(texts: list[str]) -> list[list[str]]:
    return [text.split(" ") if text else [] for text in texts]


def shown(
    systems: dict[str, Audit],
    texts: dict[str, AuditedTexts],
    width: int = 80,
    num_examples: int = 3,
) -> str:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(audit_tables(systems, texts, num_examples=num_examples))
    return capture.get()


def rows(text: str, *, after: str) -> list[list[str]]:
    """The words of the lines below a line, up to an empty one."""
    lines = iter(text.splitlines())
    next(line for line in lines if after in line)
    found = []
    for line in lines:
        if not line.strip():
            break
        found.append(line.split())
    return found


@pytest.fixture
def texts() -> AuditedTexts:
    return AuditedTexts(words(OUTPUTS), words(REFERENCES), words(SOURCES))


def test_sums(texts: AuditedTexts) -> None:
    systems = {"EncDec": audit(*texts), "b[bold]": audit(*texts[:2])}
    lines = [line for line in shown(systems, {}).splitlines() if "│" in line]
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]
    assert cells == [
        ["EncDec", "4", "2 in 25.0%", "4 in 50.0%", "3 in 50.0%"],
        ["b[bold]", "4", "2 in 25.0%", "4 in 50.0%", "–"],
    ]


def test_no_headlines() -> None:
    assert "0 in 0.0%" in shown({"a": Audit(())}, {"a": AuditedTexts([], [], [])})


def test_histograms() -> None:
    a = Audit(tuple(OddWords(number, 0, None) for number in [0] * 5000 + [1] * 4 + [3, 5, 5, 9]))
    b = Audit(tuple(OddWords(number, 0, None) for number in [0] * 10 + [1] * 8))
    text = shown({"first": a, "second": b}, {})
    assert rows(text, after="number of repeating") == [
        ["words", "first", "second"],
        ["0", "5,000", "10"],
        ["1", "4", "█" * 8, "8", "█" * 16],
        ["2", "0", "0"],
        ["3", "1", "██", "0"],
        ["4", "0", "0"],
        ["5+", "3", "█" * 6, "0"],
    ]
    assert "number of irrelevant" not in text


def test_a_bar_that_is_not_0_is_seen() -> None:
    one = Audit((OddWords(2, 0, None),) + (OddWords(1, 0, None),) * 9999)
    assert rows(shown({"a": one}, {}), after="number of repeating")[3] == ["2", "1", "▏"]


def test_a_kind_is_shown_for_those_that_know_it(texts: AuditedTexts) -> None:
    text = shown({"one": audit(*texts), "two": audit(*texts[:2])}, {})
    assert rows(text, after="number of irrelevant")[0] == ["words", "one"]


@pytest.mark.parametrize("width", [30, 80, 120])
@pytest.mark.parametrize("num_systems", [1, 2, 7, 20])
def test_any_number_of_systems_fits(texts: AuditedTexts, num_systems: int, width: int) -> None:
    systems = {f"s{number}": audit(*texts) for number in range(num_systems)}
    text = shown(systems, {}, width)
    assert max(map(len, text.splitlines())) <= width
    if width > 30:
        found = rows(text, after="number of repeating")
        names = [cell for row in found if row[0] == "words" for cell in row[1:]]
        assert names == list(systems)
        assert sum(len(row) - 1 for row in found if row[0] == "0") == num_systems


def test_examples(texts: AuditedTexts) -> None:
    text = shown({"a[b]": audit(*texts)}, {"a[b]": texts})
    assert rows(text, after="a[b]: the most repeating") == [
        "line 1 output duran duran [duran] [duran]".split(),
        "2 repeating reference duran duran group".split(),
        "source the group duran duran".split(),
    ]
    assert rows(text, after="a[b]: the most lacking") == [
        "line 2 output zebra [red]rises[/red]".split(),  # the earlier of two
        "2 lacking reference gas prices rise again".split(),
        "source gas :smile: is dear".split(),
        "line 3 output (nothing)".split(),
        "2 lacking reference oil rises".split(),
        "source oil rises".split(),
    ]
    irrelevant = rows(text, after="a[b]: the most irrelevant")
    assert irrelevant[0] == "line 2 output [zebra] [[red]rises[/red]]".split()
    assert irrelevant[3] == "line 4 output oil [\ufffd[31mx]".split()
    assert "\x1b" not in text


def test_as_many_examples_as_asked_for(texts: AuditedTexts) -> None:
    systems = {"a": audit(*texts)}
    assert len(rows(shown(systems, {"a": texts}, num_examples=1), after="most lacking")) == 3
    assert "most" not in shown(systems, {"a": texts}, num_examples=0)
    assert "most" not in shown(systems, {})


def test_without_sources_there_are_none(texts: AuditedTexts) -> None:
    text = shown({"a": audit(*texts[:2])}, {"a": AuditedTexts(*texts[:2])})
    assert "source" not in text
    assert "most irrelevant" not in text


def test_odd_words_are_bold_and_red(texts: AuditedTexts) -> None:
    console = Console(width=80)
    segments = list(console.render(audit_tables({"a": audit(*texts)}, {"a": texts})))
    odd = Style.parse("bold red")
    marked = [
        one.text for one in segments if one.style is not None and odd + one.style == one.style
    ]
    assert [text for text in marked if text.strip()] == [
        "[duran]",
        "[duran]",
        "[zebra]",
        "[[red]rises[/red]]",
        "[\ufffd[31mx]",
    ]


def test_checks_of_systems_with_strange_names() -> None:
    counts = CheckCounts.of([Check(0.5)])
    checks = {"b[bold]": counts, "c\x1b[31m": counts}
    console = Console(width=80)
    with console.capture() as capture:
        console.print(audit_tables({"a": Audit(())}, {}, checks))
    assert ["b[bold]", "c\ufffd[31m"] in [line.split() for line in capture.get().splitlines()]
    assert "doubts in" not in capture.get()  # there are none
