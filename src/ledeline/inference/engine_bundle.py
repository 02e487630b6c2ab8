"""A model folder as the engine in C reads it, without torch."""

from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from ledeline.config.engine_systems import TRAINING_ADDONS, EngineConfig
from ledeline.config.extractive import ExtractiveWeights
from ledeline.config.search import PAPER_BEAM
from ledeline.config.toml import load
from ledeline.core.errors import LedelineError
from ledeline.core.shipped import model_folder
from ledeline.model.format.description import (
    RENAMED,
    SYSTEM,
    WEIGHTS,
    check_same_system,
    is_known_to_engine,
    read_description,
    title,
)
from ledeline.runtime.engine import Engine, EnginePrecision
from ledeline.runtime.tensor_file import Tensors, drop_pages, read_tensors
from ledeline.text.tokenizer import Tokenizer


class EngineSystem:
    """A trained system, with its weights as the file has them."""

    has_attention = True
    context_size: int | None = None  # a step depends on all words that were written
    rescores = False

    def __init__(self, folder: Path, config: EngineConfig, vocabulary: int) -> None:
        self.folder, self.config, self.vocabulary = folder, config, vocabulary
        self.path = folder / f"{WEIGHTS}.safetensors"
        self.tensors: Tensors = read_tensors(self.path)

    def engine(self, precision: EnginePrecision) -> Engine:
        """The engine that runs it, without what acts in training alone."""
        # Weights of add-ons that act in training alone have their names.
        left_out = self.config.addons.keys() & TRAINING_ADDONS.keys()
        tensors = {
            name: one for name, one in self.tensors.items() if name.split(".")[0] not in left_out
        }
        engine = Engine(self.config, self.vocabulary, tensors, precision, path=self.path)
        drop_pages(self.tensors)  # it has its own copy, packed for the CPU
        return engine

    @cached_property
    def num_parameters(self) -> int:
        """How many weights it has."""
        is_scale = {name for name in self.tensors if name.endswith(".scale")}
        return sum(prod(one.shape) for name, one in self.tensors.items() if name not in is_scale)


class EngineBundle(NamedTuple):
    """What a model folder holds; as `ModelBundle`, without torch."""

    model: EngineSystem
    tokenizer: Tokenizer
    block_ngrams: int = 0  # default of searches with this model
    check: bool = False  # the verifier knows this model; its headlines are checked by default
    extractive: ExtractiveWeights | None = None  # the engine has no such features
    beam: int = PAPER_BEAM  # default of searches with this model

    @property
    def name(self) -> str:
        """The name of the system, as EncDec+SPM."""
        return title(self.model.config.name, self.extractive)


def read_engine_bundle(name: Path | str) -> EngineBundle | None:
    """Read the model in a folder, or of a name; None if the engine does not know its system."""
    folder = model_folder(name)
    try:
        about = read_description(folder)
        return _read(folder, about) if is_known_to_engine(about) else None
    except LedelineError as error:
        from ledeline.core.installed_models import explain_installed

        raise explain_installed(folder, error) from None


def _read(folder: Path, about: dict[str, Any]) -> EngineBundle:
    tokenizer = Tokenizer.read(folder, about["profile"])
    config = load(EngineConfig, folder / SYSTEM, renamed=RENAMED, quiet=True)
    check_same_system(folder, about, config.system.name, config.addons)
    model = EngineSystem(folder, config, tokenizer.vocabulary_size)
    return EngineBundle(
        model,
        tokenizer,
        block_ngrams=about.get("block_ngrams", 0),
        check=about.get("check", False),
        beam=about.get("beam", PAPER_BEAM),
    )
