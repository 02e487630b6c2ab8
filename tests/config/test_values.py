"""Sections judge values as pydantic does in its strict mode, without importing it."""

import datetime
import enum
import itertools
import math
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from ledeline.config.section import BadValue, section

KINDS = (
    int,
    float,
    bool,
    str,
    Path,
    datetime.date,
    Literal["a", "1"],
    int | None,
    float | None,
    Path | None,
    Literal["a"] | None,
    float | str,
    int | str,
    tuple[str, ...],
    tuple[float, ...],
    tuple[Path, ...],
    tuple[int, float],
    tuple[str, ...] | None,
    str | tuple[str, ...],
)


class Word(str):
    """Text that is more than text."""


class Level(enum.IntEnum):
    """A number that is more than a number."""

    ONE = 1


LEAVES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, 1, 2, -1, 1.0, 0.5, math.nan, math.inf, 10**400),
    *("", "a", "1", "x", Word("a"), Word("1"), Level.ONE, b"a", {"a": 1}, Path("a")),
    *(datetime.date(2000, 1, 1), datetime.datetime(2000, 1, 1), datetime.datetime(2000, 1, 1, 3)),
)
ODD: Final = (*LEAVES, *itertools.product(LEAVES, repeat=2), *([one] for one in LEAVES))

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from(LEAVES)
    | st.dates()
    | st.datetimes()
    | st.builds(Path, st.sampled_from(["a", "b/c"])),
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple),
    max_leaves=4,
)


def maker(kind: Any) -> Any:
    """A section with one field `x`."""
    return section(type("Made", (), {"__annotations__": {"x": Annotated[kind, "One."]}}))


def judge(kind: Any) -> Any:
    """What judges in our place."""
    return TypeAdapter(kind, config={"strict": True})


def ours(made: Any, value: Any) -> Any:
    """What a section holds, or that it refuses."""
    try:
        return made(x=value).x
    except BadValue:
        return BadValue


def theirs(adapter: Any, value: Any) -> Any:
    try:
        return adapter.validate_python(value)
    except ValidationError:
        return BadValue


def same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return isinstance(one, type(other)) and one == other  # pydantic makes a Word a plain text


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_same_odd_values_are_right(kind: Any) -> None:
    made, adapter = maker(kind), judge(kind)
    assert [one for one in ODD if not same(ours(made, one), theirs(adapter, one))] == []


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(value=VALUES)
def test_the_same_values_are_right(kind: Any, value: Any) -> None:
    assert same(ours(maker(kind), value), theirs(judge(kind), value))


def test_sections_need_no_pydantic() -> None:
    code = (
        "import sys, ledeline.config.toml, ledeline.inference.options;"
        "print('pydantic' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "False\n"
