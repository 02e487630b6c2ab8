"""Sections: typed, frozen, documented dataclasses that check their values.

A configuration is a section of sections (see `ledeline.config`). Each field is annotated with its
type, a sentence about it, and any limit:

    layers: Annotated[int, "LSTM layers.", at_least(1)] = 2

The same annotation checks the value, words the complaint and makes `docs/config.md`. A field may
also hold one of several sections (`by_name`), or gather sections that may be left out (`spread`).

Values are checked here and not by a library, because importing one takes longer than writing a
headline; a test holds the judgement to that of pydantic in its strict mode.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    NoReturn,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from ledeline.config.values import Misfit, as_toml, described, fitted
from ledeline.core.errors import ConfigError

T = TypeVar("T")


class BadValue(ConfigError):
    """A value that is not allowed; the loader adds file and section."""

    def __init__(self, key: str, value: Any, complaint: str) -> None:
        super().__init__(f"{key} = {as_toml(value)}: {complaint}")
        self.key, self.value, self.complaint = key, value, complaint


# --- what may stand in the annotation of a field --------------------------------------------------


class Limit(NamedTuple):
    """A condition on a field's value."""

    holds: Callable[[Any], bool]
    complaint: str
    minimum: float | None = None  # where the condition is to be at least this


def at_least(minimum: float) -> Limit:
    """Ask for `minimum` or more."""
    return Limit(lambda value: value >= minimum, f"must be at least {minimum:g}", minimum)


def between(lowest: float, highest: float) -> Limit:
    """Ask for a value from the one to the other, both allowed."""
    complaint = f"must be from {lowest:g} to {highest:g}"
    return Limit(lambda value: lowest <= value <= highest, complaint, lowest)


def above(bound: float) -> Limit:
    """Ask for more than `bound`."""
    return Limit(lambda value: value > bound, f"must be above {bound:g}")


def below(bound: float) -> Limit:
    """Ask for less than `bound`."""
    return Limit(lambda value: value < bound, f"must be below {bound:g}")


SIZE: Final = between(1, 2**16)  # values, or places, of a layer
DEPTH: Final = between(1, 1000)  # layers
NOT_EMPTY: Final = Limit(bool, "must not be empty")


class ByName:
    """One of several sections, which its key `name` picks."""

    def __init__(self, choices: Mapping[str, type]) -> None:
        self.choices = choices

    def check(self, value: Any) -> Any:
        """Any instance of the classes; they are looked up late, for there may be more by then."""
        if not isinstance(value, tuple(self.choices.values())):
            classes = ", ".join(kind.__name__ for kind in self.choices.values())
            raise _Refused(f"must be one of {classes}")
        return value


def by_name(choices: Mapping[str, type]) -> ByName:
    """Let the field hold any of these sections; each has a field `name` with its name in it."""
    return ByName(choices)


