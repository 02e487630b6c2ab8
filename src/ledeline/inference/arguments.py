"""Checks of arguments of calls from Python."""

import os
from collections.abc import Iterable, Iterator
from typing import Any, get_args

from ledeline.config.section import BadValue
from ledeline.core.errors import ArgumentError


def check_choice(name: str, value: object, choices: Any) -> None:
    """Refuse a value that is not in a `Literal`."""
    known = get_args(choices)
    if value not in known:
        raise BadValue(name, value, f"must be one of {', '.join(known)}")


def check_folders(folders: Iterable[object]) -> None:
    """Refuse what is neither a string nor a path."""
    for folder in folders:
        if not isinstance(folder, str | os.PathLike):
            raise ArgumentError(
                f"a folder is {_type(folder)}; pass each as a string or a path: "
                "Headliner.load('first', 'second')"
            )


def each_text(texts: Iterable[object]) -> Iterator[object]:
    """An iterator over texts; refuses a single string, whose letters would be taken for texts."""
    if not isinstance(texts, str | bytes | bytearray):
        try:
            return iter(texts)
        except TypeError:
            pass
    raise ArgumentError(f"texts is {_type(texts)}; pass a list of texts, such as [text]")


def check_options(options: object, kind: type) -> None:
    """Refuse options of another type, such as a dictionary."""
    if not isinstance(options, kind):
        raise ArgumentError(
            f"options is {_type(options)}; pass beam=3 as a keyword argument, or "
            "options=Options(search=SearchConfig(beam=3))"
        )


def _type(value: object) -> str:
    return f"of type {type(value).__name__}"
