"""What describes a model folder; it is read without torch.

| file | what it is |
| --- | --- |
| `model.safetensors` | the weights |
| `model.json` | format and version, system, add-ons, text profile, vocabulary, storage, features |
| `system.toml` | the configuration of the system and its add-ons |
| `codes.txt`, `subwords.json` | the sub-words |

Version 3 names the system and its add-ons. Versions 1 (float32, float16) and 2 (int8) are those of
ledeline 0.1.0, which had EncDec alone; they are still read.
"""

import json
import math
import reprlib
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from ledeline.config.engine_systems import ENGINE_SYSTEMS, READ_ADDONS
from ledeline.config.extractive import ExtractiveWeights
from ledeline.config.search import PAPER_BEAM
from ledeline.config.section import BadValue
from ledeline.core.errors import ModelError, NewerModelError
from ledeline.core.extras import needed_by
from ledeline.core.shipped import is_name
from ledeline.text.profiles import PROFILES
from ledeline.text.tokenizer import MODEL_FILE, MODEL_FORMAT

Storage: TypeAlias = Literal["float32", "float16", "int8"]

WEIGHTS: Final = "model"  # .safetensors
SYSTEM: Final = "system.toml"
CARD: Final = "card.md"  # what a model is, for people
BEST: Final = "best"  # in the folder of a run
VERSION: Final = 3
_LONGEST_SHOWN: Final = 80
STORAGES: Final[dict[int, tuple[Storage, ...]]] = {  # by the version of the format
    1: ("float32", "float16"),
    2: ("int8",),
    3: ("float32", "float16", "int8"),
}
# Keys of system.toml in versions 1 and 2. A trained model does not need its initialisation.
RENAMED: Final = {"model.init": None, "model.": "system.", "gate.": "sgate."}
# All systems and add-ons by name; `ledeline.model` has their classes, which need torch.
SYSTEM_NAMES: Final = ("encdec", "gru", "abs", "seass", "drgd", "conv-s2s", "ras", "transformer")
ADDON_NAMES: Final = (
    "sgate",
    "spm",
    "coverage",
    "copy",
    "wfe",
    "reconstruction",
    "word_prediction",
)


def title(system: str, extractive: ExtractiveWeights | None) -> str:
    """The name of a system, as EncDec+SPM; with extractive features, as ABS+."""
    return system + ("" if extractive is None else "+")


def read_description(folder: Path) -> dict[str, Any]:
    """What `model.json` says, checked."""
    path = folder / MODEL_FILE
    try:
        about = json.loads(path.read_bytes())
    except OSError as error:
        raise _no_model(folder, error) from None
    except (ValueError, RecursionError):
        raise ModelError(f"{path} is damaged") from None
    if not isinstance(about, dict) or about.get("format") != MODEL_FORMAT:
        raise ModelError(f"{path} does not describe a model of ledeline")
    version, storage = about.get("version"), about.get("weights", "float32")
    if version not in list(STORAGES) or about.get("profile") not in list(PROFILES):
        kind = NewerModelError if type(version) is int and version > VERSION else ModelError
        found = f"version {reprlib.repr(version)} and profile {reprlib.repr(about.get('profile'))}"
        raise kind(
            f"{path} has format {found}, but this ledeline reads versions 1 to {VERSION} with "
            + " or ".join(PROFILES)
        )
    if storage not in STORAGES[version]:
        raise ModelError(
            f"{path} is damaged: version {version} has no weights in {_shown(storage)}"
        )
    addons = about.get("addons", [])
    if not isinstance(addons, list):
        raise ModelError(
            f"{path} is damaged: addons is {reprlib.repr(addons)}, not a list of names"
        )
    if version == VERSION:
        _refuse_unknown(path, "system", [about.get("system")], SYSTEM_NAMES)
        _refuse_unknown(path, "add-on", addons, ADDON_NAMES)
    blocked = about.get("block_ngrams", 0)
    if type(blocked) is not int or blocked < 0:
        raise ModelError(
            f"{path} is damaged: block_ngrams is {reprlib.repr(blocked)}, not a whole number"
        )
    beam = about.get("beam", PAPER_BEAM)
    if type(beam) is not int or beam < 1:
        raise ModelError(
            f"{path} is damaged: beam is {reprlib.repr(beam)}, not a whole number above 0"
        )
    if type(about.get("check", False)) is not bool:
        raise ModelError(
            f"{path} is damaged: check is {reprlib.repr(about['check'])}, not true or false"
        )
    if "extractive" in about:
        about["extractive"] = _read_extractive(path, about["extractive"])
    return about


