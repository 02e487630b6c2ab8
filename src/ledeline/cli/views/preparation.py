"""What the command shows at the end of `ledeline prepare`."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ledeline.corpus.filters import FilterReport
from ledeline.data.corpus_reader import REJECTS
from ledeline.data.dataset import Dataset
from ledeline.data.prepare import REPORT, PrepareResult


def prepare_summary(prepared: PrepareResult) -> RenderableType:
    """What `ledeline prepare` prints at its end: the filter report, and an encoded pair."""
    lines: list[RenderableType] = [report_table(prepared.report), *_examples(prepared.report)]
    if prepared.num_rejects:
        lines.append(Text(f"{prepared.num_rejects:,} invalid rows; {REJECTS} has the reasons"))
    dataset = Dataset(prepared.folder)
    types = dataset.tokenizer.types
    for side, ids in zip(("lede", "headline"), dataset["train"][0], strict=True):
        lines.append(Text(f"{side:8}  ", style="dim").append(" ".join(types[i] for i in ids)))
    where = f"{prepared.folder}: {len(types):,} sub-word types; details in {REPORT}"
    return Group(*lines, Text(where, style="bold"))


def report_table(report: FilterReport) -> Table:
    """Pairs read, dropped by each rule, and kept, for each split."""
    table = Table()
    table.add_column("split")
    table.add_column("rule")
    for column in ("pairs", "share"):
        table.add_column(column, justify="right")
    for split, read in report.read.items():
        table.add_row(split, "read", f"{read:,}", "")
        for rule, number in report.dropped.get(split, {}).items():
            table.add_row("", rule, f"-{number:,}", f"{number / max(read, 1):.3%}")
        kept = report.kept.get(split, 0)
        share = f"{kept / max(read, 1):.3%}"
        table.add_row("", "kept", f"{kept:,}", share, style="bold", end_section=True)
    return table


def _examples(report: FilterReport) -> list[Text]:
    lines = []
    for split, rules in report.examples.items():
        for rule, examples in rules.items():
            for example in examples:
                line = Text(f"{split}, {rule}: ", style="dim", no_wrap=True, overflow="ellipsis")
                line.append(f"{example.headline or '(none)'} ← {example.lede}")
                lines.append(line)
    return lines
