"""The verb `serve`."""

from pathlib import Path
from typing import Annotated

import click

from ledeline.cli.command import say
from ledeline.cli.parameters import Argument, Option


def serve(
    context: click.Context,
    config: Annotated[
        str | None,
        Argument(metavar="CONFIG.toml", help="Configuration file; see docs/serve.md."),
    ] = None,
    model: Annotated[
        list[Path] | None,
        Option(
            metavar="FOLDER",
            help="Model folder, or name of an installed model. Default: the model that comes with "
            "ledeline. Repeat it for an ensemble.",
        ),
    ] = None,
    host: Annotated[str | None, Option(help="Address to listen on. Default: 127.0.0.1.")] = None,
    port: Annotated[int | None, Option(help="Port to listen on. Default: 8000.")] = None,
) -> None:
    """Serve headlines over HTTP, with an API and a web page.

    Every setting can be overridden with --section.key=value. On Ctrl-C or SIGTERM the server
    answers the requests in progress, then stops. See docs/serve.md.
    """
    from dataclasses import replace

    from ledeline.config.toml import load
    from ledeline.server.process import serve as run_server
    from ledeline.server.settings import ServeConfig

    given = [
        *([config] if config else []),
        *context.args,
    ]  # an override may stand in the place of the file
    file = Path(given.pop(0)) if given and not given[0].startswith("--") else None
    where = {"host": host, "port": port}.items()
    address = [f"--server.{key}={value}" for key, value in where if value is not None]
    settings = load(ServeConfig, file, [*given, *address])
    if model:
        settings = replace(settings, model=replace(settings.model, folders=tuple(model)))
    run_server(settings, lambda sentence: say(f"ledeline: {sentence}"))
