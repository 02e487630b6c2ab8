"""Keys under earlier names: found in a table, and given the names that they have now."""

from collections.abc import Container, Mapping
from typing import Any, Final, TypeAlias

from ledeline.core.errors import ConfigError

# Old name -> new name; a name that ends in a dot is that of a whole section. None: it is not used
# any more.
Renames: TypeAlias = Mapping[str, str | None]

_ABSENT: Final = object()


def new_name(key: str, renames: Renames) -> str:
    """The name that a dotted key, or a section, has now."""
    if key in renames:
        return renames[key] or key
    path = f"{key}."
    sections = [old for old in renames if old.endswith(".") and path.startswith(old)]
    if not sections:
        return key
    longest = max(sections, key=len)
    return ((renames[longest] or longest) + path.removeprefix(longest)).removesuffix(".")


def rename_keys(table: dict[str, Any], renames: Renames, known: Container[str]) -> list[str]:
    """Give the keys of a table their new names; returns a clause about each old one.

    A section that has no keys left is dropped, unless its name is `known` still.
    """
    keys_first = sorted(renames, key=lambda old: (old.endswith("."), -len(old)))
    taken = [(old, value) for old in keys_first if (value := _take(table, old)) is not _ABSENT]
    for name in [name for name, part in table.items() if part == {} and name not in known]:
        if any(old.startswith(f"{name}.") for old in renames):
            del table[name]
    for old, value in taken:
        if (new := renames[old]) is not None:
            _put(table, old, new, value)
    return [_clause(old, renames[old]) for old in renames if old in dict(taken)]


def _take(table: dict[str, Any], old: str) -> Any:
    """Take a key or a section out of a table, and what is empty after that below the top."""
    *sections, last = old.removesuffix(".").split(".")
    parents = [table]
    for name in sections:
        inner = parents[-1].get(name)
        if not isinstance(inner, dict):
            return _ABSENT
        parents.append(inner)
    if last not in parents[-1] or (old.endswith(".") and not parents[-1][last]):
        return _ABSENT
    if old.endswith(".") and not isinstance(parents[-1][last], dict):
        return _ABSENT  # a value where a section should be is refused like any other
    value = parents[-1].pop(last)
    while len(sections) > 1 and not parents.pop():
        parents[-1].pop(sections.pop())
    return value


def _put(table: dict[str, Any], old: str, new: str, value: Any) -> None:
    """Put what was called `old` where `new` belongs."""
    if old.endswith("."):
        for name, inner in value.items():
            dot = "." if isinstance(inner, dict) else ""
            _put(table, f"{old}{name}{dot}", f"{new}{name}{dot}", inner)
        return
    *sections, last = new.split(".")
    for name in sections:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise ConfigError(f"{name} is a value, not a section")
    if last in table:
        raise ConfigError(both_given(old, new))
    table[last] = value


def _clause(old: str, new: str | None) -> str:
    if new is None:
        return f"{old} is not used any more"
    if old.endswith("."):
        return f"[{old[:-1]}] is called [{new[:-1]}] now"
    return f"{old} is called {new} now"


def both_given(old: str, new: str) -> str:
    """Say that a key is there under two names."""
    return f"{old} is called {new} now, and both are given; leave out {old}"
