import datetime
import re
import tomllib
from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledeline.config.section import NOT_EMPTY, BadValue, at_least, section, walk
from ledeline.config.toml import load, to_toml
from ledeline.core.errors import ConfigError


@section
class Kitchen:
    """A section for these tests."""

    cooks: Annotated[int, "How many.", at_least(1)]
    heat: Annotated[float, "How hot."] = 0.5
    open: Annotated[bool, "Whether."] = True
    style: Annotated[Literal["plain", "fancy"], "Which."] = "plain"
    dishes: Annotated[tuple[str, ...], "What.", NOT_EMPTY] = ("soup",)
    book: Annotated[Path | None, "Where."] = None
    since: Annotated[datetime.date | None, "When."] = None
    name: Annotated[str, "Called."] = ""

    def __post_init__(self) -> None:
        if self.style == "fancy" and self.cooks < 2:
            raise BadValue("style", self.style, "needs two cooks")


@section
class House:
    """Sections in a section."""

    kitchen: Annotated[Kitchen, ""]
    cellar: Annotated[Kitchen, ""] = Kitchen(cooks=1)


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "house.toml"
    path.write_text(text)
    return path


def test_a_file_becomes_typed_values(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '[kitchen]\ncooks = 3\nheat = 1\nopen = false\nstyle = "fancy"\ndishes = ["a", "b"]\n'
        'book = "x/y"\nsince = 2024-02-29\n',
    )
    assert load(House, path).kitchen == Kitchen(
        cooks=3,
        heat=1.0,
        open=False,
        style="fancy",
        dishes=("a", "b"),
        book=Path("x/y"),
        since=datetime.date(2024, 2, 29),
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[kitchen]\ncooks = 1\nhaet = 2", "kitchen.haet = 2: no such key; did you mean kitchen.heat?"),
        ("[kitchn]\ncooks = 1", "kitchn.cooks = 1: no such key; did you mean kitchen.cooks?"),
        ("[kitchn]", "kitchn = {}: no such key; did you mean kitchen.open?"),
        ("cooks = 1", "cooks = 1: no such key; did you mean cellar.cooks?"),
        ('[kitchen]\ncooks = "three"', 'kitchen.cooks = "three": must be a whole number'),
        ("[kitchen]\ncooks = true", "kitchen.cooks = true: must be a whole number"),
        ("[kitchen]\ncooks = 1.5", "kitchen.cooks = 1.5: must be a whole number"),
        ("[kitchen]\ncooks = 0", "kitchen.cooks = 0: must be at least 1"),
        ("[kitchen]\ncooks = 1\nopen = 1", "kitchen.open = 1: must be true or false"),
        ('[kitchen]\ncooks = 1\nstyle = "odd"', 'kitchen.style = "odd": must be one of plain, fancy'),
        ('[kitchen]\ncooks = 1\nstyle = "fancy"', 'kitchen.style = "fancy": needs two cooks'),
        ("[kitchen]\ncooks = 1\ndishes = []", "kitchen.dishes = []: must not be empty"),
        ("[kitchen]\ncooks = 1\ndishes = [1]", "kitchen.dishes = [1]: must be a list of strings"),
        ('[kitchen]\ncooks = 1\ndishes = "x"', 'kitchen.dishes = "x": must be a list of strings'),
        ('[kitchen]\ncooks = 1\nsince = "may"', 'kitchen.since = "may": must be a date, as 2024-12-31'),
        ("[kitchen]\ncooks = 1\nbook = 5", "kitchen.book = 5: must be a path"),
        ("[kitchen]\ncooks = 1\nheat = [1]", "kitchen.heat = [1]: must be a number"),
        ("[kitchen]\nheat = 1", "kitchen.cooks is missing: How many."),
        ("", "kitchen.cooks is missing: How many."),
        ("kitchen = 3", "kitchen = 3: is a section, not a value"),
        ("[kitchen", "is not TOML: Expected ']' at the end of a table declaration (at end of document)"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as raised:
        load(House, path)
    assert str(raised.value) == f"{path}: {sentence}"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"none\.toml: cannot read the configuration: No such file"
    ):
        load(House, tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b'name = "caf\xe9"')
    with pytest.raises(ConfigError, match=r"latin\.toml: is not TOML"):
        load(House, tmp_path / "latin.toml")


def test_overrides_win_and_take_plain_text_where_text_is_meant(tmp_path: Path) -> None:
    path = write(tmp_path, "[kitchen]\ncooks = 1\n")
    kitchen = load(
        House,
        path,
        [
            "--kitchen.cooks=2",
            "--kitchen.style=fancy",
            "--kitchen.dishes=one=two",
            "--kitchen.book=2024",
            '--kitchen.name="quoted"',
            "--kitchen.since=2024-01-02",
            "--kitchen.open=false",
        ],
    ).kitchen
    assert kitchen.cooks == 2
    assert kitchen.style == "fancy"
    assert kitchen.dishes == ("one=two",)
    assert kitchen.book == Path("2024")
    assert kitchen.name == "quoted"
    assert kitchen.since == datetime.date(2024, 1, 2)
    assert kitchen.open is False
    several = load(House, path, ['--kitchen.dishes=["a", "b"]'])
    assert several.kitchen.dishes == ("a", "b")


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("--kitchen.cook=2", "kitchen.cook = 2: no such key; did you mean kitchen.cooks?"),
        ("--kitchn.cooks=2", "kitchn.cooks = 2: no such key; did you mean kitchen.cooks?"),
        ("--kitchen.cooks=many", 'kitchen.cooks = "many": must be a whole number'),
        ("--kitchen.cooks", "--kitchen.cooks: overrides look like --section.key=value"),
        ("kitchen.cooks=2", "kitchen.cooks=2: overrides look like --section.key=value"),
        ("--kitchen.cooks.x=2", "--kitchen.cooks.x=2: cooks is a value, not a section"),
        ("--heat=2", "heat = 2: no such key; did you mean cellar.heat?"),
    ],
)
def test_a_wrong_override_says_it_was_on_the_command_line(
    tmp_path: Path, override: str, sentence: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        load(House, write(tmp_path, "[kitchen]\ncooks = 1\n"), [override])
    assert str(raised.value) == f"command line: {sentence}"


def test_sections_check_themselves_without_a_file() -> None:
    with pytest.raises(BadValue, match="cooks = 0: must be at least 1"):
        Kitchen(cooks=0)
    with pytest.raises(AttributeError):
        Kitchen(cooks=1).cooks = 2  # type: ignore[misc]


def test_whole_numbers_are_numbers_from_python_too() -> None:
    assert type(Kitchen(cooks=1, heat=2).heat) is float
    with pytest.raises(BadValue, match="heat = true: must be a number"):
        Kitchen(cooks=1, heat=True)


def test_wrong_arguments_are_type_errors_as_of_any_class() -> None:
    with pytest.raises(TypeError, match=r"Kitchen: .*cook"):
        Kitchen(cooks=1, cook=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Kitchen: missing.*cooks"):
        Kitchen()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Kitchen: "):
        Kitchen(1)  # type: ignore[misc, call-arg]


ODD_VALUES = (
    '"x"', '""', "3", "-1", "1.5", "nan", "inf", "1e400", "true", "[]", "[1]", '["a", 1]', "[[1]]",
    "{}", "{a = 1}", "2024-01-01", "2024-01-01T10:00:00", "10:00:00", "1" + "0" * 400,
)  # fmt: skip
SENTENCE = re.compile(
    r"(command line|.*house\.toml): (kitchen|cellar)[.\w]* (= .*: |is )"
    r"(must (not )?be [\w, .-]+|no such key; did you mean [\w.]+\?|needs two cooks|missing: .*)"
)


def complaint(tmp_path: Path, text: str, overrides: list[str]) -> str | None:
    """What is wrong with a configuration, if anything is."""
    try:
        load(House, write(tmp_path, text), overrides)
    except ConfigError as error:
        return str(error)
    return None


@pytest.mark.parametrize("value", ODD_VALUES)
def test_no_wording_but_ours_reaches_a_user(tmp_path: Path, value: str) -> None:
    for key in (*dict(walk(House)), "kitchen.cook"):
        section_name, _, name = key.partition(".")
        cooks = "cooks = 1\n" * (name != "cooks")
        text = f"[{section_name}]\n{cooks}{name} = {value}\n"
        text += "[kitchen]\ncooks = 1\n" * (section_name != "kitchen")
        for found in (
            complaint(tmp_path, text, []),
            complaint(tmp_path, "[kitchen]\ncooks = 1\n", [f"--{key}={value}"]),
        ):
            assert found is None or SENTENCE.fullmatch(found)


@section
class Optional:
    """Values that may be none, with defaults that are not."""

    clip: Annotated[float | None, "How far.", at_least(0)] = 5.0
    size: Annotated[int | None, "How large."] = None
    text: Annotated[str | None, "What."] = "none"


def test_none_has_a_name(tmp_path: Path) -> None:
    assert load(Optional, write(tmp_path, 'clip = "none"')).clip is None
    assert load(Optional, None, ["--clip=none"]).clip is None
    assert load(Optional, None, ["--text=none"]).text == "none"
    for config in (Optional(clip=None), Optional(), Optional(size=3, clip=1)):
        assert load(Optional, write(tmp_path, to_toml(config))) == config
    with pytest.raises(ConfigError, match='clip = "nine": must be a number'):
        load(Optional, None, ["--clip=nine"])


def test_text_in_braces_is_text_where_text_is_meant() -> None:
    given = ["--kitchen={cooks = 2}", "--kitchen.name={a = 1}", "--kitchen.dishes={b}"]
    kitchen = load(House, None, given).kitchen
    assert (kitchen.cooks, kitchen.name, kitchen.dishes) == (2, "{a = 1}", ("{b}",))


def test_walk_gives_every_dotted_key_with_its_sentence() -> None:
    keys = dict(walk(House))
    assert list(keys)[:2] == ["kitchen.cooks", "kitchen.heat"]
    assert keys["cellar.heat"].doc == "How hot."
    assert keys["kitchen.cooks"].required
    assert len(keys) == 16


@given(
    name=st.text(st.characters(codec="utf-8")),
    dishes=st.lists(st.text(st.characters(codec="utf-8")), min_size=1),
    heat=st.floats(allow_nan=False, allow_infinity=False),
)
def test_the_resolved_configuration_reads_back(name: str, dishes: list[str], heat: float) -> None:
    house = House(kitchen=Kitchen(cooks=2, name=name, dishes=tuple(dishes), heat=heat))
    table = tomllib.loads(to_toml(house))
    assert table["kitchen"]["name"] == name
    assert table["kitchen"]["dishes"] == dishes
    assert table["kitchen"]["heat"] == heat
    assert "book" not in table["kitchen"]


def test_the_resolved_configuration_loads(tmp_path: Path) -> None:
    house = House(kitchen=Kitchen(cooks=2, book=Path("a b"), since=datetime.date(2020, 1, 1)))
    assert load(House, write(tmp_path, to_toml(house))) == house
