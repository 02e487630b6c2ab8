"""The command `ledeline`. A verb parses its options, calls one function and prints the result.

No other module prints.
"""

import io
import sys
from typing import Annotated, Final

import typer

from ledeline import __version__
from ledeline.cli.check import check
from ledeline.cli.command import Verbs
from ledeline.cli.evaluate import align, evaluate, report
from ledeline.cli.generate import generate
from ledeline.cli.heads import heads
from ledeline.cli.models import models
from ledeline.cli.pack import pack
from ledeline.cli.package import package
from ledeline.cli.prepare import prepare, synth
from ledeline.cli.score import audit, score
from ledeline.cli.serve import serve
from ledeline.cli.train import train
from ledeline.cli.tune import tune

app = typer.Typer(
    cls=Verbs,
    help="Write headlines for news ledes, and check them. Prepare corpora, train models on them, "
    "and evaluate the headlines.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_WITH_OVERRIDES: Final = {"allow_extra_args": True, "ignore_unknown_options": True}


@app.callback(invoke_without_command=True)
def _ledeline(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        print(f"ledeline {__version__}")
        raise typer.Exit


app.command(context_settings=_WITH_OVERRIDES)(prepare)
app.command(context_settings=_WITH_OVERRIDES)(train)
app.command()(generate)
app.command()(check)
app.command()(evaluate)
app.command()(score)
app.command()(audit)
app.command()(align)
app.command()(heads)
app.command()(report)
app.command()(tune)
app.command()(pack)
app.command()(package)
app.command()(models)
app.command(context_settings=_WITH_OVERRIDES)(serve)
app.command()(synth)


def main() -> None:
    """Run the command. A character that the terminal cannot show is printed as a question mark."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    app()
