"""What `ledeline align` shows: links, their quality, and aligned word pairs."""

from collections.abc import Mapping

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ledeline.cli.views.scores import table_of_figures
from ledeline.evaluation.align import AlignedSet
from ledeline.evaluation.alignment_methods import METHODS
from ledeline.evaluation.links import AlignmentScore
from ledeline.text.profiles import clean


def alignment_tables(aligned: AlignedSet) -> RenderableType:
    """The links of a pair, or of many their quality and the aligned word pairs."""
    parts: list[RenderableType] = []
    if not aligned.test_set.files:
        parts.append(_pair_table(aligned))
    if aligned.alignments.quality is not None:
        parts.append(_quality_table(aligned.alignments.quality))
    for method, words in aligned.words.items() if aligned.test_set.files else ():
        parts += [Text(METHODS[method], style="bold"), Text(words.text(content_only=True))]
    return Group(*parts)


def _pair_table(aligned: AlignedSet) -> Table:
    """Each word of the headline, with the words of the lede that it is linked to."""
    links = {
        name: one[0]
        for name, one in aligned.alignments.links.items()
        if not METHODS[name].startswith("baseline")
    }
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("headline", *links):
        table.add_column(column.replace("-", "\n"))
    source = clean(aligned.test_set.ledes[0]).split()
    for place, word in enumerate(clean(aligned.test_set.headlines[0]).split()):
        cells = [
            " ".join(source[i] for i, j in sorted(one) if j == place) for one in links.values()
        ]
        table.add_row(Text(word, style="bold"), *map(Text, cells))
    unused = [set(range(len(source))) - {i for i, _ in one} for one in links.values()]
    table.add_section()
    cells = [" ".join(source[i] for i in sorted(places)) for places in unused]
    table.add_row(Text("dropped", style="dim"), *(Text(cell, style="dim") for cell in cells))
    return table


def _quality_table(quality: Mapping[str, AlignmentScore]) -> Table:
    columns = ["precision", "recall", "error rate", "dropped recall", "<pad> recall"]
    table = table_of_figures("against gold links", columns)
    best = min(score.error_rate for score in quality.values())
    for method, score in quality.items():
        values = (
            score.precision,
            score.recall,
            score.error_rate,
            score.dropped_recall,
            score.pad_recall,
        )
        cells = ["" if figure is None else f"{figure:.3f}" for figure in values]
        style = "bold" if score.error_rate == best else ""
        table.add_row(method, *cells, style=style)
    return table
