"""Keys under earlier names."""

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Annotated

import pytest

from ledeline.config.section import Sections, at_least, section, spread
from ledeline.config.toml import load
from ledeline.core import errors
from ledeline.core.errors import ConfigError, RenamedWarning


@section
class Gate:
    """A section without keys."""


@section
class Clipping:
    """A level below."""

    norm: Annotated[float, "How long."] = 5.0


@section
class System:
    """Once called model."""

    layers: Annotated[int, "How many.", at_least(1)] = 2
    size: Annotated[int, "How large."] = 8
    clipping: Annotated[Clipping, ""] = Clipping()


@section
class Train:
    """Once with more keys."""

    epochs: Annotated[int, "How many."] = 1
    rate: Annotated[float, "How far."] = 0.1


@section
class Everything:
    """A configuration after its keys were renamed."""

    system: Annotated[System, ""] = System()
    train: Annotated[Train, ""] = Train()
    addons: Annotated[Sections, "", spread({"sgate": Gate})] = Sections()


RENAMED = {
    "model.": "system.",
    "model.width": "system.size",
    "train.clip": "system.clipping.norm",
    "gate.enabled": "sgate.enabled",
    "train.old": "train.rate",
}


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "c.toml"
    path.write_text(text)
    return path


def told(path: Path | None, overrides: list[str]) -> tuple[Everything, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        config = load(Everything, path, overrides, renamed=RENAMED)
    assert {one.category for one in caught} <= {RenamedWarning}
    assert {one.filename for one in caught} <= {__file__}  # the caller's place, not ours
    return config, [str(one.message) for one in caught]


@pytest.mark.parametrize(
    ("text", "config", "sentence"),
    [
        ("", Everything(), None),
        ("[system]\nlayers = 3", Everything(system=System(layers=3)), None),
        ("[model]\nlayers = 3", Everything(system=System(layers=3)), "[model] is called [system] now"),
        ("[model]", Everything(), None),
        ("[model]\nwidth = 3", Everything(system=System(size=3)), "model.width is called system.size now"),
        (
            "[model]\nlayers = 3\nwidth = 4",
            Everything(system=System(layers=3, size=4)),
            "[model] is called [system] now; model.width is called system.size now",
        ),
        (
            "[model]\nlayers = 3\n[system]\nsize = 4",
            Everything(system=System(layers=3, size=4)),
            "[model] is called [system] now",
        ),
        (
            "[model.clipping]\nnorm = 1",
            Everything(system=System(clipping=Clipping(norm=1.0))),
            "[model] is called [system] now",
        ),
        (
            "[train]\nclip = 1\nepochs = 4",
            Everything(system=System(clipping=Clipping(norm=1.0)), train=Train(epochs=4)),
            "train.clip is called system.clipping.norm now",
        ),
        ("[train]\nold = 1", Everything(train=Train(rate=1.0)), "train.old is called train.rate now"),
        ("[gate]\nenabled = false", Everything(), "gate.enabled is called sgate.enabled now"),
        (
            "gate.enabled = true",
            Everything(addons=Sections(sgate=Gate())),
            "gate.enabled is called sgate.enabled now",
        ),
        ("[gate]", Everything(), None),
    ],
)  # fmt: skip
def test_old_names_work_with_one_warning(
    tmp_path: Path, text: str, config: Everything, sentence: str | None
) -> None:
    path = write(tmp_path, text)
    assert told(path, []) == (config, [f"{path}: {sentence}"] if sentence else [])


def test_overrides_may_have_old_names(tmp_path: Path) -> None:
    path = write(tmp_path, "[model]\nlayers = 3\n[system]\nsize = 5")
    config, sentences = told(path, ["--model.layers=4", "--model.width=6", "--train.clip=1"])
    assert config.system == System(layers=4, size=6, clipping=Clipping(norm=1.0))
    assert sentences == [
        f"{path}: [model] is called [system] now",
        "command line: model.layers is called system.layers now; model.width is called system.size "
        "now; train.clip is called system.clipping.norm now",
    ]
    assert told(None, ["--model={layers = 7}"])[0].system == System(layers=7)


def test_what_is_not_used_any_more_is_dropped(tmp_path: Path) -> None:
    path = write(tmp_path, "[model]\nlayers = 3\nold = 1")
    renamed = {"model.old": None, "model.": "system."}
    with pytest.warns(RenamedWarning) as warned:
        assert load(Everything, path, renamed=renamed).system == System(layers=3)
    sentence = "model.old is not used any more; [model] is called [system] now"
    assert [str(one.message) for one in warned] == [f"{path}: {sentence}"]


def test_nothing_is_said_of_files_that_no_one_wrote(tmp_path: Path) -> None:
    path = write(tmp_path, "[model]\nlayers = 3")
    config = load(Everything, path, renamed=RENAMED, quiet=True)  # a warning would be an error
    assert config.system.layers == 3


@pytest.mark.parametrize(
    ("text", "overrides", "sentence"),
    [
        (
            "[model]\nlayers = 3\n[system]\nlayers = 3",
            [],
            "{path}: model.layers is called system.layers now, and both are given; leave out model.layers",
        ),
        (
            "[train]\nclip = 3\n[system.clipping]\nnorm = 3",
            [],
            "{path}: train.clip is called system.clipping.norm now, and both are given; leave out train.clip",
        ),
        (
            "system = 3\n[model]\nlayers = 3",
            [],
            "{path}: system is a value, not a section",
        ),
        (
            "",
            ["--model.layers=1", "--system.layers=2"],
            "command line: model.layers is called system.layers now, and both are given; leave out model.layers",
        ),
        (
            "",
            ["--system.layers=1", "--model.layers=2"],
            "command line: model.layers is called system.layers now, and both are given; leave out model.layers",
        ),
    ],
)  # fmt: skip
def test_both_names_at_once_are_refused(
    tmp_path: Path, text: str, overrides: list[str], sentence: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as raised:
        load(Everything, path, overrides, renamed=RENAMED, quiet=True)
    assert str(raised.value) == sentence.format(path=path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[model]\nlayers = 0", "system.layers = 0: must be at least 1"),
        ("[model]\nlayrs = 1", "system.layrs = 1: no such key; did you mean system.layers?"),
        ("model = 1", "model = 1: no such key; did you mean system.layers?"),
    ],
)
def test_what_is_wrong_under_an_old_name_is_still_said(
    tmp_path: Path, text: str, sentence: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as raised:
        load(Everything, path, renamed=RENAMED, quiet=True)
    assert str(raised.value) == f"{path}: {sentence}"


PROGRAM = """
import warnings
import click
from ledeline.cli.command import Verbs
from ledeline.core.errors import EngineWarning, RenamedWarning

@click.group(cls=Verbs)
def app() -> None:
    pass

@app.command()
def verb() -> None:
    for _ in range(2):
        warnings.warn("a.toml: old is called new now", RenamedWarning)
    warnings.warn("not fast", EngineWarning)
    warnings.warn("somebody else's", UserWarning)

app()
"""


@pytest.mark.parametrize("options", [[], ["-W", "error::FutureWarning"], ["-W", "ignore"]])
def test_the_command_shows_warnings_as_plain_lines(options: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, *options, "-c", PROGRAM, "verb"], capture_output=True, text=True
    )
    lines = done.stderr.splitlines()
    line = "ledeline: a.toml: old is called new now"
    if not options:
        assert lines[:3] == [line, line, "ledeline: not fast"]
        assert "UserWarning: somebody else's" in lines[3]
    else:
        assert lines == ([line] if "error::FutureWarning" in options else [])
    assert done.returncode == (2 if "error::FutureWarning" in options else 0)


def test_every_warning_of_ours_is_one_that_the_command_shows_plainly() -> None:
    ours = [
        one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, Warning)
    ]
    assert RenamedWarning in ours
    assert all(issubclass(one, errors.LedelineWarning) for one in ours)
