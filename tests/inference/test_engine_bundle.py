"""A model folder as the engine reads it: the same model, and each damaged file in a sentence."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from ledeline.config.engine_systems import READ_ADDONS
from ledeline.config.extractive import ExtractiveWeights
from ledeline.core.errors import ConfigError, LedelineError, ModelError, NewerModelError
from ledeline.core.shipped import SHIPPED
from ledeline.core.steps import run_steps
from ledeline.inference.engine_bundle import EngineBundle, read_engine_bundle
from ledeline.inference.engine_weights import engine_of
from ledeline.inference.engines import as_system
from ledeline.model.build import build
from ledeline.model.format.model_folder import load_model, write_description
from ledeline.model.format.pack import pack
from ledeline.model.system_config import ADDON_CONFIGS, SYSTEM_CONFIGS, SystemConfig
from ledeline.text.tokenizer import Tokenizer
from systems import OWN_SIZES, SMALL, addons

WEIGHTS, ABOUT, SYSTEM = "model.safetensors", "model.json", "system.toml"
STORAGES: list[Any] = ["float32", "float16", "int8"]


@pytest.fixture
def copied(model_folder: Path, tmp_path: Path) -> Path:
    return shutil.copytree(model_folder, tmp_path / "copied")


def changed(folder: Path, **changes: Any) -> Path:
    about = json.loads((folder / ABOUT).read_text())
    (folder / ABOUT).write_text(json.dumps(about | changes))
    return folder


def with_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> Path:
    tensors = load_file(folder / WEIGHTS)
    change(tensors)
    save_file(tensors, folder / WEIGHTS)
    return folder


def read(folder: Path | str) -> EngineBundle:
    bundle = read_engine_bundle(folder)
    assert bundle is not None
    return bundle


def seen(engine: Any) -> Any:
    found = run_steps(engine.follow([[5, 6, 7, 5, 9]], [(0, [6, 8, 5])], explain=True))
    return found.headline(0), found.values(0)


# --- the same model ---------------------------------------------------------------------------------


@pytest.mark.parametrize("spm", [True, False])
@pytest.mark.parametrize("storage", STORAGES)
def test_it_is_what_load_model_reads(
    make_model: Callable[..., Path], tmp_path: Path, storage: Any, spm: bool
) -> None:
    packed = pack([make_model(spm=spm)], tmp_path / "packed", storage).folder
    folder = changed(packed, block_ngrams=3, beam=7, check=True)
    ours, theirs = read(folder), load_model(folder)
    assert ours.name == theirs.name
    assert ours.tokenizer == theirs.tokenizer
    assert (ours.block_ngrams, ours.check, ours.extractive) == (3, True, None)
    assert (theirs.block_ngrams, theirs.check, theirs.extractive) == (3, True, None)
    assert (ours.beam, theirs.beam) == (7, 7)
    assert ours.model.vocabulary == theirs.model.vocabulary
    assert ours.model.num_parameters == sum(one.numel() for one in theirs.model.parameters())
    for name in ("has_attention", "context_size", "rescores"):
        assert getattr(ours.model, name) == getattr(theirs.model, name)
    # The weights, too: to the last bit where the file has them in int8 or float32.
    for precision in ("float32", "int8"):
        assert seen(ours.model.engine(precision)) == seen(engine_of(theirs.model, precision))  # type: ignore[arg-type]


def test_the_bundled_model_is_read_by_its_name() -> None:
    bundle = read("shipped")
    assert bundle.model.folder == SHIPPED
    assert bundle.name == "Transformer"
    assert bundle.check
    assert (bundle.block_ngrams, bundle.beam) == (2, 5)
    assert bundle.model.has_attention
    assert not bundle.model.config.addons


def test_a_bundle_becomes_the_system_in_pytorch(copied: Path) -> None:
    bundle = read(changed(copied, block_ngrams=2, beam=3))._replace(check=True)
    system = as_system(bundle)
    for name, one in load_file(copied / WEIGHTS).items():
        assert torch.equal(system.model.state_dict()[name], one), name
    assert system.tokenizer is bundle.tokenizer
    assert (system.block_ngrams, system.beam, system.check) == (2, 3, True)
    assert as_system(system) is system


@pytest.mark.parametrize(("version", "storage"), [(1, "float32"), (1, "float16"), (2, "int8")])
def test_versions_before_are_read(
    make_model: Callable[..., Path], tmp_path: Path, version: int, storage: Any
) -> None:
    """As ledeline 0.1.0 wrote them: a switch for each module, and no names."""
    folder = pack([make_model()], tmp_path / "packed", storage).folder
    expected = seen(read(folder).model.engine("float32"))
    about = json.loads((folder / ABOUT).read_text())
    about = {key: one for key, one in about.items() if key not in ("system", "addons")}
    (folder / ABOUT).write_text(json.dumps(about | {"version": version}))
    (folder / SYSTEM).write_text(
        "[model]\nembedding_size = 16\nhidden_size = 32\ninit = 0.1\n[gate]\nenabled = true\n[spm]\nenabled = true\nc = 10.0\n"
    )
    assert read(folder).name == load_model(folder).name == "EncDec+sGate+SPM"
    assert read(folder).beam == load_model(folder).beam == 20
    assert seen(read(folder).model.engine("float32")) == expected


# --- systems that it does not know ------------------------------------------------------------------


def folder_of(folder: Path, like: Path, system: SystemConfig, **options: Any) -> Path:
    """An untrained model."""
    folder.mkdir()
    tokenizer = Tokenizer.load(like)
    write_description(folder, system, tokenizer, **options)
    save_file(build(system, tokenizer.vocabulary_size).state_dict(), folder / WEIGHTS)
    return folder


@pytest.mark.parametrize(
    "name", [one for one in SYSTEM_CONFIGS if one not in ("encdec", "transformer")]
)
def test_another_system_is_left_to_pytorch(name: str, model_folder: Path, tmp_path: Path) -> None:
    own = SYSTEM_CONFIGS[name]()
    (tmp_path / "model").mkdir()
    write_description(tmp_path / "model", SystemConfig(system=own), Tokenizer.load(model_folder))
    assert read_engine_bundle(tmp_path / "model") is None  # before any weight is read


@pytest.mark.parametrize("name", [one for one in ADDON_CONFIGS if one not in READ_ADDONS])
def test_so_is_another_add_on(name: str, model_folder: Path, tmp_path: Path) -> None:
    system = SYSTEM_CONFIGS["encdec"](**SMALL | OWN_SIZES.get("encdec", {}))
    config = SystemConfig(system=system, addons={name: ADDON_CONFIGS[name]()})
    assert read_engine_bundle(folder_of(tmp_path / "model", model_folder, config)) is None


def test_so_are_extractive_features(model_folder: Path, tmp_path: Path) -> None:
    config = SystemConfig(system=SYSTEM_CONFIGS["encdec"](**SMALL))
    folder = folder_of(
        tmp_path / "model", model_folder, config, extractive=ExtractiveWeights(unigram=1.0)
    )
    assert read_engine_bundle(folder) is None
    assert load_model(folder).extractive == ExtractiveWeights(unigram=1.0)


@pytest.mark.parametrize(
    "changes", [{"system": "mamba"}, {"addons": ["spm", "telepathy"]}, {"version": 4}], ids=str
)
def test_what_no_ledeline_knows_so_far_is_refused(copied: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(NewerModelError, match=ABOUT):
        read_engine_bundle(changed(copied, **changes))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"system": "transformer"}, "has system transformer, but system.toml has encdec"),
        ({"addons": []}, r"has addons \[\], but system.toml has \['sgate', 'spm'\]"),
        ({"addons": ["spm"]}, r"has addons \['spm'\], but system.toml has \['sgate', 'spm'\]"),
    ],
    ids=str,
)
def test_both_descriptions_name_the_same(
    copied: Path, changes: dict[str, Any], sentence: str
) -> None:
    config = SystemConfig(
        system=SYSTEM_CONFIGS["encdec"](**SMALL), addons=addons(sgate=True, spm=True)
    )
    folder = changed(folder_of(copied.with_name("other"), copied, config), **changes)
    for reading in (read_engine_bundle, load_model):
        with pytest.raises(ModelError, match=f"model.json {sentence}"):
            reading(folder)


# --- add-ons that act in training alone -------------------------------------------------------------


@pytest.fixture(params=["encdec", "transformer"])
def trained_with(request: pytest.FixtureRequest, model_folder: Path, tmp_path: Path) -> Path:
    """A system with all add-ons that the engine reads."""
    system = SYSTEM_CONFIGS[request.param](**SMALL | OWN_SIZES.get(request.param, {}))
    config = SystemConfig(system=system, addons={name: one() for name, one in READ_ADDONS.items()})
    return folder_of(tmp_path / "model", model_folder, config)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_what_acts_in_training_alone_is_left_out(
    trained_with: Path, tmp_path: Path, storage: Any, precision: Any
) -> None:
    folder = pack([trained_with], tmp_path / "packed", storage).folder
    ours, theirs = read(folder), load_model(folder)
    assert any(name.startswith("word_prediction.") for name in ours.model.tensors)
    assert ours.name == theirs.name
    assert ours.name.endswith("+sGate+SPM+WP")
    assert ours.model.num_parameters == sum(one.numel() for one in theirs.model.parameters())
    assert seen(ours.model.engine(precision)) == seen(engine_of(theirs.model, precision))


def test_its_weights_belong_to_no_layer_without_its_section(trained_with: Path) -> None:
    text = (trained_with / SYSTEM).read_text()
    (trained_with / SYSTEM).write_text(text[: text.index("[word_prediction]")])
    changed(trained_with, addons=["sgate", "spm"])
    with pytest.raises(ModelError, match=r"word_prediction\.\S+ belongs to no layer of the model"):
        read(trained_with).model.engine("int8")


def test_its_section_is_checked(trained_with: Path) -> None:
    text = (trained_with / SYSTEM).read_text()
    (trained_with / SYSTEM).write_text(text + "\nbreadth = 3\n")
    with pytest.raises(ConfigError, match=r"word_prediction\.breadth"):
        read(trained_with)


# --- damage -----------------------------------------------------------------------------------------


FILES = (WEIGHTS, SYSTEM, "codes.txt", "subwords.json", ABOUT)
DAMAGE = [
    (name, data)
    for name in FILES
    for data in (None, b"", b"\xff\xfe\x00", b"[1, 2")
    if data != b"" or name not in (SYSTEM, "codes.txt")  # which are whole without a line
]


@pytest.mark.parametrize(("name", "data"), DAMAGE, ids=str)
def test_a_file_that_is_missing_or_damaged_is_named(
    copied: Path, name: str, data: bytes | None
) -> None:
    (copied / name).unlink()
    if data is not None:
        (copied / name).write_bytes(data)
    with pytest.raises(LedelineError, match=name) as refused:
        read_engine_bundle(copied)
    assert "\n" not in str(refused.value)
    assert str(copied) in str(refused.value)


@pytest.mark.parametrize("length", [7, 8, 100, 5000, -1])
def test_weights_that_are_cut_short(copied: Path, length: int) -> None:
    whole = (copied / WEIGHTS).read_bytes()
    (copied / WEIGHTS).write_bytes(whole[:length])
    with pytest.raises(ModelError, match=rf"{WEIGHTS} is damaged: \w"):
        read_engine_bundle(copied)


@pytest.mark.parametrize(
    "name",
    [
        "adapter.weight",
        "outputs.bias",
        "x",
        "encoder.layers.2.weight_hh_l0",
        "decoder.upper.1.bias",
    ],
)
def test_a_layer_that_the_system_does_not_have(copied: Path, name: str) -> None:
    with_weights(copied, lambda tensors: tensors.update({name: torch.zeros(3)}))
    with pytest.raises(ModelError, match=WEIGHTS) as refused:
        read(copied).model.engine("float32")
    assert name in str(refused.value)


def test_more_layers_than_the_system_has(copied: Path) -> None:
    """The model would write otherwise, without a word, as if they were not there."""
    (copied / SYSTEM).write_text((copied / SYSTEM).read_text().replace("layers = 2", "layers = 1"))
    with pytest.raises(
        ModelError, match=r"(layers\.1|upper\.0)\.\w+ belongs to no layer of the model"
    ):
        read(copied).model.engine("int8")
    with pytest.raises(ModelError, match=WEIGHTS):
        load_model(copied)


@pytest.mark.parametrize("part", ["encoder", "decoder"])
def test_more_layers_than_a_transformer_has(model_folder: Path, tmp_path: Path, part: str) -> None:
    sizes = {"embedding_size": 4, "hidden_size": 4, "heads": 2}
    own = SYSTEM_CONFIGS["transformer"](**sizes, encoder_layers=3, decoder_layers=2)
    folder = folder_of(tmp_path / "model", model_folder, SystemConfig(system=own))
    assert read(folder).model.num_parameters == sum(
        map(torch.numel, load_file(folder / WEIGHTS).values())
    )
    text = (folder / SYSTEM).read_text()
    number = getattr(own, f"{part}_layers")
    (folder / SYSTEM).write_text(text.replace(f"{part}_layers = {number}", f"{part}_layers = 1"))
    with pytest.raises(ModelError, match=rf"{part}\.layers\.[12]\.\S+ belongs to no layer"):
        read(folder).model.engine("int8")


def test_layers_of_an_add_on_that_is_not_there(copied: Path) -> None:
    """It would be left out in silence otherwise."""
    changed(copied, addons=["sgate"])
    text = (copied / SYSTEM).read_text()
    (copied / SYSTEM).write_text(text[: text.index("[spm]")])
    with pytest.raises(ModelError, match=r"spm\.\w+\.\w+ belongs to no layer of the model"):
        read(copied).model.engine("int8")


@pytest.mark.parametrize("name", ["spm.more.weight", "gate.of_state.bias", "output.bias.scale"])
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_weights_that_no_layer_uses(copied: Path, name: str, precision: Any) -> None:
    with_weights(copied, lambda tensors: tensors.update({name: torch.zeros(2, 2)}))
    said = rf"{WEIGHTS} is damaged: {name} belongs to no layer of the model"
    with pytest.raises(ModelError, match=said):
        read(copied).model.engine(precision)


@pytest.mark.parametrize("name", ["output.bias", "gate.of_state.weight", "spm.output.weight"])
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_weights_that_are_missing_or_of_another_shape_or_not_finite(
    copied: Path, name: str, precision: Any
) -> None:
    whole = load_file(copied / WEIGHTS)
    for change, said in (
        (lambda tensors: tensors.pop(name), "is missing"),
        (lambda tensors: tensors.update({name: whole[name][:-1].clone()}), "should be"),
        (lambda tensors: tensors[name].view(-1).fill_(float("nan")), "not finite"),
        (lambda tensors: tensors[name].view(-1)[3:4].fill_(float("inf")), "not finite"),
    ):
        save_file(whole, copied / WEIGHTS)
        with_weights(copied, change)  # type: ignore[arg-type]
        with pytest.raises(ModelError, match=f"{WEIGHTS} is damaged: {name}.* {said}"):
            read(copied).model.engine(precision)


def test_sizes_of_another_model(copied: Path) -> None:
    text = (copied / SYSTEM).read_text()
    (copied / SYSTEM).write_text(text.replace("hidden_size = 32", "hidden_size = 33"))
    with pytest.raises(ModelError, match=f"{WEIGHTS} is damaged: .* should be"):
        read(copied).model.engine("int8")


def test_a_key_that_is_none(copied: Path) -> None:
    (copied / SYSTEM).write_text((copied / SYSTEM).read_text() + "\n[telepathy]\nrange = 3\n")
    with pytest.raises(ConfigError, match="telepathy"):
        read_engine_bundle(copied)


def test_random_bytes_of_weights_do_no_harm(copied: Path) -> None:
    """Every header that is damaged in one place is refused in a sentence, or read."""
    rng = np.random.default_rng(0)
    whole = (copied / WEIGHTS).read_bytes()
    size = 8 + int.from_bytes(whole[:8], "little")
    said = []
    for place in rng.integers(0, size, 150):
        data = bytearray(whole)
        data[place] ^= int(rng.integers(1, 256))
        (copied / WEIGHTS).write_bytes(data)
        try:
            read(copied).model.engine("float32")
        except ModelError as error:
            said.append(str(error))
    assert len(said) > 100
    assert all(WEIGHTS in one for one in said)


def test_a_description_may_name_no_add_ons(copied: Path) -> None:
    path = copied / "model.json"
    about = json.loads(path.read_text("utf-8"))
    del about["addons"]
    path.write_text(json.dumps(about), "utf-8")
    assert read(copied).name == load_model(copied).name
