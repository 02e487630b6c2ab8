"""TOML and the command line -> configurations, and back; what is wrong is said in one sentence."""

import dataclasses
import tomllib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar, get_args, get_origin

from ledeline.config.overrides import COMMAND_LINE, apply_overrides, plain
from ledeline.config.renames import Renames, rename_keys
from ledeline.config.section import (
    ENABLED,
    BadValue,
    ByName,
    Field,
    Spread,
    fields,
    walk,
    walk_field,
)
from ledeline.config.values import as_toml, described, union_members
from ledeline.core.errors import ConfigError, RenamedWarning

T = TypeVar("T")

NONE: Final = "none"  # TOML has no word for it


def load(
    kind: type[T],
    path: Path | None,
    overrides: Sequence[str] = (),
    *,
    renamed: Renames | None = None,
    quiet: bool = False,
) -> T:
    """Read a configuration file, if there is one, with ``--dotted.key=value`` overrides.

    `renamed` has the earlier names of keys, ``{"model.layers": "system.layers"}``, and of sections,
    ``{"model.": "system."}``. They work still, with a warning unless `quiet`, as for files that no
    one wrote by hand.
    """
    table = {} if path is None else _read(path)
    notices = _rename(kind, table, path, renamed or {})
    overridden, late = apply_overrides(table, overrides, renamed or {})
    if not quiet:
        for notice in (*notices, *late):
            warnings.warn(notice, RenamedWarning, stacklevel=2)
    _fill_in(kind, table)

    def place(key: str) -> str:
        given_here = any(f"{key}.".startswith(f"{one}.") for one in overridden)
        return COMMAND_LINE if path is None or given_here else str(path)

    try:
        return _build(kind, table, "")
    except BadValue as bad:
        raise ConfigError(f"{place(bad.key)}: {bad}") from None
    except _UnknownKey as unknown:
        raise ConfigError(f"{place(unknown.key)}: {unknown.sentence(kind, table)}") from None
    except _MissingKey as missing:
        raise ConfigError(
            f"{place(missing.key)}: {missing.key} is missing: {missing.doc}"
        ) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the configuration: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: is not TOML: {error}") from None


def _rename(kind: type, table: dict[str, Any], path: Path | None, renamed: Renames) -> list[str]:
    """Bring the names in a file up to date; returns what to say about it, in one sentence."""
    known = {key.partition(".")[0] for key, _ in walk(kind)} if renamed else set()
    try:
        clauses = rename_keys(table, renamed, known)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    return [f"{path}: {'; '.join(clauses)}"] if clauses else []


def _fill_in(kind: type, table: dict[str, Any]) -> None:
    """Add the defaults that depend on other sections, as `TrainConfig.section_defaults` has them.

    Those of a section with a `name` are for a user who names the same, or nothing.
    """
    defaults_of = getattr(kind, "section_defaults", None)
    found = {} if defaults_of is None else defaults_of(plain(table))
    for section, defaults in found.items():
        given = table.get(section, {})
        name = defaults.get("name")
        if isinstance(given, dict) and plain(given.get("name", name), str) == name:
            table[section] = {**defaults, **given}


# --- a table -> sections --------------------------------------------------------------------------


class _UnknownKey(Exception):
    def __init__(self, key: str, value: Any) -> None:
        while isinstance(value, dict) and value:  # in an unknown section, its first key
            name, value = next(iter(value.items()))
            key = f"{key}.{name}"
        self.key, self.value = key, plain(value)
        self.union_name: str | None = None  # of the class that lacks it

    def sentence(self, kind: type, table: Mapping[str, Any]) -> str:
        begin = f"{self.key} = {as_toml(self.value)}: no such key"
        of_any_class, keys = dict(walk(kind)), list(_keys(kind, table))
        if self.union_name is not None and self.key in of_any_class:
            names = ", ".join(of_any_class[self.key].names)
            return f"{begin} for {self.union_name}; it belongs to {names}"
        if self.value == {}:  # a section that may be left out has a name, but maybe no keys
            keys += [name for one in fields(kind) if one.spread for name in one.spread.choices]
        likely = _same_last_name(self.key, keys) or _same_last_name(self.key, of_any_class) or keys
        nearest = _closest(self.key, likely, cutoff=0.0)[0]
        return f"{begin}; did you mean {nearest}?"


