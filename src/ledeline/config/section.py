"""Sections: typed, frozen, documented dataclasses that check their values.

A configuration is a section of sections (see `ledeline.config`). Each field is annotated with its
type, a sentence about it, and any limit:

    layers: Annotated[int, "LSTM layers.", at_least(1)] = 2

The same annotation checks the value, words the complaint and makes `docs/config.md`. A field may
also hold one of several sections (`by_name`), or gather sections that may be left out (`spread`).

pydantic checks the values. Where it is not installed, sections are plain dataclasses, which check
only what their own `__post_init__` says.
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

from ledeline.config.values import as_toml, described
from ledeline.core.errors import ConfigError

try:
    from pydantic import ConfigDict, ValidationError
    from pydantic.dataclasses import dataclass as checked_dataclass
except ImportError:  # a machine that only trains may lack it
    CHECKS_VALUES = False
else:
    CHECKS_VALUES = True

T = TypeVar("T")

_REFUSED: Final = "refused"  # pydantic's name for a complaint of ours


class BadValue(ConfigError):
    """A value that is not allowed; the loader adds file and section."""

    def __init__(self, key: str, value: Any, complaint: str) -> None:
        super().__init__(f"{key} = {as_toml(value)}: {complaint}")
        self.key, self.value, self.complaint = key, value, complaint


# --- what may stand in the annotation of a field --------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Limit:
    """A condition on a field's value."""

    holds: Callable[[Any], bool]
    complaint: str
    minimum: float | None = None  # where the condition is to be at least this

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        """The schema of the type, and then this condition."""
        from pydantic_core import core_schema

        def check(value: Any) -> Any:
            if value is not None and not self.holds(value):
                _refuse(self.complaint)
            return value

        return core_schema.no_info_after_validator_function(check, handler(source))


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


NOT_EMPTY: Final = Limit(bool, "must not be empty")


@dataclasses.dataclass(frozen=True, eq=False)
class ByName:
    """One of several sections, which its key `name` picks."""

    choices: Mapping[str, type]

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Callable[[Any], Any]) -> Any:
        """Any instance of the classes; they are looked up late, for there may be more by then."""
        from pydantic_core import core_schema

        def check(value: Any) -> Any:
            if not isinstance(value, tuple(self.choices.values())):
                classes = ", ".join(kind.__name__ for kind in self.choices.values())
                _refuse(f"must be one of {classes}")
            return value

        return core_schema.no_info_plain_validator_function(check)


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


@dataclasses.dataclass(frozen=True, eq=False)
class Spread:
    """Sections beside the other fields' own, each of which may be left out."""

    choices: Mapping[str, type]

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Callable[[Any], Any]) -> Any:
        """Any mapping from names to instances of the classes with these names."""
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(self._check)

    def _check(self, value: Any) -> Sections:
        if not isinstance(value, Mapping) or not set(value) <= set(self.choices):
            _refuse(f"must have no other names than {', '.join(self.choices)}")
        for name, part in value.items():
            if not isinstance(part, self.choices[name]):
                _refuse(f"{name} must be {described(self.choices[name])}")
        return self.ordered(value)

    def ordered(self, parts: Mapping[str, Any]) -> Sections:
        """The sections in the order of the choices."""
        return Sections({name: parts[name] for name in self.choices if name in parts})


def spread(choices: Mapping[str, type]) -> Spread:
    """Let the field gather the sections with these names, which stand beside it in the file."""
    return Spread(choices)


def _refuse(complaint: str) -> NoReturn:
    from pydantic_core import PydanticCustomError

    raise PydanticCustomError(_REFUSED, "{complaint}", {"complaint": complaint})


# --- a class becomes a section --------------------------------------------------------------------


@dataclass_transform(frozen_default=True, kw_only_default=True)
def section(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass that checks its values when it is made."""
    if not CHECKS_VALUES:
        return dataclasses.dataclass(frozen=True, kw_only=True)(cls)
    config = ConfigDict(strict=True, extra="forbid")
    made: Any = checked_dataclass(frozen=True, kw_only=True, config=config)(cls)
    validate = made.__init__

    @functools.wraps(validate)
    def init(self: Any, *args: Any, **values: Any) -> None:
        try:
            validate(self, *args, **values)
        except ValidationError as error:
            raise _first_complaint(made, values, error) from None

    made.__init__ = init
    return made  # type: ignore[no-any-return]


def _first_complaint(kind: type, values: Mapping[str, Any], error: "ValidationError") -> Exception:
    """What is wrong in our words: a `TypeError` for wrong arguments, `BadValue` for a value."""
    found = error.errors(include_url=False)
    for one in found:
        of_arguments = len(one["loc"]) == 1  # and not of a list within a value
        if of_arguments and one["type"].startswith(("missing", "unexpected")):
            what = one["type"].replace("_", " ")
            return TypeError(f"{kind.__name__}: {what}: {one['loc'][0]}")
    name = str(found[0]["loc"][0])
    if found[0]["type"] == _REFUSED:
        complaint = found[0]["ctx"]["complaint"]
    else:
        field = next(field for field in fields(kind) if field.name == name)
        complaint = f"must be {described(field.kind)}"
    return BadValue(name, values[name], complaint)


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
    hints = get_type_hints(kind, include_extras=True)
    return [_field(field, hints[field.name]) for field in dataclasses.fields(kind)]


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
