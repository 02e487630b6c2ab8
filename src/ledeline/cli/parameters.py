"""From the signature of a verb to its command: each parameter is an argument or an option.

A parameter is annotated with its type and one of the two, `Annotated[int, Option(help="...")] = 3`.
click reads the words of the command line; nothing heavier, as it is waited for at each start.
"""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args, get_origin, get_type_hints

import click

from ledeline.config.values import union_members

WITH_OVERRIDES: Final = {"allow_extra_args": True, "ignore_unknown_options": True}


class Argument(NamedTuple):
    """A parameter that is told by its place."""

    help: str = ""
    metavar: str | None = None


class Option:
    """A parameter that is told by its name: by default its own, with hyphens."""

    def __init__(
        self,
        *names: str,
        help: str = "",  # noqa: A002 - as of click
        metavar: str | None = None,
        min: float | None = None,  # noqa: A002
        max: float | None = None,  # noqa: A002
        show_default: bool = True,
    ) -> None:
        self.names = names
        self.help = help
        self.metavar = metavar
        self.limits = (min, max)
        self.show_default = show_default


def make_command(
    name: str, verb: Callable[..., None], settings: Mapping[str, Any] | None = None
) -> click.Command:
    """The command of a verb; `settings` are for click's context."""
    hints = get_type_hints(verb, include_extras=True)
    parameters = inspect.signature(verb).parameters.values()
    made = [_made(one, hints[one.name]) for one in parameters if hints[one.name] != click.Context]
    lists = {one.name for one in parameters if _is_list(_base(hints[one.name]))}
    context = next((one.name for one in parameters if hints[one.name] == click.Context), None)

    def run(**values: Any) -> None:
        for key in lists & values.keys():
            values[key] = list(values[key]) or None
        if context is not None:
            values[context] = click.get_current_context()
        verb(**values)

    return click.Command(
        name, context_settings=dict(settings or {}), callback=run, params=made, help=verb.__doc__
    )


def _made(parameter: inspect.Parameter, hint: Any) -> click.Parameter:
    without: Any = Argument() if parameter.default is parameter.empty else Option()
    kind, note = get_args(hint)[:2] if get_origin(hint) is Annotated else (hint, without)
    base, many = _base(kind), _is_list(_base(kind))
    if many:
        (base,) = get_args(base)
    if isinstance(note, Argument):
        return _argument(parameter, base, note, many=many)
    return _option(parameter, base, note, many=many)


def _argument(
    parameter: inspect.Parameter, kind: Any, note: Argument, *, many: bool
) -> click.Argument:
    required = parameter.default is parameter.empty
    shown = note.metavar or parameter.name.upper()
    return click.Argument(
        [parameter.name],
        required,
        note.help,
        type=_type(kind, Option()),
        nargs=-1 if many else 1,
        metavar=(shown if required else f"[{shown}]") + "..." * many,
        **({} if required or many else {"default": parameter.default}),
    )


def _option(parameter: inspect.Parameter, kind: Any, note: Option, *, many: bool) -> click.Option:
    default = parameter.default
    required = default is parameter.empty
    special = {"is_flag": True} if kind is bool else {"type": _type(kind, note), "multiple": many}
    return click.Option(
        [parameter.name, *_names(parameter.name, kind, note)],
        show_default=note.show_default and not required and default not in (None, False),
        help=note.help,
        metavar=note.metavar,
        required=required,
        **special,
        **({} if required or many else {"default": default}),
    )


def _names(name: str, kind: Any, note: Option) -> tuple[str, ...]:
    if note.names:
        return note.names
    spelled = name.replace("_", "-")
    return (f"--{spelled}/--no-{spelled}" if kind is bool else f"--{spelled}",)


def _base(kind: Any) -> Any:
    """A type without its notes, and without `None`."""
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    (base,) = (one for one in union_members(kind) if one is not type(None))
    return base


def _is_list(kind: Any) -> bool:
    return get_origin(kind) is list


def _type(kind: Any, note: Option) -> Any:
    """Click's type for a value."""
    if get_origin(kind) is Literal:
        return click.Choice(get_args(kind))
    if kind is Path:
        return click.Path(path_type=Path)
    if note.limits == (None, None):
        return kind
    limited: Any = click.IntRange if kind is int else click.FloatRange
    return limited(*note.limits)
