"""The recipe of a system: what a configuration that names nothing else trains with."""

from pathlib import Path

import pytest

from ledeline.config import DataConfig
from ledeline.config.recipe import Recipe
from ledeline.core.errors import ConfigError
from ledeline.model.initialization import NormalInit, UniformInit
from ledeline.model.systems.encdec import EncDecConfig
from ledeline.model.systems.gru import GruConfig, GruEncDec
from ledeline.train.optimizers import AdagradConfig, AdamConfig, SgdConfig
from ledeline.train.schedules import ConstantSchedule, HalvingSchedule, WarmupCosineSchedule
from ledeline.train.train_config import TrainConfig, load_train_config

DATA = DataConfig(dataset=Path("d"))


@pytest.fixture(autouse=True)
def recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for a system, which is not the paper's."""
    published = Recipe(
        optimizer={"name": "adagrad", "learning_rate": 0.15, "initial_sum": 0.1},
        schedule={"name": "constant"},
        init={"name": "normal", "std": 0.05},
    )
    monkeypatch.setattr(GruEncDec, "recipe", published)


def loaded(tmp_path: Path, text: str, *overrides: str) -> TrainConfig:
    path = tmp_path / "config.toml"
    path.write_text('[data]\ndataset = "d"\n' + text)
    return load_train_config(path, overrides)


def test_that_of_the_paper_is_adam_with_halving() -> None:
    config = TrainConfig(data=DATA)
    assert config.optimizer == AdamConfig(learning_rate=0.001)
    assert config.schedule == HalvingSchedule(halve_from=10)
    assert config.init == UniformInit(bound=0.1)


def test_it_is_taken_where_nothing_is_named(tmp_path: Path) -> None:
    made = TrainConfig(data=DATA, system=GruConfig())
    assert made.optimizer == AdagradConfig(learning_rate=0.15, initial_sum=0.1)
    assert made.schedule == ConstantSchedule()
    assert made.init == NormalInit(std=0.05)
    assert loaded(tmp_path, '[system]\nname = "gru"\n') == made
    assert loaded(tmp_path, "", "--system.name=gru") == made


def test_other_keys_of_the_same_are_its_own(tmp_path: Path) -> None:
    text = '[system]\nname = "gru"\n[optimizer]\nlearning_rate = 0.3\n'
    expected = AdagradConfig(learning_rate=0.3, initial_sum=0.1)
    assert loaded(tmp_path, text).optimizer == expected
    assert loaded(tmp_path, text + 'name = "adagrad"\n').optimizer == expected
    config = loaded(tmp_path, "", "--system.name=gru", "--optimizer.learning_rate=0.3")
    assert config.optimizer == expected


def test_another_one_has_its_own_defaults(tmp_path: Path) -> None:
    text = '[system]\nname = "gru"\n[optimizer]\nname = "sgd"\nmomentum = 0.9\n'
    config = loaded(tmp_path, text)
    assert config.optimizer == SgdConfig(momentum=0.9)
    assert config.schedule == ConstantSchedule()
    config = loaded(tmp_path, "", "--system.name=gru", "--optimizer.name=adam")
    assert config.optimizer == AdamConfig()
    made = TrainConfig(data=DATA, system=GruConfig(), optimizer=AdamConfig())
    assert made.optimizer == AdamConfig()


def test_that_of_one_system_is_not_that_of_another(tmp_path: Path) -> None:
    assert loaded(tmp_path, '[system]\nname = "encdec"\n').optimizer == AdamConfig()
    assert TrainConfig(data=DATA, system=EncDecConfig()).schedule == HalvingSchedule()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            '[system]\nname = "grue"\n',
            r"system\.name = \"grue\": must be one of .*did you mean gru",
        ),
        (
            '[optimizer]\nname = "adamant"\n',
            r"optimizer\.name = .*must be one of adam, adagrad, adadelta, sgd",
        ),
        (
            "[optimizer]\nmomentum = 0.9\n",
            r"optimizer\.momentum = 0\.9: no such key for adam; it be",
        ),
        (
            "[schedule]\nwarmup_steps = 9\n",
            r"schedule\.warmup_steps = 9: no such key for halving; it",
        ),
        (
            '[schedule]\nname = "warmup_cosine"\nfinal = 1.0\n',
            r"schedule\.final = 1\.0: must be below",
        ),
        ("[train]\nlabel_smoothing = 1.0\n", r"train\.label_smoothing = 1\.0: must be below 1"),
        ("[train]\nclip_norm = -1.0\n", r"train\.clip_norm = -1\.0: must be at least 0"),
        (
            '[init]\nname = "xavier"\nbound = 0.1\n',
            r"init\.bound = 0\.1: no such key for xavier; it",
        ),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        loaded(tmp_path, text)


def test_a_value_is_no_section(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'system = "gru": is a section, not a value'):
        loaded(tmp_path, "", "--system=gru")


def test_steps_of_a_schedule_are_read(tmp_path: Path) -> None:
    text = '[schedule]\nname = "warmup_cosine"\nwarmup_steps = 7\n'
    assert loaded(tmp_path, text).schedule == WarmupCosineSchedule(warmup_steps=7)


def test_clipping_can_be_turned_off(tmp_path: Path) -> None:
    assert loaded(tmp_path, '[train]\nclip_norm = "none"\n').train.clip_norm is None
    assert loaded(tmp_path, "", "--train.clip_norm=0").train.clip_norm == 0
