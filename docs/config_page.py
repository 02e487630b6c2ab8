"""Writes config.md beside it from the configurations themselves: `make docs`."""

from pathlib import Path

from ledeline.config import PrepareConfig, TrainConfig
from ledeline.section import Field, fields, walk

PAGE = Path(__file__).with_name("config.md")

OPENING = """\
# Configuration

A configuration is a TOML file. Any key can be overridden on the command line as
`--section.key=value`; what was used in the end is written beside the output as `config.toml`.
Relative paths are relative to the current folder. (This page is made by `make docs`.)
"""


def config_page() -> str:
    """The whole page."""
    parts = [OPENING]
    for verb, kind in (("prepare", PrepareConfig), ("train", TrainConfig)):
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
    return f"`{list(value) if isinstance(value, tuple) else value}`"


if __name__ == "__main__":
    PAGE.write_text(config_page())
