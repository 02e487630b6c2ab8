"""Sections: typed, frozen, documented dataclasses that check themselves, from TOML and back.

A configuration is a section of sections (see `ledeline.config`). Each field is annotated with its
type, a sentence about it, and any limit; the same annotation checks the value, words the complaint
and makes `docs/config.md`.
"""

import dataclasses
import datetime
import difflib
import json
import tomllib
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import (
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from ledeline.core.errors import ConfigError

T = TypeVar("T")

COMMAND_LINE = "command line"


class Limit(NamedTuple):
    """A condition on a field's value, in its annotation."""

    holds: Callable[[Any], bool]
    complaint: str


def at_least(minimum: float) -> Limit:
    """Ask for `minimum` or more."""
    return Limit(lambda value: value >= minimum, f"must be at least {minimum:g}")


def above(bound: float) -> Limit:
    """Ask for more than `bound`."""
    return Limit(lambda value: value > bound, f"must be above {bound:g}")


def below(bound: float) -> Limit:
    """Ask for less than `bound`."""
    return Limit(lambda value: value < bound, f"must be below {bound:g}")


NOT_EMPTY = Limit(bool, "must not be empty")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def section(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass that checks its values when it is made."""
    cross_check: Callable[[Any], None] | None = cls.__dict__.get("__post_init__")

    def check(self: Any) -> None:
        for field in fields(type(self)):
            value = getattr(self, field.name)
            if not _is_a(field.kind, value):
                raise BadValue(field.name, value, f"must be {_described(field.kind)}")
            for limit in field.limits:
                if value is not None and not limit.holds(value):
                    raise BadValue(field.name, value, limit.complaint)
        if cross_check:
            cross_check(self)

    cls.__post_init__ = check  # type: ignore[attr-defined]
    return dataclasses.dataclass(frozen=True, kw_only=True)(cls)


class BadValue(ConfigError):
    """A value that cannot be; the loader adds file and section."""

    def __init__(self, key: str, value: Any, complaint: str) -> None:
        super().__init__(f"{key} = {_as_toml(value)}: {complaint}")
        self.key, self.value, self.complaint = key, value, complaint


# --- TOML and the command line -> sections -------------------------------------------------------


def load(kind: type[T], path: Path | None, overrides: Sequence[str] = ()) -> T:
    """Read a configuration file, if there is one, with ``--dotted.key=value`` overrides."""
    try:
        table = tomllib.loads(path.read_bytes().decode()) if path is not None else {}
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the configuration: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: is not TOML: {error}") from None
    overridden = [_apply(override, table, kind) for override in overrides]

    def place(key: str) -> str:
        return COMMAND_LINE if path is None or key in overridden else str(path)

    try:
        return _build(kind, table, "")
    except BadValue as bad:
        raise ConfigError(f"{place(bad.key)}: {bad}") from None
    except _UnknownKey as unknown:
        raise ConfigError(f"{place(unknown.key)}: {unknown.sentence(kind)}") from None
    except _MissingKey as missing:
        raise ConfigError(
            f"{place(missing.key)}: {missing.key} is missing: {missing.doc}"
        ) from None


class _UnknownKey(Exception):
    def __init__(self, key: str, value: Any) -> None:
        while isinstance(value, dict) and value:  # in an unknown section, its first key
            name, value = next(iter(value.items()))
            key = f"{key}.{name}"
        self.key, self.value = key, value

    def sentence(self, kind: type) -> str:
        keys = [key for key, _ in walk(kind)]
        last = self.key.rpartition(".")[2]  # a key in the wrong section is found by its own name
        same = [key for key in keys if key.rpartition(".")[2] == last]
        nearest = difflib.get_close_matches(self.key, same or keys, n=1, cutoff=0.0)[0]
        return f"{self.key} = {_as_toml(self.value)}: no such key; did you mean {nearest}?"


class _MissingKey(Exception):
    def __init__(self, key: str, doc: str) -> None:
        self.key, self.doc = key, doc


def _build(kind: type[T], table: Mapping[str, Any], prefix: str) -> T:
    known = {field.name: field for field in fields(kind)}
    for key, value in table.items():
        if key not in known:
            raise _UnknownKey(prefix + key, value)
    values = {}
    for name, field in known.items():
        if name in table or (field.required and dataclasses.is_dataclass(field.kind)):
            values[name] = _convert(field.kind, table.get(name, {}), prefix + name)
        elif field.required:
            raise _MissingKey(prefix + name, field.doc)
    try:
        return kind(**values)
    except BadValue as bad:
        raise BadValue(prefix + bad.key, bad.value, bad.complaint) from None


def _convert(kind: Any, value: Any, key: str) -> Any:
    """A TOML value -> what the field holds; the section itself judges whether it fits."""
    if dataclasses.is_dataclass(kind):
        if not isinstance(value, dict):
            raise BadValue(key, value, "is a section, not a value")
        return _build(kind, value, key + ".")  # type: ignore[arg-type]
    if isinstance(value, list):
        inner = (get_args(kind) or (None,))[0]
        return tuple(_convert(inner, one, key) for one in value)
    if isinstance(value, str) and Path in (kind, *get_args(kind)):
        return Path(value)
    if isinstance(value, int) and not isinstance(value, bool) and kind is float:
        return float(value)
    return value


def _apply(override: str, table: dict[str, Any], kind: type) -> str:
    """Put one ``--dotted.key=value`` into the table; returns the key."""
    key, equals, text = override.removeprefix("--").partition("=")
    if not override.startswith("--") or not equals or not key:
        raise ConfigError(f"{COMMAND_LINE}: {override}: overrides look like --section.key=value")
    value = _parsed(text, dict(walk(kind)).get(key))
    *sections, last = key.split(".")
    for name in sections:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise ConfigError(f"{COMMAND_LINE}: {override}: {name} is a value, not a section")
    table[last] = value
    return key


def _parsed(text: str, field: "Field | None") -> Any:
    """The value of an override: TOML where it is TOML, else the text itself."""
    kind = field.kind if field else None
    is_text = get_origin(kind) is Literal or not {str, Path}.isdisjoint((kind, *get_args(kind)))
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, KeyError):
        value = text
    if is_text and not isinstance(value, str | list):
        value = text
    is_list = get_origin(kind) is tuple
    return [value] if is_list and not isinstance(value, list) else value


# --- what is known of a section ------------------------------------------------------------------


class Field(NamedTuple):
    """One key of a section."""

    name: str
    kind: Any
    doc: str
    limits: tuple[Limit, ...]
    default: Any
    required: bool


def fields(kind: type) -> list[Field]:
    """The keys of a section, in order."""
    hints = get_type_hints(kind, include_extras=True)
    found = []
    for field in dataclasses.fields(kind):
        base, doc, *limits = get_args(hints[field.name])
        required = field.default is dataclasses.MISSING
        default = None if required else field.default
        found.append(Field(field.name, base, doc, tuple(limits), default, required))
    return found


def walk(kind: type, prefix: str = "") -> Iterator[tuple[str, Field]]:
    """Every dotted key below a section."""
    for field in fields(kind):
        if dataclasses.is_dataclass(field.kind):
            yield from walk(field.kind, f"{prefix}{field.name}.")  # type: ignore[arg-type]
        else:
            yield prefix + field.name, field


def _is_a(kind: Any, value: Any) -> bool:
    """Whether a value is of an annotated type, strictly (True is no int)."""
    origin = get_origin(kind)
    if origin is Literal:
        return value in get_args(kind)
    if origin in (Union, types.UnionType):
        return any(_is_a(member, value) for member in get_args(kind))
    if origin is tuple:
        return isinstance(value, tuple) and all(_is_a(get_args(kind)[0], one) for one in value)
    if kind is Path:
        return isinstance(value, Path)
    return type(value) is kind


def _described(kind: Any) -> str:
    """A type in the user's words."""
    origin = get_origin(kind)
    if origin is Literal:
        return "one of " + ", ".join(get_args(kind))
    if origin in (Union, types.UnionType):
        return " or ".join(_described(one) for one in get_args(kind) if one is not type(None))
    if origin is tuple:
        return "a list of strings"
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}
    names |= {Path: "a path", datetime.date: "a date, as 2024-12-31"}
    return names.get(kind) or f"a {kind.__name__}"


# --- sections -> TOML ----------------------------------------------------------------------------


def to_toml(config: Any) -> str:
    """The resolved configuration: every key with its value, readable by `load`."""
    lines = []
    for field in fields(type(config)):
        lines.append(f"[{field.name}]")
        part = getattr(config, field.name)
        values = [(key.name, getattr(part, key.name)) for key in fields(type(part))]
        lines += [f"{name} = {_as_toml(value)}" for name, value in values if value is not None]
        lines.append("")
    return "\n".join(lines)


def _as_toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | Path):
        return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_as_toml, value)) + "]"
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_as_toml(one)}" for key, one in value.items()) + "}"
    return str(value)
