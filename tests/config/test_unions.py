"""A section that is one of several classes, picked by its name."""

import dataclasses
import importlib.util
import pickle
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from ledeline.config.section import BadValue, above, at_least, by_name, flatten, section, walk
from ledeline.config.toml import load, to_toml
from ledeline.core.errors import ConfigError
from pages import ROOT


@section
class Decay:
    """A section in a class of a union."""

    factor: Annotated[float, "How much.", above(0)] = 0.5


@section
class Adam:
    """Kingma and Ba.

    More of it.
    """

    name: Annotated[Literal["adam"], "Which."] = "adam"
    rate: Annotated[float, "How far.", above(0)] = 0.001
    betas: Annotated[tuple[float, float], "How fast means forget."] = (0.9, 0.999)
    decay: Annotated[Decay, ""] = Decay()


@section
class Sgd:
    """Plain steps."""

    name: Literal["sgd"] = "sgd"
    rate: Annotated[float, "How far.", above(0)] = 0.1
    momentum: Annotated[float, "How long it goes on.", at_least(0)] = 0.0
    label: Annotated[str, "What is written."] = ""


OPTIMIZERS: dict[str, type] = {"adam": Adam, "sgd": Sgd}


@section
class Training:
    """A union that may be left out."""

    optimizer: Annotated[Adam | Sgd, "How weights are changed.", by_name(OPTIMIZERS)] = Adam()
    steps: Annotated[int, "How many."] = 1


