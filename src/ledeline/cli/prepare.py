"""Verbs that make corpora and datasets."""

from pathlib import Path
from typing import Annotated

import typer

from ledeline.cli.command import say


def prepare(
    context: typer.Context,
    config: Annotated[Path, typer.Argument(metavar="CONFIG.toml", help="The configuration.")],
) -> None:
    """Turn pairs of ledes and headlines into a dataset to train on.

    CONFIG.toml says which files are read, which pairs are kept, how they are split, and where the
    dataset goes. Any key of it can be given here as well: --corpus.train=pairs.csv.

    docs/own-data.md is a guide; docs/config.md lists all keys.
    """
    from rich.console import Console

    from ledeline.cli.views.console import Bars, prepared_summary
    from ledeline.config import PrepareConfig
    from ledeline.config.toml import load
    from ledeline.data.prepare import prepare as prepare_dataset

    settings = load(PrepareConfig, config, context.args)
    with Bars(Console(stderr=True)) as bars:
        prepared = prepare_dataset(settings, bars)
    Console().print(prepared_summary(prepared))
    for warning in prepared.warnings:
        say(f"ledeline: {warning}")


def synth(
    pairs: Annotated[int, typer.Option(min=1, help="How many pairs to write.")],
    output: Annotated[Path, typer.Option(help="A .jsonl, .csv, .tsv or .parquet file.")],
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same pairs.")] = 1,
) -> None:
    """Write pairs of the synthetic newsroom, with the gold alignment of their words."""
    from rich.console import Console

    from ledeline.cli.views.console import Bars
    from ledeline.core.progress import counted
    from ledeline.corpus.tables import write_table
    from ledeline.synth.newsroom import Story, generate

    with Bars(Console(stderr=True)) as bars:
        stories = counted(generate(pairs, seed), "write", pairs, bars)
        write_table(output, (story._asdict() for story in stories), Story._fields)
