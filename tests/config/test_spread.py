"""Sections that may be left out, gathered in one field."""

import copy
import dataclasses
import importlib.util
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import pytest

from ledeline.config.section import (
    BadValue,
    Sections,
    above,
    flatten,
    section,
    spread,
    walk,
)
from ledeline.config.toml import load, to_toml
from ledeline.core.errors import ConfigError
from pages import ROOT


@section
class Gate:
    """A section without keys."""


@section
class Spm:
    """A section with keys."""

    c: Annotated[float, "Divides.", above(0)] = 10.0


@section
class Copying:
    """A section with a key that must be given."""

    size: Annotated[int, "How large."]


ADDONS = {"gate": Gate, "spm": Spm, "copying": Copying}


@section
class Model:
    """The field stands for sections beside the others."""

    steps: Annotated[int, "How many."] = 1
    addons: Annotated[Mapping[str, Any], "", spread(ADDONS)] = Sections()
    other: Annotated[Spm, ""] = Spm()


@section
class Published:
    """Sections that are there unless they are left out."""

    addons: Annotated[Mapping[str, Any], "", spread(ADDONS)] = Sections(spm=Spm(c=5.0))


@section
class Whole:
    """A level above."""

    model: Annotated[Model, ""] = Model()


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "c.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "addons"),
    [
        ("", {}),
        ("[gate]", {"gate": Gate()}),
        ("[spm]\nc = 2\n[gate]", {"gate": Gate(), "spm": Spm(c=2.0)}),
        ("[spm]\nenabled = true", {"spm": Spm()}),
        ("[spm]\nenabled = false\nc = 2", {}),
        ("[copying]\nenabled = false", {}),
        ("spm.enabled = true\ngate.enabled = false", {"spm": Spm()}),
    ],
)
def test_sections_that_are_there_are_gathered(
    tmp_path: Path, text: str, addons: dict[str, Any]
) -> None:
    assert load(Model, write(tmp_path, text)).addons == addons


def test_they_are_in_the_order_of_the_registry(tmp_path: Path) -> None:
    assert list(load(Model, write(tmp_path, "[spm]\n[gate]")).addons) == ["gate", "spm"]
    assert list(Model(addons={"spm": Spm(), "gate": Gate()}).addons) == ["gate", "spm"]


def test_overrides_add_and_leave_out(tmp_path: Path) -> None:
    path = write(tmp_path, "[gate]\n")
    given = ["--spm.enabled=true", "--gate.enabled=false"]
    assert load(Model, path, given).addons == {"spm": Spm()}
    assert load(Model, path, ["--spm.c=3"]).addons == {"gate": Gate(), "spm": Spm(c=3.0)}
    assert load(Whole, None, ["--model.spm.c=3"]).model.addons == {"spm": Spm(c=3.0)}


def test_a_default_stays_unless_it_is_left_out(tmp_path: Path) -> None:
    path = write(tmp_path, "[gate]")
    assert load(Published, path).addons == {"gate": Gate(), "spm": Spm(c=5.0)}
    assert load(Published, path, ["--spm.enabled=false"]).addons == {"gate": Gate()}
    assert load(Published, path, ["--spm.c=2"]).addons["spm"] == Spm(c=2.0)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[spm]\nd = 1", "spm.d = 1: no such key; did you mean spm.c?"),
        ("[smp]\nc = 1", "smp.c = 1: no such key; did you mean spm.c?"),
        ("[gat]", "gat = {}: no such key; did you mean gate?"),
        ("[addons.spm]", "addons.spm = {}: no such key; did you mean spm?"),
        ("[gate]\nsize = 1", "gate.size = 1: no such key; did you mean copying.size?"),
        ("[spm]\nc = 0", "spm.c = 0.0: must be above 0"),
        ("[spm]\nenabled = false\nc = 0", "spm.c = 0.0: must be above 0"),
        ("[spm]\nenabled = 1", "spm.enabled = 1: must be true or false"),
        ("[spm]\nenable = true", "spm.enable = true: no such key; did you mean spm.enabled?"),
        ("spm = true", "spm = true: is a section, not a value"),
        ("[copying]", "copying.size is missing: How large."),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as raised:
        load(Model, path)
    assert str(raised.value) == f"{path}: {sentence}"


@pytest.mark.parametrize(
    "config",
    [
        Model(),
        Model(addons={"gate": Gate(), "spm": Spm(c=2.0)}, steps=3),
        Published(),
        Published(addons={}),
        Published(addons={"gate": Gate()}),
        Whole(model=Model(addons={"gate": Gate(), "copying": Copying(size=1)})),
    ],
)
def test_it_survives_toml_and_copies(tmp_path: Path, config: Any) -> None:
    assert load(type(config), write(tmp_path, to_toml(config))) == config
    for again in (
        pickle.loads(pickle.dumps(config)),
        copy.deepcopy(config),
        dataclasses.replace(config),
    ):
        assert again == config
        assert hash(again) == hash(config)


def test_each_is_a_section_of_its_own_in_toml() -> None:
    config = Whole(model=Model(addons={"gate": Gate(), "spm": Spm()}))
    assert to_toml(config).splitlines() == [
        "[model]",
        "steps = 1",
        "",
        "[model.gate]",
        "",
        "[model.spm]",
        "c = 10.0",
        "",
        "[model.other]",
        "c = 10.0",
    ]
    assert "[spm]\nenabled = false" in to_toml(Published(addons={}))


def test_they_cannot_be_changed() -> None:
    addons: Any = Model(addons={"spm": Spm()}).addons
    for change in (
        lambda: addons.update(gate=Gate()),
        lambda: addons.pop("spm"),
        lambda: addons.__setitem__("gate", Gate()),
        lambda: addons.__delitem__("spm"),
        lambda: addons.__ior__({"gate": Gate()}),
        lambda: addons.setdefault("gate", Gate()),
        lambda: addons.popitem(),
        lambda: addons.clear(),
    ):
        with pytest.raises(TypeError, match="cannot be changed"):
            change()
    assert addons == {"spm": Spm()}


def test_python_is_checked_as_well() -> None:
    with pytest.raises(BadValue, match="must have no other names than gate, spm, copying"):
        Model(addons={"smp": Spm()})
    with pytest.raises(BadValue, match="spm must be a Spm"):
        Model(addons={"spm": Gate()})


def test_as_a_dictionary() -> None:
    assert dataclasses.asdict(Model(addons={"spm": Spm()}))["addons"] == {"spm": {"c": 10.0}}


def test_walk_and_flatten_have_their_keys() -> None:
    assert [key for key, _ in walk(Model)] == [
        "steps",
        "gate.enabled",
        "spm.enabled",
        "spm.c",
        "copying.enabled",
        "copying.size",
        "other.c",
    ]
    assert flatten(Model(addons={"spm": Spm(c=2.0)})) == {
        "steps": 1,
        "gate.enabled": False,
        "spm.enabled": True,
        "spm.c": 2.0,
        "copying.enabled": False,
        "other.c": 10.0,
    }


def test_the_page_has_a_table_for_each() -> None:
    spec = importlib.util.spec_from_file_location("config_page", ROOT / "docs" / "config_page.py")
    assert spec is not None
    assert spec.loader is not None
    page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(page)
    gate, spm, _ = page.tables(page.fields(Model)[1])
    assert gate.splitlines() == ["### `[gate]`", "", f"A section without keys. {page.LEFT_OUT}"]
    assert "| `c` | `10.0` | Divides. |" in spm
