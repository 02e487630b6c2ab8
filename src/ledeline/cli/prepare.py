"""The verbs `prepare` and `synth`."""

from pathlib import Path
from typing import Annotated

import click

from ledeline.cli.command import say
from ledeline.cli.parameters import Argument, Option


def prepare(
    context: click.Context,
    config: Annotated[Path, Argument(metavar="CONFIG.toml", help="Configuration file.")],
) -> None:
    """Turn pairs of ledes and headlines into a dataset to train on.

    CONFIG.toml names the files to read, the filters, the splits and the folder of the dataset.
    Every key can be overridden with --section.key=value, such as --corpus.train=pairs.csv.

    See docs/own-data.md for a guide, and docs/config.md for all keys.
    """
    from rich.console import Console

    from ledeline.cli.views.preparation import prepare_summary
    from ledeline.cli.views.progress_bars import ProgressBars
    from ledeline.config import PrepareConfig
    from ledeline.config.toml import load
    from ledeline.data.prepare import prepare as prepare_dataset

    settings = load(PrepareConfig, config, context.args)
    with ProgressBars(Console(stderr=True)) as bars:
        prepared = prepare_dataset(settings, bars)
    Console().print(prepare_summary(prepared))
    for warning in prepared.warnings:
        say(f"ledeline: {warning}")


def synth(
    pairs: Annotated[int, Option(min=1, help="Number of pairs to write.")],
    output: Annotated[Path, Option(help="File to write: .jsonl, .csv, .tsv or .parquet.")],
    seed: Annotated[
        int, Option(min=0, help="Random seed. The same seed gives the same pairs.")
    ] = 1,
) -> None:
    """Write synthetic pairs of ledes and headlines.

    Each pair comes with the gold alignment of its words. See docs/corpus.md.
    """
    from rich.console import Console

    from ledeline.cli.views.progress_bars import ProgressBars
    from ledeline.core.progress import track_progress
    from ledeline.corpus.table_writer import write_table
    from ledeline.synth.newsroom import Story, generate

    with ProgressBars(Console(stderr=True)) as bars:
        stories = track_progress(generate(pairs, seed), "write", pairs, bars)
        write_table(output, (story._asdict() for story in stories), Story._fields)
