"""What `ledeline audit` and `ledeline evaluate` show of checks: support and doubts."""

from collections.abc import Mapping
from typing import Final

from rich import box
from rich.table import Table
from rich.text import Text

from ledeline.evaluation.check_counts import CheckCounts, present_kinds

_UNKNOWN: Final = "–"


def check_table(counts: Mapping[str, CheckCounts]) -> Table:
    """A column for each system or test set, a row for each figure."""
    table = Table(
        title="checked against the ledes", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
    )
    table.add_column("", no_wrap=True)
    for name in counts:
        table.add_column(safe_text(name), justify="right", overflow="fold")
    every = counts.values()
    table.add_row("headlines checked", *(f"{one.num_checked:,}" for one in every))
    if any(one.num_left_out for one in every):
        table.add_row("left out", *(f"{one.num_left_out:,}" for one in every))
    table.add_row("mean support", *map(_mean_support, every))
    table.add_row("with a doubt", *(f"{one.doubted_share:.1%}" for one in every))
    kinds = present_kinds(every)
    if kinds:
        table.add_row(Text("doubts in 1,000 headlines", style="dim"))
    for kind in kinds:
        table.add_row(f"  {kind}", *(f"{one.per_thousand(kind):,.1f}" for one in every))
    return table


def _mean_support(counts: CheckCounts) -> str:
    return _UNKNOWN if counts.mean_support is None else f"{counts.mean_support:.2f}"


def safe_text(text: str) -> Text:
    """Text from outside, without characters that control the terminal."""
    return Text("".join(letter if letter.isprintable() else "\ufffd" for letter in text))
