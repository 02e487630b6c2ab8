"""What `ledeline audit` shows: sums, histograms, and headlines with their odd words marked.

Odd words are bold, red and in brackets: colour alone tells nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Table
from rich.text import Text

from ledeline.cli.views.check_counts import check_table, safe_text
from ledeline.evaluation.audit import Audit, AuditedTexts, binned
from ledeline.evaluation.check_counts import CheckCounts
from ledeline.evaluation.odd_words import KINDS, odd_places

ODD: Final = "bold red"
NUM_EXAMPLES: Final = 3  # of each kind
_UNKNOWN: Final = "–"
_NOTHING: Final = "(nothing)"  # in place of a text without words
_LAST: Final = 5  # the last row of a histogram is for this number and all above
_LABEL: Final = 7  # letters before its columns
_NARROWEST_BAR, _WIDEST_BAR = 2, 16
_EIGHTHS: Final = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")


def audit_tables(
    systems: Mapping[str, Audit],
    texts: Mapping[str, AuditedTexts],
    checks: Mapping[str, CheckCounts] | None = None,
    *,
    num_examples: int = NUM_EXAMPLES,
) -> Group:
    """Show the audits of some systems, with examples from those whose texts are given."""
    parts: list[RenderableType] = [_sums_table(systems), Text(_SUMS, style="dim")]
    if checks:
        parts += ["", check_table(checks)]
    for kind in KINDS:
        known = {name: audit for name, audit in systems.items() if audit.knows(kind)}
        if known:
            parts += ["", Text(f"headlines by number of {kind} words", style="bold")]
            histograms = {name: one.histogram(kind) or [] for name, one in known.items()}
            parts.append(_Histogram({name: binned(one, _LAST) for name, one in histograms.items()}))
    for name, audit in systems.items():
        if name in texts:
            parts += _examples(name, audit, texts[name], num_examples)
    return Group(*parts)


# --- sums -----------------------------------------------------------------------------------------

_SUMS: Final = "odd words in all, and the share of headlines that have any"


def _sums_table(systems: Mapping[str, Audit]) -> Table:
    table = Table()
    table.add_column("system", overflow="fold", min_width=8)
    for name in ("headlines", *KINDS):
        table.add_column(name, justify="right")
    for name, audit in systems.items():
        sums = (Text(_sum(audit, kind)) for kind in KINDS)
        table.add_row(safe_text(name), f"{len(audit.odds):,}", *sums)
    return table


def _sum(audit: Audit, kind: str) -> str:
    histogram = audit.histogram(kind)
    if histogram is None:
        return _UNKNOWN
    num_words = sum(number * headlines for number, headlines in enumerate(histogram))
    return f"{num_words:,} in {sum(histogram[1:]) / max(1, sum(histogram)):.1%}"


# --- histograms -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Histogram:
    """A column for each system, a row for each number of odd words.

    Bars share one scale. The row of 0 has no bars: most headlines are there, and the bars of the
    others would be too short to see. Systems that do not fit side by side follow below.
    """

    systems: Mapping[str, Sequence[int]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        digits = max(len(f"{number:,}") for rows in self.systems.values() for number in rows)
        room = options.max_width - _LABEL  # a column has a number, a space, a bar, and two spaces
        num_columns = min(len(self.systems), max(1, room // (digits + _NARROWEST_BAR + 3)))
        bar = max(0, min(room // num_columns - digits - 3, _WIDEST_BAR))
        names = list(self.systems)
        for begin in range(0, len(names), num_columns):
            yield self._table(names[begin : begin + num_columns], digits, bar)

    def _table(self, names: Sequence[str], digits: int, bar: int) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column("words", style="dim")
        for name in names:
            table.add_column(safe_text(name), width=digits + 1 + bar, overflow="fold")
        largest = max(1, *(max(rows[1:]) for rows in self.systems.values()))
        for place in range(_LAST + 1):
            numbers = [self.systems[name][place] for name in names]
            bars = [_bar(bar * number / largest) if place else "" for number in numbers]
            cells = (f"{number:{digits},} {bar}" for number, bar in zip(numbers, bars, strict=True))
            table.add_row(f"{place}+" if place == _LAST else f"{place}", *map(Text, cells))
        return table


def _bar(length: float) -> str:
    """A bar, exact to an eighth of a letter; if it is not 0, it is at least that long."""
    eighths = max(round(8 * length), 1 if length else 0)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8]


# --- examples -------------------------------------------------------------------------------------


def _examples(name: str, audit: Audit, texts: AuditedTexts, limit: int) -> Iterator[RenderableType]:
    """The headlines of a system with the most odd words, kind by kind."""
    for kind in KINDS:
        if worst := audit.worst(kind, limit):
            yield ""
            yield Text.assemble(safe_text(name), f": the most {kind} words", style="bold")
            yield _examples_table(audit, kind, texts, worst)


def _examples_table(audit: Audit, kind: str, texts: AuditedTexts, places: Sequence[int]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for style in ("dim", "dim", ""):
        table.add_column(style=style, overflow="fold")
    for place in places:
        number = getattr(audit.odds[place], kind)
        output, reference = texts.outputs[place], texts.references[place]
        source = None if texts.sources is None else texts.sources[place]
        odd = odd_places(kind, output, reference, source)
        table.add_row(f"line {place + 1:,}", "output", _marked(output, odd))
        table.add_row(f"{number:,} {kind}", "reference", _marked(reference))
        if source is not None:
            table.add_row("", "source", _marked(source))
    return table


def _marked(words: Sequence[str], odd: Sequence[int] = ()) -> Text:
    if not words:
        return Text(_NOTHING, style="dim")
    marked = [
        Text.assemble("[", safe_text(word), "]", style=ODD) if place in odd else safe_text(word)
        for place, word in enumerate(words)
    ]
    return Text(" ").join(marked)
