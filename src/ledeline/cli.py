"""The command `ledeline`: verbs that parse, call one function, and print."""

import io
import os
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
import typer.core

from ledeline import __version__
from ledeline.errors import LedelineError


class _Verbs(typer.core.TyperGroup):
    """The verbs; what a user can cause ends in one sentence and exit status 2."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except LedelineError as error:
            _leave(str(error), 2)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads on
            raise typer.Exit(0) from None
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            _leave(f"{place}{error.strerror or error}", 2)
        except KeyboardInterrupt:
            _leave("stopped", 130)


def _leave(sentence: str, status: int) -> NoReturn:
    print(f"ledeline: {sentence}", file=sys.stderr)
    raise typer.Exit(status)


app = typer.Typer(
    cls=_Verbs,
    help="From the lede, a headline: prepare corpora of ledes and headlines, and train on them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_WITH_OVERRIDES = {"allow_extra_args": True, "ignore_unknown_options": True}


@app.callback(invoke_without_command=True)
def _ledeline(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        print(f"ledeline {__version__}")
        raise typer.Exit


@app.command(context_settings=_WITH_OVERRIDES)
def prepare(
    context: typer.Context,
    config: Annotated[Path, typer.Argument(metavar="CONFIG.toml", help="See docs/config.md.")],
) -> None:
    """Turn a corpus into a dataset: read, tokenise, filter, split, learn sub-words, encode.

    Any key of the configuration can be given as --section.key=value.
    """
    from rich.console import Console

    from ledeline.config import PrepareConfig
    from ledeline.prepare import prepare as prepare_dataset
    from ledeline.section import load
    from ledeline.terminal import Bars, prepared_summary

    settings = load(PrepareConfig, config, context.args)
    with Bars(Console(stderr=True)) as bars:
        prepared = prepare_dataset(settings, bars)
    Console().print(prepared_summary(prepared))


@app.command(context_settings=_WITH_OVERRIDES)
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

    from ledeline.config import TrainConfig
    from ledeline.dataset import Dataset
    from ledeline.screen import Screen, outcome_text
    from ledeline.section import load
    from ledeline.train.loop import train as train_system
    from ledeline.train.processes import leads

    settings = load(TrainConfig, config, context.args)
    folder = run or Path("runs") / config.stem
    quiet, profile = not leads(), Dataset(settings.data.dataset).profile
    with Screen(Console(stderr=True, quiet=quiet), profile) as screen:
        outcome = train_system(
            settings, folder, resume=resume, max_minutes=max_minutes, watch=screen
        )
    command = f"ledeline train {folder / 'config.toml'} --run {folder} --resume"
    Console(quiet=quiet).print(outcome_text(outcome, command), soft_wrap=True)
    if outcome.signal is not None:
        raise typer.Exit(128 + outcome.signal)


@app.command()
def synth(
    pairs: Annotated[int, typer.Option(min=1, help="How many pairs to write.")],
    output: Annotated[Path, typer.Option(help="A .jsonl, .csv, .tsv or .parquet file.")],
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same pairs.")] = 1,
) -> None:
    """Write pairs of the synthetic newsroom, with the gold alignment of their words."""
    from rich.console import Console

    from ledeline.corpus.newsroom import Story, generate
    from ledeline.corpus.tables import write_table
    from ledeline.progress import counted
    from ledeline.terminal import Bars

    with Bars(Console(stderr=True)) as bars:
        stories = counted(generate(pairs, seed), "write", pairs, bars)
        write_table(output, (story._asdict() for story in stories), Story._fields)


def main() -> None:
    """Run the command; a terminal that cannot show a character gets a question mark."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    app()
