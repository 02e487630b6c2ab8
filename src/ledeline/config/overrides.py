"""Overrides of a configuration on the command line: ``--dotted.key=value``, at any depth."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin

from ledeline.config.renames import Renames, both_given, new_name
from ledeline.config.values import union_members
from ledeline.core.errors import ConfigError

COMMAND_LINE: Final = "command line"


class _Text(NamedTuple):
    """The value of an override before it is known what the key holds."""

    text: str

    def parsed(self, kind: Any) -> Any:
        """TOML where it is TOML, else the text itself."""
        members = union_members(kind)
        lists = [one for one in members if get_origin(one) is tuple]
        inner = get_args(lists[0]) if lists else members
        is_text = get_origin(kind) is Literal or not {str, Path}.isdisjoint(inner)
        value = _toml_value(self.text)
        if is_text and not isinstance(value, str | list):
            value = self.text
        return [value] if lists and not isinstance(value, list) else value


class _Table(dict[str, Any]):
    """The value of an override that is a table if the key holds one, else text in braces."""

    text: str


def _toml_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, KeyError):
        return text


def plain(value: Any, kind: Any = None) -> Any:
    """A value without what is still unread in it."""
    if isinstance(value, _Text):
        return value.parsed(kind)
    if isinstance(value, _Table) and kind is not None:
        return _Text(value.text).parsed(kind)
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return value


def apply_overrides(
    table: dict[str, Any], overrides: Sequence[str], renamed: Renames
) -> tuple[list[str], list[str]]:
    """Put overrides into a table; returns their keys, and what to say about old names."""
    spelled: dict[str, str] = {}
    for override in overrides:
        old, equals, text = override.removeprefix("--").partition("=")
        if not override.startswith("--") or not equals or not old:
            raise ConfigError(
                f"{COMMAND_LINE}: {override}: overrides look like --section.key=value"
            )
        key = new_name(old, renamed)
        if spelled.setdefault(key, old) != old:
            earlier = spelled[key] if old == key else old
            raise ConfigError(f"{COMMAND_LINE}: {both_given(earlier, key)}")
        _put(table, key, text, override)
    clauses = [f"{old} is called {key} now" for key, old in spelled.items() if key != old]
    return list(spelled), [f"{COMMAND_LINE}: {'; '.join(clauses)}"] if clauses else []


def _put(table: dict[str, Any], key: str, text: str, override: str) -> None:
    *sections, last = key.split(".")
    for name in sections:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise ConfigError(f"{COMMAND_LINE}: {override}: {name} is a value, not a section")
    value = _toml_value(text)
    if isinstance(value, dict):
        table[last] = inner = _Table(value)
        inner.text = text
    else:
        table[last] = _Text(text)