def _closest(name: str, names: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """The name that is most like this one, if one is like enough."""
    import difflib  # here, for it takes time that no right configuration needs

    return difflib.get_close_matches(name, [*names], n=1, cutoff=cutoff)


def _same_last_name(key: str, keys: Iterable[str]) -> list[str]:
    """Keys with the same own name: a key in the wrong section is found by it."""
    last = key.rpartition(".")[2]
    return [one for one in keys if one.rpartition(".")[2] == last]


class _MissingKey(Exception):
    def __init__(self, key: str, doc: str) -> None:
        self.key, self.doc = key, doc


def _build(kind: type[T], table: Mapping[str, Any], prefix: str) -> T:
    known = fields(kind)
    names = {field.name for field in known if field.spread is None}
    names.update(name for field in known if field.spread for name in field.spread.choices)
    for key, value in table.items():
        if key not in names:
            raise _UnknownKey(prefix + key, value)
    values = {}
    for field in known:
        name = field.name
        holds_section = field.union is not None or dataclasses.is_dataclass(field.kind)
        if field.spread is not None:
            values[name] = _gather(field, field.spread, table, prefix)
        elif name in table or (field.required and holds_section):
            values[name] = _value(field, table.get(name, {}), prefix + name)
        elif field.required:
            raise _MissingKey(prefix + name, field.doc)
    try:
        return kind(**values)
    except BadValue as bad:
        raise BadValue(prefix + bad.key, bad.value, bad.complaint) from None


def _value(field: Field, value: Any, key: str) -> Any:
    """What a field holds, made of a TOML value."""
    if field.union is None and not dataclasses.is_dataclass(field.kind):
        return _convert(field.kind, value, key)
    table = _section_table(value, key)
    if field.union is None:
        return _build(field.kind, table, f"{key}.")
    kind = _pick(field, field.union, table, key)
    try:
        return _build(kind, table, f"{key}.")
    except _UnknownKey as unknown:
        names = [name for name, one in field.union.choices.items() if one is kind]
        unknown.union_name = unknown.union_name or next(iter(names), kind.__name__)
        raise


def _pick(field: Field, union: ByName, table: Mapping[str, Any], key: str) -> type:
    """The class that a section's `name` picks; that of the default where there is no name."""
    if "name" not in table:
        if field.required:
            raise _MissingKey(f"{key}.name", f"one of {', '.join(union.choices)}")
        return type(field.default)
    name = plain(table["name"], str)
    if isinstance(name, str) and name in union.choices:
        return union.choices[name]
    complaint = f"must be one of {', '.join(union.choices)}"
    for nearest in _closest(str(name), union.choices):
        complaint += f"; did you mean {nearest}?"
    raise BadValue(f"{key}.name", name, complaint)


def _gather(field: Field, spread: Spread, table: Mapping[str, Any], prefix: str) -> Any:
    """The sections of a table that a field gathers, without those that are not enabled."""
    parts = dict(field.default or {})
    for name, kind in spread.choices.items():
        if name not in table:
            continue
        given = dict(_section_table(table[name], prefix + name))
        enabled = plain(given.pop(ENABLED.name, True))
        if not isinstance(enabled, bool):
            raise BadValue(f"{prefix}{name}.{ENABLED.name}", enabled, f"must be {described(bool)}")
        try:
            parts[name] = _build(kind, given, f"{prefix}{name}.")
        except _MissingKey:
            if enabled:
                raise
        if not enabled:
            parts.pop(name, None)
    return spread.ordered(parts)


def _section_table(value: Any, key: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise BadValue(key, plain(value), "is a section, not a value")
    return value


def _convert(kind: Any, value: Any, key: str) -> Any:
    """A TOML value -> what the field holds; the section itself judges whether it fits."""
    value, members = plain(value, kind), union_members(kind)
    if isinstance(value, list):
        inner = [get_args(one)[0] for one in members if get_origin(one) is tuple]
        return tuple(_convert(inner[0] if inner else None, one, key) for one in value)
    if value == NONE and type(None) in members and {str, Path}.isdisjoint(members):
        return None
    if isinstance(value, str) and Path in members:
        return Path(value)
    if type(value) is int and float in members and int not in members:
        with suppress(OverflowError):
            return float(value)
    return value


def _keys(kind: type, table: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Every dotted key that a table may have, with the classes that it picks of unions."""
    for field in fields(kind):
        inner = table.get(field.name, {})
        if not isinstance(inner, dict) or field.spread is not None:
            yield from (key for key, _ in walk_field(field, prefix))
            continue
        try:
            picked = _pick(field, field.union, inner, "") if field.union else field.kind
        except (BadValue, _MissingKey):
            picked = None
        if dataclasses.is_dataclass(picked):
            yield from _keys(picked, inner, f"{prefix}{field.name}.")  # type: ignore[arg-type]
        else:
            yield from (key for key, _ in walk_field(field, prefix))


# --- sections -> TOML -----------------------------------------------------------------------------


def to_toml(config: Any) -> str:
    """The resolved configuration: every key with its value, readable by `load`."""
    return "\n".join(_lines(config, ""))


def _lines(config: Any, prefix: str) -> Iterator[str]:
    """The keys of a section itself, a blank line, and then the sections within it."""
    values = [(field, getattr(config, field.name)) for field in fields(type(config))]
    sections = [(name, part) for field, value in values for name, part in _sections(field, value)]
    own = [(field, value) for field, value in values if not _holds_sections(field, value)]
    lines = [
        f"{field.name} = {as_toml(NONE if value is None else value)}"
        for field, value in own
        if value is not None or field.default is not None
    ]
    yield from lines
    if prefix or lines:
        yield ""
    for name, part in sections:
        yield f"[{prefix}{name}]"
        if part is None:
            yield from (f"{ENABLED.name} = false", "")
        else:
            yield from _lines(part, f"{prefix}{name}.")


def _holds_sections(field: Field, value: Any) -> bool:
    return field.spread is not None or dataclasses.is_dataclass(value)


def _sections(field: Field, value: Any) -> Iterator[tuple[str, Any]]:
    """The sections in a field by name; None is for one that must be named to be left out."""
    if field.spread is None:
        if dataclasses.is_dataclass(value):
            yield field.name, value
        return
    for name in field.spread.choices:
        if name in value or name in (field.default or {}):
            yield name, value.get(name)
