"""Values and types as a user writes them in TOML and reads them in a sentence."""

import datetime
import json
import types
from pathlib import Path
from typing import Any, Final, Literal, Union, get_args, get_origin

_NAMES: Final = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a string",
    Path: "a path",
    datetime.date: "a date, as 2024-12-31",
}
_PLURALS: Final = {int: "whole numbers", float: "numbers"}


def as_toml(value: Any) -> str:
    """A value as TOML has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | Path):
        return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {as_toml(one)}" for key, one in value.items()) + "}"
    return str(value)


def described(kind: Any) -> str:
    """A type in the user's words."""
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(map(str, get_args(kind)))
    if get_origin(kind) is tuple:
        return _described_list(*get_args(kind))
    members = [one for one in union_members(kind) if one is not type(None)]
    if len(members) > 1 or members[0] is not kind:
        return " or ".join(map(described, members))
    return _NAMES.get(kind) or f"a {kind.__name__}"


def _described_list(first: Any, *rest: Any) -> str:
    count = "" if rest == (...,) else f"{1 + len(rest)} "
    return f"a list of {count}{_PLURALS.get(first, 'strings')}"


def union_members(kind: Any) -> tuple[Any, ...]:
    """The types that `X | Y` allows; a plain type allows itself."""
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


# --- does a value have a type ---------------------------------------------------------------------


class Misfit(Exception):
    """A value does not have the type."""


def fitted(kind: Any, value: Any) -> Any:
    """The value as the type holds it, a whole number as a float where one is meant."""
    if get_origin(kind) is tuple:
        return _fitted_tuple(get_args(kind), value)
    members = union_members(kind)
    if len(members) > 1:
        return _fitted_union(members, value)
    if kind is float and _has_type(int, value):
        try:
            return float(value)
        except OverflowError:
            raise Misfit from None
    if not _has_type(kind, value):
        raise Misfit
    return value


def _has_type(kind: Any, value: Any) -> bool:
    if kind is Any:
        return True
    if get_origin(kind) is Literal:
        return any(one == value and _has_type(type(one), value) for one in get_args(kind))
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind is datetime.date:  # a time of day is more than a date
        return isinstance(value, kind) and not isinstance(value, datetime.datetime)
    return value is None if kind in (None, type(None)) else isinstance(value, kind)


def _fitted_union(members: tuple[Any, ...], value: Any) -> Any:
    """As the member holds it that the value has, else as the first that can take it."""
    for exact in (True, False):
        for member in members:
            try:
                held = fitted(member, value)
            except Misfit:
                continue
            if not exact or type(held) is type(value):
                return held
    raise Misfit


def _fitted_tuple(kinds: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    if not isinstance(value, tuple):
        raise Misfit
    if kinds[1:] == (...,):
        kinds = kinds[:1] * len(value)
    if len(kinds) != len(value):
        raise Misfit
    return tuple(map(fitted, kinds, value))
