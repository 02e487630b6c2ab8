import tomllib
from pathlib import Path

import pytest

from ledeline.config import LoopConfig, PrepareConfig
from ledeline.config.toml import load, to_toml
from ledeline.core.errors import ConfigError, RenamedWarning
from ledeline.model.addons.spm import SourcePredictionConfig
from ledeline.model.initialization import UniformInit
from ledeline.model.system_config import SystemConfig
from ledeline.model.systems.encdec import EncDecConfig
from ledeline.train.optimizers import AdamConfig
from ledeline.train.schedules import HalvingSchedule
from ledeline.train.train_config import RENAMED, TrainConfig
from pages import ROOT
from systems import encdec

CONFIGS = sorted((ROOT / "configs").glob("*.toml"))
PAPER = [path for path in CONFIGS if path.stem.startswith("paper-")]


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_shipped_configurations_are_sound(path: Path) -> None:
    if "corpus" in tomllib.loads(path.read_text()):
        assert load(PrepareConfig, path).corpus.train
    else:
        assert load(TrainConfig, path).data.dataset


class TestThePapersFour:
    def test_names(self) -> None:
        names = {path.stem: load(TrainConfig, path).model.name for path in PAPER}
        assert names == {
            "paper-encdec": "EncDec",
            "paper-sgate": "EncDec+sGate",
            "paper-spm": "EncDec+SPM",
            "paper-sgate-spm": "EncDec+sGate+SPM",
        }

    def test_they_differ_in_a_line_or_two(self) -> None:
        lines = [set(path.read_text().splitlines()[1:]) for path in PAPER]  # but for their title
        for one in lines:
            for other in lines:
                assert len(one ^ other) <= 2

    @pytest.mark.parametrize("path", PAPER, ids=lambda path: path.stem)
    def test_sizes_and_recipe_are_table_2(self, path: Path) -> None:
        config = load(TrainConfig, path)
        assert config.system == EncDecConfig(
            embedding_size=200, hidden_size=400, layers=2, dropout=0.3
        )
        assert config.init == UniformInit(bound=0.1)
        assert config.optimizer == AdamConfig(learning_rate=0.001)
        assert config.schedule == HalvingSchedule(halve_from=10)
        assert config.train == LoopConfig(batch_size=256, clip_norm=5.0, epochs=15, patience=2)
        assert config.addons.get("spm") in (None, SourcePredictionConfig(c=10.0))


def test_the_defaults_are_the_papers() -> None:
    sizes = {"embedding_size": 200, "hidden_size": 400, "layers": 2, "dropout": 0.3}
    assert EncDecConfig() == EncDecConfig(**sizes)
    assert SourcePredictionConfig().c == 10


def test_a_system_survives_toml(tmp_path: Path) -> None:
    system = encdec(spm=True, c=2.5, hidden_size=7, dropout=0.1)
    (tmp_path / "system.toml").write_text(to_toml(system))
    assert load(SystemConfig, tmp_path / "system.toml") == system


@pytest.mark.parametrize(
    ("override", "complaint"),
    [
        ("--system.dropout=1", "must be below 1"),
        ("--system.dropout=-0.1", "must be at least 0"),
        ("--optimizer.learning_rate=0", "must be above 0"),
        ("--schedule.halve_from=1", "must be at least 2"),
        ("--spm.c=0", "must be above 0"),
        ("--system.hidden_size=0", "must be from 1 to 65536"),
        ("--run.device=tpu", "must be one of auto, cpu, cuda"),
        ("--spm.enable=true", "did you mean spm.enabled"),
    ],
)
def test_what_cannot_be_is_refused(override: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        load(TrainConfig, PAPER[0], [override])


OLD = """
gate.enabled = true

[data]
dataset = "d"

[model]
hidden_size = 7
init = 0.2

[spm]
enabled = true
c = 2.5

[train]
learning_rate = 0.01
halve_from = 4
clip = 1.0
epochs = 3
"""


def test_a_configuration_of_version_0_1_means_what_it_meant(tmp_path: Path) -> None:
    path = tmp_path / "old.toml"
    path.write_text(OLD)
    with pytest.warns(RenamedWarning) as warned:
        config = load(TrainConfig, path, renamed=RENAMED)
    assert len(warned) == 1
    assert config.model == encdec(sgate=True, spm=True, c=2.5, hidden_size=7)
    assert config.init == UniformInit(bound=0.2)
    assert config.optimizer == AdamConfig(learning_rate=0.01)
    assert config.schedule == HalvingSchedule(halve_from=4)
    assert config.train == LoopConfig(clip_norm=1.0, epochs=3)
    path.write_text(to_toml(config))
    assert load(TrainConfig, path) == config  # which warns of nothing
