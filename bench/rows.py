"""Tables in Markdown, printed row by row as soon as there is one, and kept as JSON."""

import json
from pathlib import Path
from typing import Any, NamedTuple


class Column(NamedTuple):
    """A figure of each row, its title, and how it is printed."""

    name: str
    title: str
    form: str = ""

    def shown(self, value: Any) -> str:
        """Nothing where there is no such figure."""
        return "" if value is None else format(value, self.form)


class Rows:
    """All rows of a run; where a path is given, the file is whole after each of them."""

    def __init__(self, path: Path | None, about: str) -> None:
        self._path, self._about = path, about
        self._rows: list[dict[str, Any]] = []

    def add(self, part: str, figures: dict[str, Any]) -> None:
        """Keep a row."""
        self._rows.append({"part": part, **figures})
        if self._path is not None:
            about = {"about": self._about.splitlines(), "rows": self._rows}
            self._path.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


class Table:
    """One table: its head is printed at once."""

    def __init__(self, rows: Rows, part: str, *columns: Column) -> None:
        self._rows, self._part, self._columns = rows, part, columns
        lines = ["---:" if column.form else "---" for column in columns]
        self._print([column.title for column in columns])
        self._print(lines)

    def add(self, **figures: Any) -> None:
        """Print a row and keep it."""
        self._rows.add(self._part, figures)
        self._print([column.shown(figures.get(column.name)) for column in self._columns])

    @staticmethod
    def _print(cells: list[str]) -> None:
        print("| " + " | ".join(cells) + " |", flush=True)
