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
