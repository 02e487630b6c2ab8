"""The verb `check`."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from ledeline.cli.command import leave, progress_bar, say
from ledeline.cli.options import FORMAT_HELP, Delimiter, HeadlineColumn, LedeColumn, Resume
from ledeline.cli.parameters import Argument, Option
from ledeline.core.errors import ConfigError

if TYPE_CHECKING:
    from ledeline.corpus.inputs import Input


def check(
    lede: Annotated[str | None, Argument(metavar="LEDE", help="A lede, in quotes.")] = None,
    headline: Annotated[
        str | None, Argument(metavar="HEADLINE", help="Its headline, in quotes.")
    ] = None,
    input_file: Annotated[
        Path | None,
        Option(
            "--input",
            help="Read pairs from this table (.csv, .tsv, .jsonl or .parquet). - reads standard "
            "input, as JSONL unless --format says otherwise.",
        ),
    ] = None,
    input_format: Annotated[
        Literal["jsonl", "csv", "tsv", "parquet"] | None,
        Option("--format", help=FORMAT_HELP),
    ] = None,
    delimiter: Delimiter = "auto",
    lede_column: LedeColumn = "lede",
    headline_column: HeadlineColumn = "headline",
    output_file: Annotated[
        Path | None,
        Option(
            "--output",
            help="Write to this table (.csv, .tsv, .jsonl or .parquet): the rows of the input and "
            "the columns support and doubts.",
        ),
    ] = None,
    as_json: Annotated[
        bool,
        Option(
            "--json",
            help="Print one line of JSON per pair, with lede, headline, support and doubts.",
        ),
    ] = False,
    min_support: Annotated[
        float | None,
        Option(
            min=0,
            max=1,
            help="Exit with status 1 if a pair has less support than this, or cannot be checked.",
        ),
    ] = None,
    resume: Resume = False,
) -> None:
    """Check whether headlines are supported by their ledes.

    A pair is LEDE and HEADLINE; many come from --input, or from standard input. Says how likely it
    is that the lede supports the headline, and which words are doubtful. See docs/check.md.
    """
    kept = None if str(output_file) == "-" else output_file
    _check_options(kept, as_json=as_json, resume=resume, min_support=min_support)
    if lede is None:
        given = _open_pairs(input_file, lede_column, input_format, delimiter)
        num_low, num_pairs = _check_table(
            given, headline_column, kept, as_json, resume, min_support or 0.0
        )
    elif headline is None:
        raise ConfigError("a headline is missing: give LEDE and HEADLINE, or a table with --input")
    elif input_file is not None:
        raise ConfigError("give a lede and a headline, or --input, not both")
    else:
        _refuse_file(lede)
        if kept is not None:
            raise ConfigError(f"--output {kept}: is for the pairs of an --input; leave it out")
        num_low, num_pairs = _check_one(lede, headline, as_json, min_support or 0.0), 1
    if min_support is not None and num_low:
        have = "pair has" if num_pairs == 1 else "pairs have"
        leave(f"{num_low:,} of {num_pairs:,} {have} less support than {min_support:g}", 1)


def _check_options(
    kept: Path | None, *, as_json: bool, resume: bool, min_support: float | None
) -> None:
    """Refuse options that have no effect together."""
    if resume and kept is None:
        raise ConfigError("--resume continues an output file; name it with --output")
    if resume and min_support is not None:
        raise ConfigError(
            f"--min-support {min_support:g}: with --resume the earlier pairs are not counted; "
            "leave it out"
        )
    if as_json and kept is not None:
        raise ConfigError("--json prints; leave it out with --output, or name a .jsonl file alone")
    if kept is not None and kept.suffix.lower() == ".txt":
        raise ConfigError(f"{kept}: name a table, which ends in .csv, .tsv, .jsonl or .parquet")


def _refuse_file(lede: str) -> None:
    """Refuse a lede that is a file name."""
    from ledeline.corpus.formats import looks_like_file_name

    if looks_like_file_name(lede):
        raise ConfigError(f"{lede} is not a lede; to check the pairs of a file, use --input {lede}")


def _open_pairs(
    file: Path | None,
    lede_column: str,
    file_format: Literal["jsonl", "csv", "tsv", "parquet"] | None,
    delimiter: str,
) -> "Input":
    from ledeline.corpus.formats import input_format
    from ledeline.corpus.inputs import open_input

    if file is None or str(file) == "-":
        file_format = file_format or "jsonl"
    elif file_format is None and input_format(file) == "txt":
        raise ConfigError(
            f"{file}: pairs come from a table; name a .csv, .tsv, .jsonl or .parquet file, or set "
            "its format with --format"
        )
    return open_input([], file, lede_column, file_format, delimiter)


def _check_one(lede: str, headline: str, as_json: bool, min_support: float) -> int:
    """Check a pair and print it; 1 if it has too little support."""
    from ledeline.corpus.records import text_record
    from ledeline.inference.check_pairs import checked_headline, is_low
    from ledeline.inference.checks.checker import Checker
    from ledeline.inference.outputs import RecordResult
    from ledeline.inference.outputs.standard_output import open_pair_output

    checked = checked_headline(lede, headline, Checker.load().check(lede, headline))
    output = open_pair_output(sys.stdout, as_json=as_json)
    output.write([RecordResult(text_record(lede, 1), checked)])
    if as_json:
        for warning in checked.warnings:
            say(f"ledeline: {warning}")
    return int(is_low(checked.support, min_support))


def _check_table(
    given: "Input",
    headline_column: str,
    kept: Path | None,
    as_json: bool,
    resume: bool,
    min_support: float,
) -> tuple[int, int]:
    """Check all pairs; how many have too little support, and how many there are."""
    from ledeline.corpus.inputs import FileInput
    from ledeline.inference.outputs.added_columns import CHECK_COLUMNS
    from ledeline.inference.outputs.open_output import open_output
    from ledeline.inference.outputs.reporter import LimitedReporter
    from ledeline.inference.outputs.standard_output import open_pair_output

    stdout = sys.stdout  # the progress bar replaces sys.stdout
    on_screen = kept is None and stdout.isatty()
    if given.is_terminal:
        say(f"ledeline: reading {given.file_format.upper()}; Ctrl-D ends the input")
    with (
        progress_bar(wanted=isinstance(given, FileInput) and not on_screen) as progress,
        LimitedReporter(
            say, given.unit, unlimited=on_screen, warnings=kept is not None or as_json
        ) as reporter,
        open_output(kept, given, added=CHECK_COLUMNS, resume=resume, progress=progress)
        if kept
        else nullcontext(open_pair_output(stdout, as_json=as_json)) as output,
    ):
        from ledeline.inference.check_pairs import check_pairs
        from ledeline.inference.checks.checker import Checker

        checker = Checker.load()
        outcome = check_pairs(
            checker, given, headline_column, output, reporter, progress, min_support=min_support
        )
    if outcome.signal is not None:
        way_on = "; use --resume to continue" if kept else ""
        leave(f"stopped after pair {outcome.num_done:,}{way_on}", 128 + outcome.signal)
    return outcome.num_low, outcome.num_checked
