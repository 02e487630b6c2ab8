"""A model folder: the weights, what they are the weights of, and the words it knows.

| file | what it is |
| --- | --- |
| `model.safetensors` | the weights |
| `model.json` | format, version, text profile, size of the vocabulary, storage, n-grams to block |
| `system.toml` | the configuration of the system |
| `codes.txt`, `subwords.json` | the sub-words |
"""

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

from ledeline.config import SystemConfig
from ledeline.config.toml import load, to_toml
from ledeline.core.errors import ModelError
from ledeline.core.shipped import model_folder
from ledeline.model.format.weights import Storage, read_weights
from ledeline.model.systems.encdec import EncDec
from ledeline.text.profiles import PROFILES
from ledeline.text.tokenizer import MODEL_FILE, MODEL_FORMAT, Tokenizer

WEIGHTS: Final = "model"  # .safetensors
SYSTEM: Final = "system.toml"
BEST: Final = "best"  # in the folder of a run
# By storage: float16 is read by what knows version 1 alone, int8 is not and must not be tried.
VERSIONS: Final[dict[Storage, int]] = {"float32": 1, "float16": 1, "int8": 2}


class ModelBundle(NamedTuple):
    """What a model folder holds."""

    model: EncDec
    tokenizer: Tokenizer
    block_ngrams: int = 0  # in a search that does not say


def describe(
    folder: Path,
    system: SystemConfig,
    tokenizer: Tokenizer,
    storage: Storage = "float32",
    block_ngrams: int = 0,
) -> None:
    """Write everything but the weights."""
    (folder / SYSTEM).write_text(to_toml(system), encoding="utf-8")
    about: dict[str, Any] = {
        "format": MODEL_FORMAT,
        "version": VERSIONS[storage],
        "system": system.name,
        "profile": tokenizer.profile.name,
        "vocabulary": tokenizer.vocabulary_size,
    }
    if storage != "float32":
        about["weights"] = storage
    if block_ngrams:
        about["block_ngrams"] = block_ngrams
    (folder / MODEL_FILE).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    tokenizer.subwords.save(folder)


def load_model(folder: Path | str) -> ModelBundle:
    """Open a model folder, ready to write headlines, on the CPU."""
    folder = model_folder(folder)
    about = _read_description(folder)
    tokenizer = Tokenizer.read(folder, about["profile"])
    system = load(SystemConfig, folder / SYSTEM)
    model = EncDec(system, tokenizer.vocabulary_size)
    path = folder / f"{WEIGHTS}.safetensors"
    storage = about.get("weights", "float32")
    model.load_state_dict(read_weights(path, model.state_dict(), storage, system))
    return ModelBundle(model.eval(), tokenizer, about.get("block_ngrams", 0))


def _read_description(folder: Path) -> dict[str, Any]:
    path = folder / MODEL_FILE
    try:
        about = json.loads(path.read_bytes())
    except OSError as error:
        raise _no_model(folder, error) from None
    except ValueError:
        raise ModelError(f"{path} is damaged") from None
    if not isinstance(about, dict) or about.get("format") != MODEL_FORMAT:
        raise ModelError(f"{path} does not describe a model of ledeline")
    version, storage = about.get("version"), about.get("weights", "float32")
    if version not in VERSIONS.values() or about.get("profile") not in list(PROFILES):
        raise ModelError(
            f"{path} has format version {version} and profile {about.get('profile')}, and this "
            "ledeline reads versions 1 and 2 with " + " or ".join(PROFILES)
        )
    if (storage, version) not in list(VERSIONS.items()):
        raise ModelError(f"{path} is damaged: version {version} has no weights in {storage}")
    blocked = about.get("block_ngrams", 0)
    if type(blocked) is not int or blocked < 0:
        raise ModelError(f"{path} is damaged: block_ngrams is {blocked!r}, not a whole number")
    return about


def _no_model(folder: Path, error: OSError) -> ModelError:
    """What to say of a folder whose description cannot be read."""
    reason = f"{MODEL_FILE}: {error.strerror}"
    if not folder.is_dir():
        reason = "it is a file" if folder.exists() else "it does not exist"
    elif isinstance(error, FileNotFoundError):
        reason = f"it has no {MODEL_FILE}"
    best = folder / BEST
    known = best if (best / MODEL_FILE).exists() else "one, such as runs/NAME/best of a run"
    return ModelError(f"{folder} is not a model folder: {reason}; name {known}")