def check_same_system(folder: Path, about: dict[str, Any], system: str, addons: Any) -> None:
    """Refuse a folder whose two descriptions name different systems or add-ons."""
    if about["version"] < VERSION:  # which had no names
        return
    said = {"system": about["system"], "addons": sorted(about.get("addons", addons))}
    for key, own in {"system": system, "addons": sorted(addons)}.items():
        if said[key] != own:
            raise ModelError(
                f"{folder} is damaged: {MODEL_FILE} has {key} {_shown(said[key])}, "
                f"but {SYSTEM} has {_shown(own)}"
            )


def is_known_to_engine(about: dict[str, Any]) -> bool:
    """Whether the engine knows the system, its add-ons, and what its searches add."""
    return _unknown_to_engine(about) is None


def pytorch_needed(folder: Path | str, about: dict[str, Any]) -> AbstractContextManager[None]:
    """Say what the engine does not know of a model, if torch is missing within."""
    what = f"{folder}: the engine does not know {_unknown_to_engine(about)}, so the model"
    return needed_by(what, "train")


def _unknown_to_engine(about: dict[str, Any]) -> str | None:
    """What the engine does not know of a model, as part of a sentence; None: nothing."""
    if about["version"] == VERSION:  # those before had EncDec alone
        if about["system"] not in ENGINE_SYSTEMS:
            return f"the system {about['system']}"
        for name in about.get("addons", []):
            if name not in READ_ADDONS:
                return f"the add-on {name}"
    return None if about.get("extractive") is None else "extractive features"


def _read_extractive(path: Path, values: Any) -> ExtractiveWeights:
    """The weights of extractive features, which are finite numbers by name."""
    is_table = isinstance(values, dict) and set(values) <= set(asdict(ExtractiveWeights()))
    if not is_table or not all(
        type(one) in (int, float) and math.isfinite(one) for one in values.values()
    ):
        raise ModelError(
            f"{path} is damaged: extractive is {reprlib.repr(values)}, not weights of features"
        )
    try:
        return ExtractiveWeights(**{name: float(one) for name, one in values.items()})
    except BadValue as error:
        raise ModelError(f"{path} is damaged: extractive: {error}") from None


def _shown(value: Any) -> str:
    """A name in a file, which may be anything, in a few printable characters."""
    if isinstance(value, str) and value.isprintable() and 0 < len(value) <= _LONGEST_SHOWN:
        return value
    return reprlib.repr(value)


def _refuse_unknown(path: Path, what: str, names: list[Any], known: tuple[str, ...]) -> None:
    """Refuse a system or an add-on that this ledeline does not have."""
    for name in names:
        if name not in list(known):
            raise NewerModelError(
                f"{path} names the {what} {_shown(name)}, but this ledeline only has "
                + ", ".join(known)
            )


def _no_model(folder: Path, error: OSError) -> ModelError:
    """The error for a folder whose description cannot be read."""
    reason = f"{MODEL_FILE}: {error.strerror}"
    if not folder.is_dir():
        reason = "it is a file" if folder.exists() else _missing(folder)
    elif isinstance(error, FileNotFoundError):
        reason = f"it has no {MODEL_FILE}"
    return ModelError(f"{folder} is not a model folder: {reason}; name {_nearest(folder)}")


def _nearest(folder: Path) -> str:
    """What may have been meant by a folder without a model."""
    best = folder / BEST
    if (best / MODEL_FILE).exists():
        return str(best)
    if is_name(folder) and folder.exists():  # it goes before an installed model of its name
        from ledeline.core.installed_models import installed_models

        for one in installed_models():
            if one.name == folder.name:
                return f"{one.folder}, which is the installed model {one.name}"
    return "one, such as runs/NAME/best"


def _missing(folder: Path) -> str:
    """Why a folder that does not exist is not the name of a model either."""
    if not is_name(folder):
        return "it does not exist"
    from ledeline.core.installed_models import not_installed

    return f"it does not exist, and {not_installed()}"