@section
class Outer:
    """A union that must be given, a level deeper."""

    first: Annotated[Training, ""] = Training()
    second: Annotated[Any, "How.", by_name(OPTIMIZERS)]


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "c.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "optimizer"),
    [
        ("", Adam()),
        ("[optimizer]", Adam()),
        ("[optimizer]\nrate = 1", Adam(rate=1.0)),
        ('[optimizer]\nname = "adam"\nbetas = [0, 0.5]', Adam(betas=(0.0, 0.5))),
        ('[optimizer]\nname = "sgd"', Sgd()),
        ('[optimizer]\nmomentum = 0.9\nname = "sgd"', Sgd(momentum=0.9)),
        ("[optimizer.decay]\nfactor = 2", Adam(decay=Decay(factor=2.0))),
    ],
)
def test_the_name_picks_the_class(tmp_path: Path, text: str, optimizer: Adam | Sgd) -> None:
    assert load(Training, write(tmp_path, text)).optimizer == optimizer


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[optimizer]\nname = "sdg"', 'optimizer.name = "sdg": must be one of adam, sgd; did you mean sgd?'),
        ('[optimizer]\nname = "zzz"', 'optimizer.name = "zzz": must be one of adam, sgd'),
        ("[optimizer]\nname = 3", "optimizer.name = 3: must be one of adam, sgd"),
        ('optimizer = "sgd"', 'optimizer = "sgd": is a section, not a value'),
        ("[optimizer]\nmomentum = 1", "optimizer.momentum = 1: no such key for adam; it belongs to sgd"),
        ('[optimizer]\nname = "sgd"\nbetas = [1, 1]', "optimizer.betas = [1, 1]: no such key for sgd; it belongs to adam"),
        ('[optimizer]\nname = "sgd"\nmomentm = 1', "optimizer.momentm = 1: no such key; did you mean optimizer.momentum?"),
        ("[optimizer]\nmomentm = 1", "optimizer.momentm = 1: no such key; did you mean optimizer.name?"),
        ("momentum = 1", "momentum = 1: no such key; did you mean optimizer.momentum?"),
        ('[optimizer]\nname = "sgd"\nrate = 0', "optimizer.rate = 0.0: must be above 0"),
        ("[optimizer]\nbetas = [1]", "optimizer.betas = [1.0]: must be a list of 2 numbers"),
        ("[optimizer.decay]\nfactor = -1", "optimizer.decay.factor = -1.0: must be above 0"),
        ("[optimizer.decay]\nfacter = 1", "optimizer.decay.facter = 1: no such key; did you mean optimizer.decay.factor?"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_of_the_picked_class(
    tmp_path: Path, text: str, sentence: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as raised:
        load(Training, path)
    assert str(raised.value) == f"{path}: {sentence}"


def test_a_union_without_a_default_needs_its_name(tmp_path: Path) -> None:
    for text in ("", "[second]\nrate = 1"):
        path = write(tmp_path, text)
        with pytest.raises(ConfigError) as raised:
            load(Outer, path)
        assert str(raised.value) == f"{path}: second.name is missing: one of adam, sgd"


def test_overrides_pick_too_in_any_order_and_at_any_depth(tmp_path: Path) -> None:
    path = write(tmp_path, '[second]\nname = "adam"\n')
    config = load(
        Outer,
        path,
        [
            "--first.optimizer.momentum=1",
            "--first.optimizer.label=7",  # text, for it is a key of the class that is picked next
            "--first.optimizer.name=sgd",
            "--second.decay.factor=3",
            "--second.betas=[0.5, 1]",
        ],
    )
    assert config.first.optimizer == Sgd(momentum=1.0, label="7")
    assert config.second == Adam(decay=Decay(factor=3.0), betas=(0.5, 1.0))


def test_a_wrong_override_names_the_command_line(tmp_path: Path) -> None:
    path = write(tmp_path, '[optimizer]\nname = "adam"\nbetas = [0.1, 0.2]')
    with pytest.raises(ConfigError, match=r"^command line: optimizer.name = \"x\": must be one"):
        load(Training, path, ["--optimizer.name=x"])
    with pytest.raises(ConfigError) as raised:  # the key that no longer fits stands in the file
        load(Training, path, ["--optimizer.name=sgd"])
    assert str(raised.value).startswith(
        f"{path}: optimizer.betas = [0.1, 0.2]: no such key for sgd"
    )


@pytest.mark.parametrize(
    "config",
    [
        Training(),
        Training(optimizer=Sgd(momentum=0.5), steps=3),
        Outer(
            first=Training(optimizer=Sgd()), second=Adam(betas=(0.0, 0.5), decay=Decay(factor=9.0))
        ),
    ],
)
def test_it_survives_toml_and_pickling(tmp_path: Path, config: Any) -> None:
    assert load(type(config), write(tmp_path, to_toml(config))) == config
    assert pickle.loads(pickle.dumps(config)) == config
    assert dataclasses.replace(config) == config


def test_python_is_checked_as_well() -> None:
    with pytest.raises(BadValue, match="optimizer = 3: must be one of Adam, Sgd"):
        Training(optimizer=3)  # type: ignore[arg-type]
    with pytest.raises(BadValue, match='name = "sgd": must be one of adam'):
        Adam(name="sgd")  # type: ignore[arg-type]


def test_classes_may_be_added_later(tmp_path: Path) -> None:
    @section
    class Late:
        name: Literal["late"] = "late"

    OPTIMIZERS["late"] = Late
    try:
        assert Training(optimizer=Late()).optimizer == Late()  # type: ignore[arg-type]
        found = load(Training, write(tmp_path, '[optimizer]\nname = "late"')).optimizer
        assert found == Late()  # type: ignore[comparison-overlap]
    finally:
        del OPTIMIZERS["late"]


def test_walk_has_each_key_once_with_the_names_that_have_it() -> None:
    found = {key: field.names for key, field in walk(Training)}
    assert found == {
        "optimizer.name": (),
        "optimizer.rate": ("adam", "sgd"),
        "optimizer.betas": ("adam",),
        "optimizer.decay.factor": ("adam",),
        "optimizer.momentum": ("sgd",),
        "optimizer.label": ("sgd",),
        "steps": (),
    }
    assert dict(walk(Training))["optimizer.name"].default == "adam"


def test_flatten_has_the_values_of_the_picked_class() -> None:
    assert flatten(Training(optimizer=Sgd(momentum=0.5))) == {
        "optimizer.name": "sgd",
        "optimizer.rate": 0.1,
        "optimizer.momentum": 0.5,
        "optimizer.label": "",
        "steps": 1,
    }


def test_the_page_says_which_class_has_a_key() -> None:
    spec = importlib.util.spec_from_file_location("config_page", ROOT / "docs" / "config_page.py")
    assert spec is not None
    assert spec.loader is not None
    page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(page)
    (table,) = page.tables(page.fields(Training)[0])
    assert table.splitlines() == [
        "### `[optimizer]`",
        "",
        "How weights are changed.",
        "",
        "| key | default | what it is |",
        "| --- | --- | --- |",
        '| `name` | `"adam"` | `adam`: Kingma and Ba. `sgd`: Plain steps. |',
        "| `rate` | `0.001` | (adam) How far. |",
        "| `rate` | `0.1` | (sgd) How far. |",
        "| `betas` | `[0.9, 0.999]` | (adam) How fast means forget. |",
        "| `decay.factor` | `0.5` | (adam) How much. |",
        "| `momentum` | `0.0` | (sgd) How long it goes on. |",
        '| `label` | `""` | (sgd) What is written. |',
    ]
