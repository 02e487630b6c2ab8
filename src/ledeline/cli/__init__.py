"""The command `ledeline`. A verb parses its options, calls one function and prints the result.

No other module prints. Of the verbs only the one that is asked for is imported.
"""

import gc
import importlib
import io
import sys
from typing import Any, Final

import click

from ledeline import __version__
from ledeline.cli.command import Verbs
from ledeline.cli.parameters import WITH_OVERRIDES, make_command

_MODULES: Final = {  # the verbs, in the order of the help
    "prepare": "prepare",
    "train": "train",
    "generate": "generate",
    "check": "check",
    "evaluate": "evaluate",
    "score": "score",
    "audit": "score",
    "align": "evaluate",
    "heads": "heads",
    "report": "evaluate",
    "tune": "tune",
    "pack": "pack",
    "package": "package",
    "models": "models",
    "serve": "serve",
    "synth": "prepare",
}
_OVERRIDDEN: Final = ("prepare", "train", "serve")  # which take --section.key=value
# Verbs that often have little to do: where garbage is looked for rarely, they are a tenth faster.
_SHORT: Final = ("generate", "check", "models", "score")
_GC_THRESHOLD: Final = 50_000  # new objects before it is looked for; Python's own is 700


class _LazyVerbs(Verbs):
    """The verbs, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - all have the same
        """The names of the verbs."""
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of a verb, or None."""
        if cmd_name in _SHORT:
            gc.set_threshold(_GC_THRESHOLD)
        return _command(cmd_name) if cmd_name in _MODULES else None


def _command(name: str) -> click.Command:
    module = importlib.import_module(f"ledeline.cli.{_MODULES[name]}")
    settings: dict[str, Any] = WITH_OVERRIDES if name in _OVERRIDDEN else {}
    return make_command(name, getattr(module, name), settings)


@click.group(
    "ledeline",
    cls=_LazyVerbs,
    no_args_is_help=True,
    help="Write headlines for news ledes, and check them. Prepare corpora, train models on them, "
    "and evaluate the headlines.",
)
@click.version_option(
    __version__, message="ledeline %(version)s", help="Show the version and exit."
)
def app() -> None:
    """The command; a verb is run by `Verbs`."""


def main() -> None:
    """Run the command. A character that the terminal cannot show is printed as a question mark.

    Garbage is not looked for at the end, which takes a tenth of the time of a short command.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app()
    finally:
        gc.freeze()
