"""A model folder: the weights, what they are the weights of, and the words it knows.

| file | what it is |
| --- | --- |
| `model.safetensors` | the weights |
| `model.json` | format, version, the text profile and the size of the vocabulary |
| `system.toml` | the configuration of the system |
| `codes.txt`, `subwords.json` | the sub-words |
"""

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

from safetensors import SafetensorError
from safetensors.torch import load_file

from ledeline.config import SystemConfig
from ledeline.errors import ModelError
from ledeline.model.seq2seq import Seq2Seq
from ledeline.section import load, to_toml
from ledeline.subword import Subwords
from ledeline.text import PROFILES, Profile

WEIGHTS: Final = "model"  # .safetensors
DESCRIPTION: Final = "model.json"
SYSTEM: Final = "system.toml"
FORMAT: Final = "ledeline-model"
VERSION: Final = 1


class Loaded(NamedTuple):
    """What a model folder holds."""

    model: Seq2Seq
    subwords: Subwords
    profile: Profile


def describe(folder: Path, system: SystemConfig, subwords: Subwords, profile: Profile) -> None:
    """Write everything but the weights."""
    (folder / SYSTEM).write_text(to_toml(system), encoding="utf-8")
    about = {
        "format": FORMAT,
        "version": VERSION,
        "system": system.name,
        "profile": profile.name,
        "vocabulary": len(subwords),
    }
    (folder / DESCRIPTION).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    subwords.save(folder)


def load_model(folder: Path | str) -> Loaded:
    """Open a model folder, ready to write headlines, on the CPU."""
    folder = Path(folder)
    about = _read_description(folder)
    subwords = Subwords.load(folder)
    model = Seq2Seq(load(SystemConfig, folder / SYSTEM), len(subwords))
    path = folder / f"{WEIGHTS}.safetensors"
    try:
        model.load_state_dict(load_file(path))
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{path} cannot be read: {error}") from None
    except RuntimeError:
        raise ModelError(f"{path} does not hold the weights that {SYSTEM} describes") from None
    return Loaded(model.eval(), subwords, PROFILES[about["profile"]])


def _read_description(folder: Path) -> dict[str, Any]:
    path = folder / DESCRIPTION
    try:
        about = json.loads(path.read_bytes())
    except OSError as error:
        raise ModelError(
            f"{folder} is not a model folder: {DESCRIPTION}: {error.strerror}"
        ) from None
    except ValueError:
        raise ModelError(f"{path} is damaged") from None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise ModelError(f"{path} does not describe a model of ledeline")
    if about.get("version") != VERSION or about.get("profile") not in PROFILES:
        raise ModelError(
            f"{path} has format version {about.get('version')} and profile {about.get('profile')}, "
            f"and this ledeline reads version {VERSION} with " + " or ".join(PROFILES)
        )
    return about
