"""pydantic comes with the server; configurations are read and checked without it."""

import subprocess
import sys
from pathlib import Path

import pytest

from ledeline.config import load, to_toml
from ledeline.train.train_config import TrainConfig
from pages import ROOT

BEGIN = """
import sys
sys.modules["pydantic"] = None
sys.modules["pydantic_core"] = None
from pathlib import Path
from ledeline.train.train_config import TrainConfig
from ledeline.config import *
from ledeline.config.section import *
from ledeline.core.errors import ConfigError
import dataclasses
"""
PAPER = ROOT / "configs" / "paper-sgate-spm.toml"


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", BEGIN + program], capture_output=True, text=True)


def test_shipped_configurations_load_to_the_same_values(tmp_path: Path) -> None:
    program = f"""
path = Path({str(PAPER)!r})
config = load(TrainConfig, path, ["--train.clip_norm=2", "--run.checkpoint_minutes=3"])
assert load(TrainConfig, path) != config
for number in (config.train.clip_norm, config.run.checkpoint_minutes):
    assert type(number) is float
assert isinstance(config.data.dataset, Path)
assert dataclasses.replace(config.train, epochs=2).epochs == 2
assert config == TrainConfig(**{{f.name: getattr(config, f.name) for f in dataclasses.fields(config)}})
print(to_toml(config), end="")
"""
    done = run(program)
    assert done.returncode == 0, done.stderr
    checked = load(TrainConfig, PAPER, ["--train.clip_norm=2", "--run.checkpoint_minutes=3"])
    assert done.stdout == to_toml(checked)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        (
            "--train.clop=1",
            "command line: train.clop = 1: no such key; did you mean train.clip_norm?",
        ),
        ("--data=3", "command line: data = 3: is a section, not a value"),
        ("--train.epochs=many", 'command line: train.epochs = "many": must be a whole number'),
        ("--train.epochs=0", "command line: train.epochs = 0: must be at least 1"),
    ],
)
def test_what_the_loader_sees_is_refused_with_the_same_sentences(
    override: str, sentence: str
) -> None:
    done = run(f"""
try:
    load(TrainConfig, Path({str(PAPER)!r}), [{override!r}])
except ConfigError as error:
    print(error)
""")
    assert done.stdout == f"{sentence}\n"


def test_a_missing_key_and_two_keys_at_odds_are_refused() -> None:
    done = run("""
for kind, overrides in ((TrainConfig, []), (PrepareConfig, [
    "--corpus.train=a.csv", "--dataset.output=b", "--split.by=random"])):
    try:
        load(kind, None, overrides)
    except ConfigError as error:
        print(error)
""")
    assert done.stdout.splitlines() == [
        "command line: data.dataset is missing: Folder that `ledeline prepare` wrote, with splits "
        "train and valid.",
        'command line: split.by = "random": needs split.num_valid, split.num_test or both',
    ]


def test_unions_and_spread_sections_work() -> None:
    done = run("""
from typing import Annotated, Any, Literal

@section
class One:
    name: Literal["one"] = "one"
    x: Annotated[float, "", at_least(0)] = 1.0

@section
class Two:
    name: Literal["two"] = "two"

@section
class All:
    part: Annotated[Any, "", by_name({"one": One, "two": Two})] = One()
    extra: Annotated[Any, "", spread({"two": Two})] = Sections()

made = load(All, None, ["--part.x=3", "--two.enabled=true"])
assert made == All(part=One(x=3.0), extra=Sections(two=Two())), made
assert load(All, None, ["--part.name=two"]).part == Two()
""")
    assert done.returncode == 0, done.stderr
