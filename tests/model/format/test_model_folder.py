"""Model folders: those of earlier versions still open, and another system is built again."""

import dataclasses
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from ledeline.config.engine_systems import EncDecConfig
from ledeline.config.section import BadValue
from ledeline.core.errors import ModelError
from ledeline.inference.headliner import Headliner
from ledeline.model.addons.spm import SourcePredictionConfig
from ledeline.model.build import build
from ledeline.model.format.model_folder import load_model, write_description
from ledeline.model.format.pack import pack
from ledeline.model.system_config import ADDON_CONFIGS, SYSTEM_CONFIGS, SystemConfig
from ledeline.model.systems.gru import GruConfig, GruEncDec
from ledeline.text.profiles import NATURAL
from ledeline.text.subwords import Subwords
from ledeline.text.tokenizer import Tokenizer
from pages import ROOT

FIRST = ROOT / "tests" / "train" / "stored" / "0.1.0" / "run" / "checkpoints" / "00000034"


SYSTEM_BEFORE = """\
[model]
embedding_size = 6
hidden_size = 4
layers = 1
dropout = 0.3
init = 0.1

[gate]
enabled = true

[spm]
enabled = true
c = 10.0
"""


def test_folders_of_the_first_version() -> None:
    about = json.loads((FIRST / "model.json").read_text())
    assert (about["version"], about["system"]) == (1, "EncDec+sGate+SPM")
    loaded = load_model(FIRST)
    assert loaded.model.config.name == "EncDec+sGate+SPM"
    assert loaded.model.config.addons["spm"] == SourcePredictionConfig(c=5.0)
    stored = load_file(FIRST / "model.safetensors")
    assert stored.keys() == loaded.model.state_dict().keys()
    for name, weight in loaded.model.state_dict().items():
        assert torch.equal(weight, stored[name]), name


@pytest.fixture
def second(tmp_path: Path) -> Path:
    """A folder of the second version, as 0.1.0 wrote the bundled model, with weights in int8."""
    folder = pack([FIRST], tmp_path / "second", "int8").folder
    about = {
        "format": "ledeline-model",
        "version": 2,
        "system": "EncDec+sGate+SPM",
        "profile": "natural",
        "vocabulary": 282,
        "weights": "int8",
        "block_ngrams": 2,
        "check": True,
    }
    (folder / "model.json").write_text(json.dumps(about, indent=2) + "\n")
    (folder / "system.toml").write_text(SYSTEM_BEFORE)
    return folder


def test_folders_of_the_second_version(second: Path) -> None:
    loaded = load_model(second)
    assert loaded.model.config.name == "EncDec+sGate+SPM"
    sizes = {"embedding_size": 6, "hidden_size": 4, "layers": 1, "dropout": 0.3}
    assert loaded.model.config.system == EncDecConfig(**sizes)  # type: ignore[arg-type]
    assert loaded.model.config.addons["spm"] == SourcePredictionConfig(c=10.0)
    assert (loaded.block_ngrams, loaded.check, loaded.beam) == (2, True, 20)
    stored, exact = load_file(second / "model.safetensors"), load_file(FIRST / "model.safetensors")
    matrices = [name for name, one in exact.items() if one.dim() > 1]
    assert matrices
    assert {name: stored[name].dtype for name in matrices} == dict.fromkeys(matrices, torch.int8)
    for name, weight in loaded.model.state_dict().items():  # a level is rounded to the nearest
        steps = stored.get(f"{name}.scale", torch.zeros(())).max()
        assert (weight - exact[name]).abs().max() <= 0.51 * steps, name


@pytest.fixture
def gru(tmp_path: Path) -> Path:
    """The folder of a GRU-EncDec+SPM."""
    folder = tmp_path / "gru"
    folder.mkdir()
    letters = "abcdefghijklmnopqrstuvwxyz"
    tokenizer = Tokenizer(NATURAL, Subwords.learn(dict.fromkeys(letters, 1), 0))
    own = GruConfig(embedding_size=6, hidden_size=8, layers=1)
    config = SystemConfig.of(own, SourcePredictionConfig(c=3.0))
    write_description(folder, config, tokenizer)
    model = build(config, tokenizer.vocabulary_size, seed=4)
    for parameter in model.parameters():
        parameter.data *= 8  # far from uniform
    save_file(model.state_dict(), folder / "model.safetensors")
    return folder


def test_another_system_is_built_again(gru: Path) -> None:
    loaded = load_model(gru)
    assert isinstance(loaded.model, GruEncDec)
    assert loaded.model.config.name == "GRU-EncDec+SPM"
    assert loaded.model.config.addons["spm"] == SourcePredictionConfig(c=3.0)


@pytest.mark.filterwarnings("ignore::ledeline.core.errors.EngineWarning")
@pytest.mark.parametrize("storage", ["float32", "int8"])
def test_it_writes_and_explains(gru: Path, tmp_path: Path, storage: str) -> None:
    folder = pack([gru], tmp_path / "packed", storage).folder  # type: ignore[arg-type]
    headline = Headliner.load(folder, device="cpu")("a b c d e f", beam=4, explain=True)
    assert headline.text
    assert headline.alignment is not None
    assert headline.alignment.spm is not None


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "does not fit into memory"),
        (MemoryError(), "does not fit into memory"),
        (RuntimeError("a bug"), None),
    ],
    ids=str,
)
def test_a_system_that_does_not_fit_into_memory(
    model_folder: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, sentence: str | None
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("ledeline.model.format.model_folder.build", fail)
    with pytest.raises(ModelError if sentence else RuntimeError, match=sentence or "a bug"):
        load_model(model_folder)


SIZES = [
    (name, field.name)
    for name, kind in (SYSTEM_CONFIGS | ADDON_CONFIGS).items()
    for field in dataclasses.fields(kind)
    if type(field.default) is int
]


@pytest.mark.parametrize(("name", "key"), SIZES)
def test_every_size_has_a_limit(name: str, key: str) -> None:
    """Else a folder made to do harm takes all memory, or minutes."""
    with pytest.raises(BadValue, match=rf"^{key} = "):
        (SYSTEM_CONFIGS | ADDON_CONFIGS)[name](**{key: 10**20 + 1})
