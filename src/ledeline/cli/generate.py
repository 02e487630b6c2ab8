"""The verb that writes headlines."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Literal

import typer

from ledeline.cli.command import leave, progress_bar, say
from ledeline.cli.options import (
    Beam,
    BlockNgrams,
    Device,
    MaxLength,
    MinLength,
    Precision,
    StopEarly,
    Unknown,
)


def generate(
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="A lede, in quotes; - reads standard input."),
    ] = None,
    input_file: Annotated[
        Path | None,
        typer.Option(
            "--input",
            help="Read ledes from this file: a table (.csv, .tsv, .jsonl or .parquet), or text "
            "with a lede a line.",
        ),
    ] = None,
    input_format: Annotated[
        Literal["txt", "jsonl", "csv", "tsv", "parquet"] | None,
        typer.Option(
            "--format",
            help="What the input is, where its name does not say it; standard input can be all "
            "but parquet.",
        ),
    ] = None,
    delimiter: Annotated[
        Literal["auto", "comma", "semicolon", "tab", "bar"],
        typer.Option(help="What stands between the fields of CSV; auto finds it by the header."),
    ] = "auto",
    field: Annotated[
        str | None,
        typer.Option(
            help="The column of the ledes, if it is neither called lede nor the only one."
        ),
    ] = None,
    output_file: Annotated[
        Path | None,
        typer.Option(
            "--output",
            help="Write to this file: a .txt has the headlines alone; a .csv, .tsv, .jsonl or "
            ".parquet has the rows of the input, with a column of headlines added.",
        ),
    ] = None,
    column: Annotated[
        str | None, typer.Option(help="What to call the added column, if not headline.")
    ] = None,
    model: Annotated[
        list[Path] | None,
        typer.Option(
            help="Folder of the model, if not the one in the box; several make an ensemble."
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Write a line of JSON for each lede: headline, score and warnings."
        ),
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show where each word of the headline came from.")
    ] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Finish an --output of a run that was stopped; give the same options."
        ),
    ] = False,
    beam: Beam = 20,
    n_best: Annotated[int, typer.Option(help="How many headlines to give for a lede.")] = 1,
    min_length: MinLength = 1,
    max_length: MaxLength = None,
    block_ngrams: BlockNgrams = None,
    stop_early: StopEarly = False,
    unknown: Unknown = "replace",
    precision: Precision = "auto",
    device: Device = "auto",
) -> None:
    """Write a headline for each lede.

    Ledes are TEXT, or come from --input, or are the lines of standard input. Headlines are printed,
    or go to --output. See docs/generate.md.
    """
    from ledeline.config import SearchConfig
    from ledeline.corpus.inputs import File, find_input
    from ledeline.inference.outputs.notes import Notes
    from ledeline.inference.outputs.opening import open_output, refuse_at_odds
    from ledeline.inference.outputs.standard import standard_output

    given = find_input(texts or [], input_file, field, input_format, delimiter)
    kept = None if str(output_file) == "-" else output_file
    refuse_at_odds(kept, column, as_json=as_json, resume=resume, explain=explain, n_best=n_best)
    stdout = sys.stdout  # a bar takes its place
    on_screen = kept is None and stdout.isatty()
    if given.is_typed:
        what = "a lede a line" if given.kind == "txt" else given.kind.upper()
        say(f"ledeline: reads {what}, until Ctrl-D")
    with (
        progress_bar(wanted=isinstance(given, File) and not on_screen) as progress,
        Notes(say, given.noun, everything=on_screen, warnings=not (as_json or explain)) as notes,
        open_output(kept, given, column, as_json=as_json, resume=resume, progress=progress)
        if kept
        else nullcontext(standard_output(stdout, as_json=as_json, explain=explain)) as output,
    ):
        from ledeline.inference.generate import generate as generate_headlines
        from ledeline.inference.headliner import Headliner, Options

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
        leave(f"stopped after lede {outcome.num_done:,}{way_on}", 128 + outcome.signal)
