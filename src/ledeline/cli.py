"""The command `ledeline`: verbs that parse, call one function, and print."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import typer
import typer.core

from ledeline import __version__
from ledeline.errors import LedelineError
from ledeline.progress import Progress, silent


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
    help="From the lede, a headline: prepare corpora of ledes and headlines, train on them, and "
    "write headlines.",
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
def generate(
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help="Ledes; - for standard input.")
    ] = None,
    input_file: Annotated[
        Path | None,
        typer.Option("--input", help="A .txt, .jsonl, .csv, .tsv or .parquet file of ledes."),
    ] = None,
    field: Annotated[
        str | None, typer.Option(help="The column of the ledes; lede, or the only one.")
    ] = None,
    output_file: Annotated[
        Path | None,
        typer.Option(
            "--output", help="A .txt file, or a .jsonl, .csv, .tsv or .parquet table to add to."
        ),
    ] = None,
    column: Annotated[
        str | None, typer.Option(help="The column to add to the table; headline if not given.")
    ] = None,
    model: Annotated[
        list[Path] | None, typer.Option(help="Folder of the model; several make an ensemble.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write an object a lede, with score and warnings.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show where each word of the headline came from.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an output that was not ended.")
    ] = False,
    beam: Annotated[int, typer.Option(help="How many beginnings the search keeps.")] = 20,
    n_best: Annotated[int, typer.Option(help="How many headlines to give for a lede.")] = 1,
    min_length: Annotated[int, typer.Option(help="Sub-words of a headline at least.")] = 1,
    max_length: Annotated[int | None, typer.Option(help="Sub-words of a headline at most.")] = None,
    block_ngrams: Annotated[
        int, typer.Option(help="No run of so many sub-words twice in a headline; 0: off.")
    ] = 0,
    stop_early: Annotated[
        bool, typer.Option("--stop-early", help="End a search once no better headline can come.")
    ] = False,
    unknown: Annotated[
        Literal["replace", "keep", "forbid"],
        typer.Option(help="What becomes of a word that the model cannot spell."),
    ] = "replace",
    precision: Annotated[
        Literal["auto", "float32", "int8"], typer.Option(help="Of the numbers of the model.")
    ] = "auto",
    device: Annotated[
        Literal["auto", "cpu", "cuda"], typer.Option(help="auto: a GPU where there is one.")
    ] = "auto",
) -> None:
    """Write a headline for each lede: of the command line, of a file, or of standard input.

    An output that was not ended can be gone on with by --resume. See docs/generate.md.
    """
    from ledeline.config import SearchConfig
    from ledeline.corpus.inputs import File, find_input
    from ledeline.outputs.files import open_output, refuse_at_odds
    from ledeline.outputs.notes import Notes
    from ledeline.outputs.standard import standard_output

    given = find_input(texts or [], input_file, field)
    kept = None if str(output_file) == "-" else output_file
    refuse_at_odds(kept, column, as_json=as_json, resume=resume, explain=explain, n_best=n_best)
    stdout = sys.stdout  # a bar takes its place
    on_screen = kept is None and stdout.isatty()
    if given.is_typed:
        _say("ledeline: reads a lede a line, until Ctrl-D")
    with (
        _progress(wanted=isinstance(given, File) and not on_screen) as progress,
        Notes(_say, given.noun, everything=on_screen, warnings=not (as_json or explain)) as notes,
        open_output(kept, given, column, as_json=as_json, resume=resume, progress=progress)
        if kept
        else nullcontext(standard_output(stdout, as_json=as_json, explain=explain)) as output,
    ):
        from ledeline.generate import generate as generate_headlines
        from ledeline.headliner import Headliner, Options

        search = SearchConfig(
            beam=beam,
            n_best=n_best,
            min_length=min_length,
            max_length=max_length,
            block_ngrams=block_ngrams,
            forbid_unknown=unknown == "forbid",
            stop_early=stop_early,
        )
        options = Options(search=search, explain=explain, replace_unknown=unknown == "replace")
        headliner = Headliner.load(*model or [], precision=precision, device=device)
        outcome = generate_headlines(headliner, given, output, options, notes, progress)
    if outcome.signal is not None:
        way_on = "; the same command with --resume goes on" if kept else ""
        _leave(f"stopped after lede {outcome.num_done:,}{way_on}", 128 + outcome.signal)


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr)


@contextmanager
def _progress(*, wanted: bool) -> Iterator[Progress]:
    """A bar where somebody sees it."""
    if not wanted or not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console

    from ledeline.terminal import Bars

    with Bars(Console(stderr=True)) as bars:
        yield bars


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