class Sections(dict[str, Any]):
    """Sections by name, as a field with `spread` holds them; cannot be changed."""

    def _refuse_change(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("sections of a configuration cannot be changed; use dataclasses.replace")

    __setitem__ = __delitem__ = __ior__ = _refuse_change
    clear = pop = popitem = setdefault = update = _refuse_change

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[type, tuple[dict[str, Any]]]:
        return type(self), (dict(self),)


class Spread:
    """Sections beside the other fields' own, each of which may be left out."""

    def __init__(self, choices: Mapping[str, type]) -> None:
        self.choices = choices

    def check(self, value: Any) -> Sections:
        """Any mapping from names to instances of the classes with these names."""
        if not isinstance(value, Mapping) or not set(value) <= set(self.choices):
            raise _Refused(f"must have no other names than {', '.join(self.choices)}")
        for name, part in value.items():
            if not isinstance(part, self.choices[name]):
                raise _Refused(f"{name} must be {described(self.choices[name])}")
        return self.ordered(value)

    def ordered(self, parts: Mapping[str, Any]) -> Sections:
        """The sections in the order of the choices."""
        return Sections({name: parts[name] for name in self.choices if name in parts})


def spread(choices: Mapping[str, type]) -> Spread:
    """Let the field gather the sections with these names, which stand beside it in the file."""
    return Spread(choices)


class _Refused(Exception):
    """A value is not allowed; the argument is the complaint."""


# --- a class becomes a section --------------------------------------------------------------------


@dataclass_transform(frozen_default=True, kw_only_default=True)
def section(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass that checks its values when it is made.

    The methods are written here, as those that `dataclasses` makes are compiled for each class.
    """
    for name, method in vars(_Methods).items():
        if callable(method) and name not in vars(cls):
            setattr(cls, name, method)
    return dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=True)(cls)


class _Methods:
    """The methods of all sections."""

    def __init__(self, /, *args: Any, **values: Any) -> None:
        kind: Any = type(self)
        _check_arguments(kind, args, values)
        if values:  # defaults are right
            values = {
                field.name: _checked(field, values[field.name])
                for field in _fields(kind)
                if field.name in values
            }
        for field in dataclasses.fields(kind):
            value = values[field.name] if field.name in values else _default(field)
            object.__setattr__(self, field.name, value)
        if hasattr(self, "__post_init__"):
            self.__post_init__()

    def __repr__(self) -> str:
        values = (f"{name}={value!r}" for name, value in _values(self).items())
        return f"{type(self).__qualname__}({', '.join(values)})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return _values(self) == _values(other)

    def __hash__(self) -> int:
        return hash(tuple(_values(self).values()))

    def __setattr__(self, name: str, _value: Any) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _default(field: "dataclasses.Field[Any]") -> Any:
    made = field.default_factory
    return field.default if made is dataclasses.MISSING else made()


def _values(self: Any) -> dict[str, Any]:
    return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}


def _check_arguments(kind: Any, args: tuple[Any, ...], values: Mapping[str, Any]) -> None:
    """A `TypeError` for arguments that are not those of the section, as of any class."""
    if args:
        raise TypeError(f"{kind.__name__}: unexpected positional argument: {args[0]!r}")
    known = {field.name: field for field in dataclasses.fields(kind)}
    for name in values:
        if name not in known:
            raise TypeError(f"{kind.__name__}: unexpected keyword argument: {name}")
    for name, field in known.items():
        if name not in values and field.default is field.default_factory is dataclasses.MISSING:
            raise TypeError(f"{kind.__name__}: missing argument: {name}")


def _checked(field: "Field", value: Any) -> Any:
    """The value as the field holds it, or a `BadValue`."""
    try:
        if field.union is not None:
            return field.union.check(value)
        if field.spread is not None:
            return field.spread.check(value)
        held = fitted(field.kind, value)
        for limit in field.limits:
            if held is not None and not limit.holds(held):
                raise _Refused(limit.complaint)
    except _Refused as refused:
        raise BadValue(field.name, value, str(refused)) from None
    except Misfit:
        raise BadValue(field.name, value, f"must be {described(field.kind)}") from None
    return held


# --- what is known of a section -------------------------------------------------------------------


class Field(NamedTuple):
    """One key of a section."""

    name: str
    kind: Any
    doc: str
    limits: tuple[Limit, ...]
    default: Any
    required: bool
    union: ByName | None = None
    spread: Spread | None = None
    names: tuple[str, ...] = ()  # of the classes of a union that have this key; `walk` sets it


ENABLED: Final = Field("enabled", bool, "false leaves the section out.", (), True, False)


def fields(kind: type) -> list[Field]:
    """The keys of a section, in order."""
    return list(_fields(kind))


@functools.cache
def _fields(kind: type) -> tuple[Field, ...]:
    hints = get_type_hints(kind, include_extras=True)
    return tuple(_field(one, hints[one.name]) for one in dataclasses.fields(kind))


def _field(field: "dataclasses.Field[Any]", hint: Any) -> Field:
    base, doc, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint, "")
    required = field.default is dataclasses.MISSING
    return Field(
        field.name,
        base,
        doc,
        tuple(note for note in notes if isinstance(note, Limit)),
        None if required else field.default,
        required,
        next((note for note in notes if isinstance(note, ByName)), None),
        next((note for note in notes if isinstance(note, Spread)), None),
    )


def walk(kind: type, prefix: str = "") -> Iterator[tuple[str, Field]]:
    """Every dotted key below a section; of a union the keys of all its classes, each once."""
    for field in fields(kind):
        yield from walk_field(field, prefix)


def walk_field(field: Field, prefix: str = "") -> Iterator[tuple[str, Field]]:
    """Every dotted key of a field: its own, or those of the sections that it holds."""
    below = f"{prefix}{field.name}."
    if field.spread is not None:
        for name, kind in field.spread.choices.items():
            yield f"{prefix}{name}.{ENABLED.name}", ENABLED
            yield from walk(kind, f"{prefix}{name}.")
    elif field.union is not None:
        yield f"{below}name", name_field(field, field.union)
        yield from _union_keys(field.union, below)
    elif dataclasses.is_dataclass(field.kind):
        yield from walk(field.kind, below)  # type: ignore[arg-type]
    else:
        yield prefix + field.name, field


def name_field(field: Field, union: ByName) -> Field:
    """The key that picks the class of a union."""
    kind = Literal[tuple(union.choices)]  # type: ignore[valid-type]
    default = None if field.required else field.default.name
    return Field("name", kind, field.doc, (), default, field.required)


def _union_keys(union: ByName, prefix: str) -> Iterator[tuple[str, Field]]:
    found: dict[str, Field] = {}
    for name, kind in union.choices.items():
        for key, field in walk(kind, prefix):
            if key != f"{prefix}name":
                known = found.setdefault(key, field._replace(names=()))
                found[key] = known._replace(names=(*known.names, name))
    yield from found.items()


def flatten(config: Any, prefix: str = "") -> dict[str, Any]:
    """Every dotted key of a configuration with its value."""
    found: dict[str, Any] = {}
    for field in fields(type(config)):
        value = getattr(config, field.name)
        if field.spread is not None:
            for name in field.spread.choices:
                found[f"{prefix}{name}.{ENABLED.name}"] = name in value
                if name in value:
                    found |= flatten(value[name], f"{prefix}{name}.")
        elif dataclasses.is_dataclass(value):
            found |= flatten(value, f"{prefix}{field.name}.")
        else:
            found[prefix + field.name] = value
    return found
