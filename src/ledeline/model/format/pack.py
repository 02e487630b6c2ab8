"""Pack a model to ship: the weights of one, or the mean of several, in a small format."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from ledeline.config.extractive import ExtractiveWeights
from ledeline.config.toml import to_toml
from ledeline.core.atomic import exclusive_lock, explain_full_disk, make_folder, staging_folder
from ledeline.core.errors import ModelError
from ledeline.core.shipped import model_folder
from ledeline.model.format.description import CARD, SYSTEM, WEIGHTS, Storage
from ledeline.model.format.model_folder import ModelBundle, load_model, write_description
from ledeline.model.format.weights import write_weights
from ledeline.model.system_config import SystemConfig
from ledeline.text.subwords import FILES as SUBWORD_FILES
from ledeline.text.tokenizer import MODEL_FILE


class PackedModel(NamedTuple):
    """The folder that was written."""

    folder: Path
    system: str
    num_parameters: int
    num_bytes: int  # of all files


def pack(
    models: Sequence[Path],
    output: Path,
    storage: Storage = "int8",
    card: Path | None = None,
    block_ngrams: int | None = None,
    beam: int | None = None,
) -> PackedModel:
    """Write a new model folder with the mean weights of models, and a card that describes it.

    `block_ngrams` and `beam` are the defaults of searches with this model; None: those of the first
    model.
    """
    text = None if card is None else read_card(card)
    with new_folder(output) as folder:
        mean = _mean(models)
        model = mean.model
        blocked = mean.block_ngrams if block_ngrams is None else block_ngrams
        kept = mean.beam if beam is None else beam
        about = mean.tokenizer, storage, blocked, mean.extractive, kept
        write_description(folder, model.config, *about)
        path = folder / f"{WEIGHTS}.safetensors"
        write_weights(path, model.state_dict(), storage, model.int8_layouts())
        if text is not None:
            (folder / CARD).write_bytes(text)
    num_parameters = sum(one.numel() for one in model.parameters())
    num_bytes = sum(path.stat().st_size for path in output.iterdir())
    return PackedModel(output, mean.name, num_parameters, num_bytes)


def add_extractive(model: Path, output: Path, weights: ExtractiveWeights) -> Path:
    """Write a new model folder: a copy of a model, whose searches have these weights of features.

    Its scores are not those that the verifier knows, so its headlines are not checked by default.
    """
    model = model_folder(model)
    about = json.loads((model / MODEL_FILE).read_bytes()) | {"extractive": asdict(weights)}
    about.pop("check", None)
    return copy_model(model, output, {MODEL_FILE: json.dumps(about, indent=2) + "\n"})


def change_system(model: Path, output: Path, system: SystemConfig) -> Path:
    """Write a new model folder: a copy of a model, with another configuration of its system.

    It must be one for the same weights.
    """
    return copy_model(model_folder(model), output, {SYSTEM: to_toml(system)})


def copy_model(model: Path, output: Path, changed: Mapping[str, str]) -> Path:
    """Write a new model folder: a copy of a model, but for the text of some files."""
    with new_folder(output) as folder:
        for name in (f"{WEIGHTS}.safetensors", SYSTEM, MODEL_FILE, *SUBWORD_FILES, CARD):
            if name in changed:
                (folder / name).write_text(changed[name], encoding="utf-8")
            elif name != CARD or (model / name).exists():
                shutil.copyfile(model / name, folder / name)
    return output


def _mean(folders: Sequence[Path]) -> ModelBundle:
    """The first model, with the mean weights of all, computed in float64."""
    first = load_model(folders[0])
    sums = {name: one.double() for name, one in first.model.state_dict().items()}
    for folder in folders[1:]:
        other = load_model(folder)
        if differing := _difference(first, other):
            raise ModelError(
                f"{folders[0]} and {folder} cannot be averaged: they differ in {differing}; name "
                "checkpoints of one run"
            )
        for name, one in other.model.state_dict().items():
            sums[name] += one
    mean = {name: (one / len(folders)).float() for name, one in sums.items()}
    first.model.load_state_dict(mean)
    return first


def _difference(one: ModelBundle, other: ModelBundle) -> str | None:
    """Why the mean of two models makes no sense; None: it does."""
    if one.model.config != other.model.config:
        return SYSTEM
    if one.tokenizer.profile is not other.tokenizer.profile:
        return "their text profiles"
    return None if one.tokenizer == other.tokenizer else "their sub-words"


def read_card(path: Path) -> bytes:
    """The card in a file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path}: the card cannot be read: {error.strerror}") from None


def refuse_existing(output: Path) -> None:
    """Refuse to write a model to a folder that exists."""
    if output.exists():
        raise ModelError(f"{output} already exists; name another folder to write to")


@contextmanager
def new_folder(output: Path) -> Iterator[Path]:
    """A folder to write into, which becomes `output` if the block succeeds."""
    output = output.resolve()
    make_folder(output.parent)
    full = ModelError(f"{output}: the disk is full; make room and run again")
    with exclusive_lock(output, ModelError), explain_full_disk(full):
        refuse_existing(output)
        with staging_folder(output) as folder:
            yield folder
