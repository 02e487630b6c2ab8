"""JSON objects from files, read key by key. Each error names the file and the key."""

import json
import math
from pathlib import Path
from typing import Self, TypeGuard

from ledeline.core.errors import ScoreError


class JsonFields:
    """The keys and values of one object of a JSON file."""

    def __init__(self, path: Path, values: dict[str, object], prefix: str = "") -> None:
        self.path, self.values, self._prefix = path, values, prefix

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file that holds one object."""
        try:
            values = json.loads(read_bytes(path))
        except (ValueError, RecursionError) as error:
            raise ScoreError(f"{path}: is not JSON: {error}; evaluate again") from None
        if not isinstance(values, dict):
            raise ScoreError(f"{path}: holds no object; evaluate again")
        return cls(path, values)

    def error(self, key: str, wanted: str) -> ScoreError:
        """The error that a key does not hold what is wanted."""
        what = "is not there" if key not in self.values else f"is {_shortened(self.values[key])}"
        return ScoreError(f"{self.path}: {self._prefix}{key} {what} where {wanted} is needed")

    def text(self, key: str) -> str:
        """A string."""
        value = self.values.get(key)
        if not isinstance(value, str):
            raise self.error(key, "a text")
        return value

    def number(self, key: str) -> float:
        """A finite number."""
        value = self.values.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(key, "a number")
        if not math.isfinite(value):
            raise self.error(key, "a finite number")
        return float(value)

    def share(self, key: str) -> float:
        """A number from 0 to 1."""
        value = self.number(key)
        if not 0 <= value <= 1:
            raise self.error(key, "a number from 0 to 1")
        return value

    def count(self, key: str) -> int:
        """A whole number that is not negative."""
        value = self.values.get(key)
        if not is_count(value):
            raise self.error(key, "a count")
        return value

    def inner(self, key: str) -> "JsonFields":
        """An object within this one."""
        value = self.values.get(key)
        if not isinstance(value, dict):
            raise self.error(key, "an object")
        return JsonFields(self.path, value, f"{self._prefix}{key}.")

    def list(self, key: str) -> list[object]:
        """A list."""
        value = self.values.get(key)
        if not isinstance(value, list):
            raise self.error(key, "a list")
        return value

    def is_null(self, key: str) -> bool:
        """Whether a key is null or not there."""
        return self.values.get(key) is None

    def shown(self, key: str) -> tuple[str, ...]:
        """Whatever the key holds, as texts to show."""
        value = self.values.get(key)
        if value is None:
            return ()
        if isinstance(value, list):
            return tuple(map(_as_text, value))
        if isinstance(value, dict):
            return tuple(f"{name}: {_as_text(one)}" for name, one in value.items())
        return (_as_text(value),)


def is_count(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number that is not negative."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def read_bytes(path: Path) -> bytes:
    """All of a file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ScoreError(f"{path}: is not there; evaluate again") from None
    except OSError as error:
        raise ScoreError(f"{path}: cannot be read: {error.strerror or error}") from None


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _shortened(value: object, limit: int = 40) -> str:
    text = json.dumps(value)
    return text if len(text) <= limit else f"{text[:limit]}…"
