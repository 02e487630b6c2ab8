"""What the engine does not know is written by PyTorch, and said; or it is refused."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from ledeline.config import SearchConfig
from ledeline.config.extractive import ExtractiveWeights
from ledeline.core.errors import EngineWarning, ModelError
from ledeline.inference.engine_bundle import EngineBundle
from ledeline.inference.engine_model import EngineModel
from ledeline.inference.engines import choose_model, open_bundles, open_model, step_model_of
from ledeline.inference.headliner import Headliner, Options
from ledeline.inference.torch_model import TorchModel
from ledeline.model.build import build
from ledeline.model.format.model_folder import ModelBundle, write_description
from ledeline.model.system_config import SystemConfig
from ledeline.model.systems.gru import GruConfig
from ledeline.synth.newsroom import generate
from ledeline.text.tokenizer import Tokenizer

LEDES = [story.lede for story in generate(6, 7)]
SHORT = Options(search=SearchConfig(beam=3, n_best=3, max_length=6))

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def gru_folder(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A system that the engine does not know, with the sub-words of one that it does."""
    folder, tokenizer = tmp_path_factory.mktemp("gru"), Tokenizer.load(model_folder)
    config = SystemConfig(system=GruConfig(embedding_size=8, hidden_size=8))
    model, generator = build(config, tokenizer.vocabulary_size), torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4, generator=generator)
    write_description(folder, config, tokenizer)
    save_file(model.state_dict(), folder / "model.safetensors")
    return folder


def test_a_model_that_the_engine_knows_needs_no_pytorch(model_folder: Path) -> None:
    (bundle,) = open_bundles([model_folder], "cpu")
    assert isinstance(bundle, EngineBundle)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for precision, chosen in (("auto", "int8"), ("int8", "int8"), ("float32", "float32")):
            model = choose_model([bundle], precision)  # type: ignore[arg-type]
            assert isinstance(model, EngineModel)
            assert model.precision == chosen
            assert model.on_cpu


def test_a_system_that_it_does_not_know_writes_itself(gru_folder: Path) -> None:
    said = "written by the system itself, which is slower than the CPU engine.* GRU-EncDec"
    with pytest.warns(EngineWarning, match=said) as warned:
        headliner = Headliner.load(gru_folder, device="cpu")
    assert len(warned) == 1
    assert headliner.precision == "float32"
    assert isinstance(headliner._model.model, TorchModel)
    found = headliner.generate_batch(LEDES, SHORT)
    assert all(found)
    explained = headliner(LEDES[0], options=Options(search=SHORT.search, explain=True))
    assert explained.alignment is not None
    assert explained.text == found[0].text


@pytest.mark.parametrize("together", [True, False])
def test_int8_of_it_is_refused(gru_folder: Path, model_folder: Path, together: bool) -> None:
    folders = [model_folder, gru_folder] if together else [gru_folder]
    said = "precision int8 needs the CPU engine: it does not know the system GRU-EncDec; use float"
    with pytest.raises(ModelError, match=said):
        Headliner.load(*folders, precision="int8", device="cpu")


def test_an_ensemble_with_it_is_written_by_pytorch(gru_folder: Path, model_folder: Path) -> None:
    for folders in ([model_folder, gru_folder], [gru_folder, model_folder]):
        with pytest.warns(EngineWarning, match="GRU-EncDec"):
            headliner = Headliner.load(*folders, device="cpu")
        assert isinstance(headliner._model.model, TorchModel)
        assert all(headliner.generate_batch(LEDES[:2], SHORT))


def test_extractive_features_are_not_left_out(model_folder: Path) -> None:
    loaded = open_model(model_folder, "cpu")._replace(extractive=ExtractiveWeights(unigram=2.0))
    assert isinstance(loaded, ModelBundle)
    with pytest.raises(
        ModelError, match=r"precision int8 .*: it does not know extractive features"
    ):
        choose_model([loaded], "int8")
    with pytest.warns(EngineWarning, match="it does not know extractive features"):
        headliner = Headliner([loaded])
    plain = Headliner([loaded._replace(extractive=None)], "float32")
    found, others = (one.generate_batch(LEDES, SHORT) for one in (headliner, plain))
    assert [one.text for one in found] != [one.text for one in others]


def test_a_system_in_memory_writes_what_its_folder_does(model_folder: Path) -> None:
    for precision in ("int8", "float32"):
        here = Headliner([open_model(model_folder, "cpu")], precision)  # type: ignore[arg-type]
        there = Headliner.load(model_folder, precision=precision, device="cpu")  # type: ignore[arg-type]
        assert here.generate_batch(LEDES, SHORT) == there.generate_batch(LEDES, SHORT)


def test_a_precision_of_gpus_is_refused(make_model: Callable[..., Path], gru_folder: Path) -> None:
    for folder, others in ((make_model(), "int8, "), (gru_folder, "")):
        said = f"^precision float16 is for a GPU; here use {others}float32 or auto$"
        with pytest.raises(ModelError, match=said):
            Headliner.load(folder, precision="float16", device="cpu")


@pytest.mark.parametrize(
    ("device", "precision", "said"),
    [
        ("cpu", "float16", "is for a GPU; here use float32 or auto"),
        ("cpu", "int8", "needs the CPU engine, and PyTorch searches here; use float32 or auto"),
        ("meta", "int8", "is for a CPU; here use float32 or auto"),
        ("meta", "float16", "needs the GPU engine: it .* GRU-EncDec; use float32 or auto"),
    ],
)
def test_a_search_in_pytorch_names_the_precisions_that_it_has(
    gru_folder: Path, device: str, precision: Any, said: str
) -> None:
    system = open_model(gru_folder, "cpu").model.to(device)  # no CPU is as a GPU here
    with pytest.raises(ModelError, match=f"^precision {precision} {said}$"):
        step_model_of(system, precision)
    for other in ("float32", "auto"):
        assert step_model_of(system, other) is system  # type: ignore[arg-type]
