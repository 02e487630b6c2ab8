"""Writes config.md beside it from the configurations themselves: `make docs`."""

from collections.abc import Iterator
from pathlib import Path

from ledeline.config import PrepareConfig
from ledeline.config.section import ByName, Field, fields, name_field, walk
from ledeline.config.values import as_toml
from ledeline.server.settings import ServeConfig
from ledeline.train.train_config import TrainConfig

PAGE = Path(__file__).with_name("config.md")

OPENING = """\
# Configuration

A configuration is a TOML file. Any key can be overridden on the command line as
`--section.key=value`; what `prepare` and `train` used in the end is written beside their output as
`config.toml`. Relative paths are relative to the current folder. `"none"` turns off a number that
may be none. (This page is made by `make docs`.)
"""
LEFT_OUT = "Used where the section is there; `enabled = false` leaves it out."
HEAD = "| key | default | what it is |\n| --- | --- | --- |"


def config_page() -> str:
    """The whole page."""
    parts = [OPENING]
    verbs = (("prepare", PrepareConfig), ("train", TrainConfig), ("serve", ServeConfig))
    for verb, kind in verbs:
        parts.append(f"## `ledeline {verb}`\n")
        parts += [one for part in fields(kind) for one in tables(part)]
    return "\n".join(parts)


def tables(part: Field) -> Iterator[str]:
    """The tables of a field: one for each section that it may hold."""
    if part.spread is not None:
        for name, kind in part.spread.choices.items():
            rows = [row(key, field) for key, field in walk(kind)]
            yield table(name, f"{about_class(kind)} {LEFT_OUT}", rows)
    elif part.union is not None:
        yield table(part.name, part.doc, union_rows(part, part.union))
    else:
        rows = [row(key, field) for key, field in walk(part.kind)]
        yield table(part.name, about_class(part.kind), rows)


def table(name: str, about: str, rows: list[str]) -> str:
    """A section as a table of its keys; only its name where it has none."""
    head = [f"### `[{name}]`", "", *([about, ""] if about else [])]
    return "\n".join([*head, *([HEAD, *rows, ""] if rows else [])])


def about_class(kind: type) -> str:
    """What a section is, on one line."""
    return " ".join((kind.__doc__ or "").split())


def in_short(kind: type) -> str:
    """The first paragraph of what a section is, without its full stop."""
    return " ".join((kind.__doc__ or "").split("\n\n")[0].split()).removesuffix(".")


def union_rows(part: Field, union: ByName) -> list[str]:
    """The keys of all classes; one that differs between classes has a row for each."""
    name = name_field(part, union)
    kinds = " ".join(f"`{one}`: {in_short(kind)}." for one, kind in union.choices.items())
    found: dict[tuple[str, str], list[str]] = {}
    for choice, kind in union.choices.items():
        for key, field in walk(kind):
            if key != "name":
                found.setdefault((key, row(key, field)), []).append(choice)
    first_seen = {key: place for place, (key, _) in reversed(list(enumerate(found)))}
    rows = sorted(found.items(), key=lambda item: first_seen[item[0][0]])
    everyone = list(union.choices)
    return [
        row("name", name._replace(doc=kinds)),
        *(one if names == everyone else of_names(one, names) for (_, one), names in rows),
    ]


def of_names(one: str, names: list[str]) -> str:
    """A row with the names that it is for."""
    key, default, doc = one.split(" | ", 2)
    return f"{key} | {default} | ({', '.join(names)}) {doc}"


def row(key: str, field: Field) -> str:
    """A key as a row of its table."""
    default = "required" if field.required else shown(field.default)
    return f"| `{key}` | {default} | {field.doc} |".replace("<unk>", "`<unk>`").replace("*", "\\*")


def shown(value: object) -> str:
    """A default as TOML has it."""
    return "none" if value is None else f"`{as_toml(value)}`"


if __name__ == "__main__":
    PAGE.write_text(config_page())
