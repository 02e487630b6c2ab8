"""What all verbs share: error handling, messages, progress bars."""

import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn

import click

from ledeline.core.errors import (
    ConfigError,
    LedelineError,
    LedelineWarning,
)
from ledeline.core.extras import missing_extra
from ledeline.core.progress import Progress, no_progress

_EXTRAS: Final[Mapping[str, Sequence[str]]] = {  # of verbs that are installed with some
    "prepare": ("train",),
    "train": ("train",),
    "pack": ("train",),
    "package": ("train",),
    "serve": ("serve",),
    "evaluate": ("evaluate",),
    "score": ("evaluate",),
    "audit": ("evaluate",),
    "align": ("train", "evaluate"),
    "heads": ("train", "evaluate"),
    "tune": ("train", "evaluate"),
    "report": ("evaluate",),
}


class Verbs(click.Group):
    """The verbs. An error that a user can cause is printed as one sentence; exit status 2."""

    def invoke(self, ctx: Any) -> Any:
        """Run a verb and turn its errors into a sentence and an exit status."""
        try:
            with _plain_warnings():
                return super().invoke(ctx)
        except (LedelineError, LedelineWarning) as error:  # python -W error raises warnings
            leave(str(error), 2)
        except ModuleNotFoundError as error:
            verb = str(ctx.invoked_subcommand)
            sentence = missing_extra(error, f"ledeline {verb}", *_EXTRAS.get(verb, ()))
            if sentence is None:
                raise
            leave(str(sentence), 2)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader is gone
            raise click.exceptions.Exit(0) from None
        except MemoryError as error:
            leave(str(error) or "there is not enough memory for this", 2)
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            leave(f"{place}{error.strerror or error}", 2)
        except KeyboardInterrupt:
            leave("stopped", 130)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show warnings for the user as one line each, without a place in our code."""
    with warnings.catch_warnings():
        show_others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any) -> None:
            if issubclass(category, LedelineWarning):
                say(f"ledeline: {message}")
            else:
                show_others(message, category, *place)

        warnings.showwarning = show  # type: ignore[assignment]
        if not sys.warnoptions:
            warnings.simplefilter("always", LedelineWarning)
        yield


def leave(sentence: str, status: int) -> NoReturn:
    """Print a sentence to standard error and exit with this status."""
    print(f"ledeline: {sentence}", file=sys.stderr)
    raise click.exceptions.Exit(status)


def say(sentence: str) -> None:
    """Print a sentence to standard error."""
    print(sentence, file=sys.stderr)


@contextmanager
def progress_bar(*, wanted: bool) -> Iterator[Progress]:
    """A progress bar, if it is wanted and standard error is a terminal."""
    if not wanted or not sys.stderr.isatty():
        yield no_progress
        return
    from rich.console import Console

    from ledeline.cli.views.progress_bars import ProgressBars

    with ProgressBars(Console(stderr=True)) as bars:
        yield bars


def refuse_mixture(as_json: bool, file: str | None, option: str) -> None:
    """Refuse to print two outputs to standard output."""
    if as_json and file == "-":
        raise ConfigError(f"--json and {option} - would both print to standard output; name a file")


def refuse_idle(option: str, value: object, needed: str, other: object) -> None:
    """Refuse an option that has no effect without another one."""
    if value is not None and other is None:
        raise ConfigError(f"{option} {value}: has no effect without {needed}")


def refuse_input(path: Path, inputs: Iterable[str]) -> Path:
    """Return the path of an output, or refuse it if it is one of the inputs."""
    for name in inputs:
        if name and path.exists() and Path(name).exists() and path.samefile(name):
            raise ConfigError(f"{path} is an input; name another file to write to")
    return path


def write(name: str, lines: Iterable[str], inputs: Iterable[str]) -> None:
    """Write lines to a file that is not one of the inputs; `-` prints them."""
    if name == "-":
        sys.stdout.writelines(f"{line}\n" for line in lines)
        return
    from ledeline.core.atomic import atomic_write

    with (
        atomic_write(refuse_input(Path(name), inputs)) as path,
        path.open("w", encoding="utf-8", newline="\n") as file,
    ):
        file.writelines(f"{line}\n" for line in lines)
