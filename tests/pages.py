"""Runs the code blocks of a documentation page in one folder, one after another."""

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import command

ROOT = Path(__file__).parent.parent


class Block(NamedTuple):
    """A block of code. Shell commands have no language."""

    language: str
    text: str


def blocks(page: str) -> list[Block]:
    return [Block(*found) for found in re.findall(r"```(\w*)\n(.*?)```", page, re.S)]


def run(page: Iterable[Block], folder: Path, files: Iterable[str]) -> None:
    """Run shell commands and Python, and write each block of TOML to the next of the files.

    A block of text after Python must be what the Python code prints. Other text and console
    sessions are not checked.
    """
    names, printed = iter(files), None
    for language, text in page:
        if language == "toml":
            (folder / next(names)).write_text(text)
        elif language == "text" and printed is not None:
            assert printed == text
        elif language not in ("text", "console"):
            code = [sys.executable, "-c", text] if language else f"set -e\n{text}"
            done = subprocess.run(
                code,
                shell=not language,
                check=True,
                cwd=folder,
                env=command.shim(),
                stdout=subprocess.PIPE,
                text=True,
            )
        printed = done.stdout if language == "python" else None
    assert not list(names), "a file is on no page"
