"""Writes config.md beside it from the configurations themselves: `make docs`."""

from pathlib import Path

from ledeline.config import PrepareConfig, TrainConfig
from ledeline.config.section import Field, fields, walk
from ledeline.server.settings import ServeConfig

PAGE = Path(__file__).with_name("config.md")

OPENING = """\
# Configuration

A configuration is a TOML file. Any key can be overridden on the command line as
`--section.key=value`; what `prepare` and `train` used in the end is written beside their output as
`config.toml`. Relative paths are relative to the current folder. (This page is made by
`make docs`.)
"""


def config_page() -> str:
    """The whole page."""
    parts = [OPENING]
    verbs = (("prepare", PrepareConfig), ("train", TrainConfig), ("serve", ServeConfig))
    for verb, kind in verbs:
        parts.append(f"## `ledeline {verb}`\n")
        parts += [table(part) for part in fields(kind)]
    return "\n".join(parts)


def table(part: Field) -> str:
    """A section as a table of its keys."""
    about = " ".join((part.kind.__doc__ or "").split())
    head = f"### `[{part.name}]`\n\n{about}\n\n| key | default | what it is |\n| --- | --- | --- |"
    return "\n".join([head, *(row(key, field) for key, field in walk(part.kind)), ""])


def row(key: str, field: Field) -> str:
    """A key as a row of its table."""
    default = "required" if field.required else shown(field.default)
    return f"| `{key}` | {default} | {field.doc} |".replace("<unk>", "`<unk>`").replace("*", "\\*")


def shown(value: object) -> str:
    """A default as TOML would have it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return f"`{list(value)}`".replace("'", '"')
    return f"`{value}`" if value != "" else '`""`'


if __name__ == "__main__":
    PAGE.write_text(config_page())
