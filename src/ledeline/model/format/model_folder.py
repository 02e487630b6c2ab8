"""Model folders and the systems in them; `description` says which files they have."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from ledeline.config.extractive import ExtractiveWeights
from ledeline.config.search import PAPER_BEAM
from ledeline.config.toml import load, to_toml
from ledeline.core.errors import LedelineError, ModelError
from ledeline.core.shipped import model_folder
from ledeline.model.build import build, is_out_of_memory
from ledeline.model.format.description import (
    RENAMED,
    SYSTEM,
    VERSION,
    WEIGHTS,
    Storage,
    check_same_system,
    read_description,
    title,
)
from ledeline.model.format.weights import read_weights
from ledeline.model.system import System
from ledeline.model.system_config import SystemConfig
from ledeline.text.tokenizer import MODEL_FILE, MODEL_FORMAT, Tokenizer


class ModelBundle(NamedTuple):
    """What a model folder holds."""

    model: System
    tokenizer: Tokenizer
    block_ngrams: int = 0  # default of searches with this model
    check: bool = False  # the verifier knows this model; its headlines are checked by default
    extractive: ExtractiveWeights | None = None  # what its searches add to log-probabilities
    beam: int = PAPER_BEAM  # default of searches with this model

    @property
    def name(self) -> str:
        """The name of the system, as EncDec+SPM; with extractive features, as ABS+."""
        return title(self.model.config.name, self.extractive)


def write_description(
    folder: Path,
    system: SystemConfig,
    tokenizer: Tokenizer,
    storage: Storage = "float32",
    block_ngrams: int = 0,
    extractive: ExtractiveWeights | None = None,
    beam: int = PAPER_BEAM,
) -> None:
    """Write everything but the weights."""
    (folder / SYSTEM).write_text(to_toml(system), encoding="utf-8")
    about: dict[str, Any] = {
        "format": MODEL_FORMAT,
        "version": VERSION,
        "system": system.system.name,
        "addons": list(system.addons),
        "profile": tokenizer.profile.name,
        "vocabulary": tokenizer.vocabulary_size,
    }
    if storage != "float32":
        about["weights"] = storage
    if block_ngrams:
        about["block_ngrams"] = block_ngrams
    if beam != PAPER_BEAM:
        about["beam"] = beam
    if extractive is not None:
        about["extractive"] = asdict(extractive)
    (folder / MODEL_FILE).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    tokenizer.subwords.save(folder)


def load_model(folder: Path | str) -> ModelBundle:
    """Load the model in a folder, or of a name, in evaluation mode, on the CPU."""
    folder = model_folder(folder)
    try:
        return _load(folder)
    except LedelineError as error:
        from ledeline.core.installed_models import explain_installed

        raise explain_installed(folder, error) from None


def _load(folder: Path) -> ModelBundle:
    about = read_description(folder)
    tokenizer = Tokenizer.read(folder, about["profile"])
    system = read_system(folder)
    check_same_system(folder, about, system.system.name, system.addons)
    try:
        model = build(system, tokenizer.vocabulary_size)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise ModelError(f"{folder / SYSTEM}: this system does not fit into memory") from None
    path = folder / f"{WEIGHTS}.safetensors"
    storage = about.get("weights", "float32")
    model.load_state_dict(read_weights(path, model.state_dict(), storage, model.int8_layouts()))
    return ModelBundle(
        model.eval(),
        tokenizer,
        about.get("block_ngrams", 0),
        about.get("check", False),
        about.get("extractive"),
        about.get("beam", PAPER_BEAM),
    )


def read_system(folder: Path) -> SystemConfig:
    """The configuration of the system and its add-ons."""
    return load(SystemConfig, folder / SYSTEM, renamed=RENAMED, quiet=True)
