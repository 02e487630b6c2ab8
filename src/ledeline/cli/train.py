"""The verb that trains."""

from pathlib import Path
from typing import Annotated

import typer


def train(
    context: typer.Context,
    config: Annotated[Path, typer.Argument(metavar="CONFIG.toml", help="See docs/config.md.")],
    run: Annotated[
        Path | None, typer.Option(help="Folder of the run; runs/CONFIG if not given.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the newest checkpoint, if there is one.")
    ] = False,
    max_minutes: Annotated[
        float | None, typer.Option(min=0, help="Stop after so long, with a checkpoint.")
    ] = None,
) -> None:
    """Train a system on a dataset: a bar as it goes, headlines after each epoch.

    Any key of the configuration can be given as --section.key=value. Ctrl-C and SIGTERM stop the
    run with a checkpoint; --resume goes on as if nothing had happened. For several processes or
    machines see docs/scale.md.
    """
    from rich.console import Console

    from ledeline.cli.views.training import Screen, outcome_text
    from ledeline.config import TrainConfig
    from ledeline.config.section import load
    from ledeline.data.dataset import Dataset
    from ledeline.train.loop import train as train_system
    from ledeline.train.processes import leads

    settings = load(TrainConfig, config, context.args)
    folder = run or Path("runs") / config.stem
    quiet, profile = not leads(), Dataset(settings.data.dataset).tokenizer.profile
    with Screen(Console(stderr=True, quiet=quiet), profile) as screen:
        outcome = train_system(
            settings, folder, resume=resume, max_minutes=max_minutes, callback=screen
        )
    command = f"ledeline train {folder / 'config.toml'} --run {folder} --resume"
    Console(quiet=quiet).print(outcome_text(outcome, command), soft_wrap=True)
    if outcome.signal is not None:
        raise typer.Exit(128 + outcome.signal)
