"""The verb `train`."""

from pathlib import Path
from typing import Annotated

import click

from ledeline.cli.parameters import Argument, Option


def train(
    context: click.Context,
    config: Annotated[
        Path, Argument(metavar="CONFIG.toml", help="Configuration file; see docs/config.md.")
    ],
    run: Annotated[Path | None, Option(help="Run folder. Default: runs/CONFIG.")] = None,
    resume: Annotated[
        bool, Option("--resume", help="Continue from the newest checkpoint, if there is one.")
    ] = False,
    max_minutes: Annotated[
        float | None, Option(min=0, help="Save a checkpoint and stop after this time.")
    ] = None,
) -> None:
    """Train a system on a dataset.

    Every key of the configuration can be overridden with --section.key=value. Ctrl-C and SIGTERM
    save a checkpoint and stop. --resume continues from there, and the result is the same as
    without the stop. See docs/training.md, and docs/scale.md for several processes or machines.
    """
    from rich.console import Console

    from ledeline.cli.views.training import TrainingView, result_text
    from ledeline.data.dataset import Dataset
    from ledeline.train.loop import train as train_system
    from ledeline.train.processes import is_leading_process
    from ledeline.train.train_config import load_train_config

    quiet = not is_leading_process()
    settings = load_train_config(config, context.args, quiet=quiet)
    folder = run or Path("runs") / config.stem
    profile = Dataset(settings.data.dataset).tokenizer.profile
    with TrainingView(Console(stderr=True, quiet=quiet), profile) as view:
        result = train_system(
            settings, folder, resume=resume, max_minutes=max_minutes, callback=view
        )
    command = f"ledeline train {folder / 'config.toml'} --run {folder} --resume"
    Console(quiet=quiet).print(result_text(result, command), soft_wrap=True)
    if result.signal is not None:
        raise click.exceptions.Exit(128 + result.signal)
