"""The verb `generate`."""

import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from ledeline.cli.command import leave, progress_bar, say
from ledeline.cli.options import (
    DEFAULT_SEARCH,
    FORMAT_HELP,
    Check,
    Constrain,
    Delimiter,
    Device,
    MinSupport,
    Precision,
    Rank,
    Resume,
    Unknown,
    with_search_options,
)
from ledeline.cli.parameters import Argument, Option
from ledeline.config.search import SearchConfig
from ledeline.core.errors import ConfigError
from ledeline.inference.options import Options


@with_search_options(without=("forbid_unknown",))  # --unknown says it
def generate(
    texts: Annotated[
        list[str] | None,
        Argument(metavar="TEXT", help="A lede, in quotes. - reads standard input."),
    ] = None,
    input_file: Annotated[
        Path | None,
        Option(
            "--input",
            help="Read ledes from this file: a table (.csv, .tsv, .jsonl or .parquet), or text "
            "with one lede per line.",
        ),
    ] = None,
    input_format: Annotated[
        Literal["txt", "jsonl", "csv", "tsv", "parquet"] | None,
        Option("--format", help=FORMAT_HELP),
    ] = None,
    delimiter: Delimiter = "auto",
    field: Annotated[
        str | None,
        Option(help="Column with the ledes. Default: lede, or the only column."),
    ] = None,
    output_file: Annotated[
        Path | None,
        Option(
            "--output",
            help="Write to this file. A .txt file holds the headlines only. A .csv, .tsv, .jsonl "
            "or .parquet file holds the rows of the input and a column of headlines.",
        ),
    ] = None,
    column: Annotated[
        str | None, Option(help="Name of the added column. Default: headline.")
    ] = None,
    support_column: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="Also add a column of this name, with the support of the headlines.",
        ),
    ] = None,
    model: Annotated[
        list[Path] | None,
        Option(
            help="Model folder, or name of an installed model. Default: the model that comes with "
            "ledeline. Repeat it for an ensemble."
        ),
    ] = None,
    as_json: Annotated[
        bool,
        Option(
            "--json",
            help="Write one line of JSON per lede, with headline, score, warnings, support and "
            "doubts.",
        ),
    ] = False,
    explain: Annotated[
        bool, Option("--explain", help="Show where each word of the headline came from.")
    ] = False,
    resume: Resume = False,
    search: SearchConfig = DEFAULT_SEARCH,
    check: Check = None,
    rank: Rank = None,
    constrain: Constrain = None,
    min_support: MinSupport = None,
    unknown: Unknown = "replace",
    precision: Precision = "auto",
    device: Device = "auto",
) -> None:
    """Write a headline for each lede.

    Ledes come from TEXT, from --input, or from standard input, one per line. Headlines are printed
    or written to --output. See docs/generate.md.
    """
    from ledeline.corpus.inputs import FileInput, open_input
    from ledeline.inference.outputs.added_columns import headline_columns
    from ledeline.inference.outputs.open_output import check_output_options, open_output
    from ledeline.inference.outputs.reporter import LimitedReporter
    from ledeline.inference.outputs.standard_output import open_standard_output

    given = open_input(texts or [], input_file, field, input_format, delimiter)
    kept = None if str(output_file) == "-" else output_file
    if kept is None and sys.stdout is None:
        raise ConfigError("standard output is closed; name a file with --output")
    check_output_options(
        kept,
        column,
        as_json=as_json,
        resume=resume,
        explain=explain,
        n_best=search.n_best,
        support_column=support_column,
    )
    added = headline_columns(column, support_column)
    options = Options(
        search=replace(search, forbid_unknown=unknown == "forbid"),
        explain=explain,
        replace_unknown=unknown == "replace",
        check=_wanted_check(check, support_column),
        rank=rank,
        constrain=constrain,
        min_support=min_support,
    )
    stdout = sys.stdout  # the progress bar replaces sys.stdout
    on_screen = kept is None and stdout.isatty()
    if given.is_terminal:
        what = "one lede per line" if given.file_format == "txt" else given.file_format.upper()
        say(f"ledeline: reading {what}; Ctrl-D ends the input")
    with (
        progress_bar(wanted=isinstance(given, FileInput) and not on_screen) as progress,
        LimitedReporter(
            say, given.unit, unlimited=on_screen, warnings=not (as_json or explain)
        ) as reporter,
        open_output(kept, given, added=added, as_json=as_json, resume=resume, progress=progress)
        if kept
        else nullcontext(open_standard_output(stdout, as_json=as_json, explain=explain)) as output,
    ):
        from ledeline.inference.generate import generate as generate_headlines
        from ledeline.inference.headliner import Headliner

        headliner = Headliner.load(*model or [], precision=precision, device=device)
        outcome = generate_headlines(headliner, given, output, options, reporter, progress)
    if outcome.signal is not None:
        way_on = "; run the same command with --resume to continue" if kept else ""
        leave(f"stopped after lede {outcome.num_done:,}{way_on}", 128 + outcome.signal)


def _wanted_check(check: bool | None, support_column: str | None) -> bool | None:
    """Whether headlines are checked; a column of their support needs it."""
    if support_column is not None and check is False:
        raise ConfigError(f"--support-column {support_column}: needs --check, not --no-check")
    return check if support_column is None else True
