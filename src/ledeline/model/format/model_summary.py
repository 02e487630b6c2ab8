"""What a model is, read from its folder without its weights; and all models that have a name.

Models that the engine knows are summarized without torch.
"""

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

from ledeline import __version__
from ledeline.config.engine_systems import EngineConfig
from ledeline.config.toml import load
from ledeline.core import shipped
from ledeline.core.errors import LedelineError, ModelError
from ledeline.core.installed_models import InstalledModel, installed_models, refuse_unusable
from ledeline.core.shipped import SHIPPED_NAME
from ledeline.model.format.description import (
    CARD,
    RENAMED,
    SYSTEM,
    WEIGHTS,
    Storage,
    is_known_to_engine,
    pytorch_needed,
    read_description,
    title,
)
from ledeline.text.subwords import FILES as SUBWORD_FILES


class ModelSummary(NamedTuple):
    """A model folder in a few words and numbers."""

    system: str  # as EncDec+SPM
    num_parameters: int
    num_bytes: int  # of all files
    weights: Storage
    profile: str
    description: str  # first line of its card; empty without one


class NamedModel(NamedTuple):
    """A model that is found by its name."""

    name: str
    version: str
    package: str  # as pip calls it
    folder: Path
    summary: ModelSummary | None  # None: it cannot be used
    problem: str = ""  # why


def summarize_model(folder: Path) -> ModelSummary:
    """Summarize the model in a folder. Of the weights only the header is read."""
    about = read_description(folder)
    for name in (f"{WEIGHTS}.safetensors", SYSTEM, *SUBWORD_FILES):
        if not (folder / name).is_file():
            raise ModelError(f"{folder} has no {name}")
    storage: Storage = about.get("weights", "float32")
    return ModelSummary(
        title(_system_name(folder, about), about.get("extractive")),
        count_weights(folder / f"{WEIGHTS}.safetensors", storage),
        sum(path.stat().st_size for path in folder.iterdir()),
        storage,
        about["profile"],
        first_line(folder / CARD),
    )


def _system_name(folder: Path, about: dict[str, Any]) -> str:
    """The system with its add-ons, as its configuration names them."""
    if is_known_to_engine(about):
        return load(EngineConfig, folder / SYSTEM, renamed=RENAMED, quiet=True).name
    with pytorch_needed(folder, about):
        from ledeline.model.format.model_folder import read_system

        return read_system(folder).name


def count_weights(path: Path, storage: Storage) -> int:
    """How many weights a file has; only its header is read."""
    try:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(min(size, path.stat().st_size)))
        shapes = {name: one["shape"] for name, one in header.items() if name != "__metadata__"}
        is_scale = {name for name in shapes if storage == "int8" and name.endswith(".scale")}
        return sum(math.prod(shape) for name, shape in shapes.items() if name not in is_scale)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ModelError(f"{path} cannot be read: its header is damaged") from None


def first_line(card: Path) -> str:
    """The first line of a card that has words, without the marks of a heading."""
    try:
        text = card.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    lines = (line.strip("# \t") for line in text.splitlines())
    words = next((line for line in lines if any(map(str.isalnum, line))), "")
    return "".join(filter(str.isprintable, words))


def named_models() -> list[NamedModel]:
    """The shipped model, then the installed ones, also those that cannot be used."""
    box = InstalledModel(SHIPPED_NAME, "ledeline", __version__, shipped.SHIPPED)
    found = installed_models()
    return [_named(box, []), *(_named(one, found) for one in found)]


def _named(model: InstalledModel, installed: list[InstalledModel]) -> NamedModel:
    known = model.name, model.version, model.distribution, model.folder
    try:
        if installed:
            refuse_unusable(model, installed)
        return NamedModel(*known, _summarize(model))
    except LedelineError as error:
        return NamedModel(*known, None, str(error))


def _summarize(model: InstalledModel) -> ModelSummary:
    try:
        return summarize_model(model.folder)
    except LedelineError as error:
        raise model.explain(error) from None
