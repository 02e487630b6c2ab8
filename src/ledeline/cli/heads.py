"""The verb `heads`."""

import json
from pathlib import Path
from typing import Annotated

from ledeline.cli.command import progress_bar
from ledeline.cli.options import SETS, AsJson, Device, HeadlineColumn, LedeColumn, ModelFolder
from ledeline.cli.parameters import Option


def heads(
    model: ModelFolder,
    given: Annotated[str, Option("--input", metavar="SET", help=f"Pairs with gold links: {SETS}")],
    gold: Annotated[
        str | None,
        Option(help="File with gold links, one line per pair. A table can have them in a column."),
    ] = None,
    pairs: Annotated[
        int | None,
        Option(min=1, help="Number of pairs to use, from the first. Default: all."),
    ] = None,
    lede: LedeColumn = "lede",
    headline: HeadlineColumn = "headline",
    output: Annotated[
        Path | None,
        Option(metavar="FOLDER", help="New folder: a copy of the model that explains by the best."),
    ] = None,
    as_json: AsJson = False,
    device: Device = "auto",
) -> None:
    """Find the layer and head whose attention explains headlines best.

    Scores the alignments of each attention of a Transformer against gold links. The first half of
    the pairs chooses, the second half checks the choice. See docs/evaluation.md.
    """
    from ledeline.corpus.evaluation_sets import read_evaluation_set
    from ledeline.evaluation.attention_heads import (
        attentions_of,
        measure_heads,
        read_halves,
        refuse_attention_that_writes,
    )
    from ledeline.inference.engines import open_model
    from ledeline.model.format.pack import change_system, refuse_existing

    if output is not None:
        refuse_existing(output)
    halves = read_halves(read_evaluation_set(given, lede=lede, headline=headline, gold=gold), pairs)
    loaded = open_model(model, device)
    if output is not None:
        refuse_attention_that_writes(loaded)
    with progress_bar(wanted=True) as progress:
        measured = measure_heads(loaded, halves, progress)
    best = measured.best
    if output is not None and best.layer is not None:
        change_system(model, output, attentions_of(loaded).explained_by(best.layer, best.head))
    if as_json:
        print(json.dumps(measured.as_dict()))
        return
    from rich.console import Console

    from ledeline.cli.views.heads import heads_view

    Console().print(heads_view(measured), soft_wrap=True)
    if output is not None:
        print(f"{output}: explains headlines by {best.name}")
