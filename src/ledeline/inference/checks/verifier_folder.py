"""The folder of a verifier: `verifier.json` and its weights, in int8.

`verifier.json` has its shape and its calibration.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ledeline.core.errors import ModelError
from ledeline.inference.checks.calibration import Calibration
from ledeline.runtime.engine import EnginePrecision
from ledeline.runtime.tensor_file import read_tensors
from ledeline.runtime.verifier_engine import VerifierEngine

if TYPE_CHECKING:
    from ledeline.model.verifier import Verifier

FORMAT: Final = "ledeline-verifier"
_ABOUT, _WEIGHTS, _VERSION = "verifier.json", "model.safetensors", 1
_SIZES: Final = {"vocabulary", "size", "heads", "layers", "embedding_size", "generator_size"}


class VerifierBundle(NamedTuple):
    """What the folder holds."""

    verifier: VerifierEngine
    calibration: Calibration


def write_verifier(folder: Path, verifier: "Verifier", calibration: Calibration) -> None:
    """Write a verifier in int8."""
    from ledeline.model.format.weights import write_weights

    folder.mkdir(parents=True, exist_ok=True)
    about = {
        "format": FORMAT,
        "version": _VERSION,
        "shape": verifier.shape._asdict(),
        "calibration": calibration._asdict(),
    }
    write_weights(folder / _WEIGHTS, verifier.state_dict(), "int8", {})
    (folder / _ABOUT).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")


def read_verifier(folder: Path, precision: EnginePrecision = "int8") -> VerifierBundle:
    """Read a verifier, ready to judge."""
    about = _read_description(folder / _ABOUT)
    try:
        shape, calibration = dict(about["shape"]), Calibration(**about["calibration"])
    except (KeyError, TypeError, ValueError):
        raise ModelError(f"{folder / _ABOUT} is damaged") from None
    if not (_is_possible(shape) and _is_usable(calibration)):
        raise ModelError(f"{folder / _ABOUT} is damaged")
    path = folder / _WEIGHTS
    verifier = VerifierEngine(shape, read_tensors(path), precision, path=path)
    return VerifierBundle(verifier, calibration)


def _is_possible(shape: Mapping[str, Any]) -> bool:
    """Whether these are the sizes of a verifier; the engine knows how large they may be."""
    if set(shape) != _SIZES or not all(type(one) is int and one > 0 for one in shape.values()):
        return False
    return bool(shape["size"] % shape["heads"] == 0)


def _is_usable(calibration: Calibration) -> bool:
    *weights, caps = calibration
    return (
        all(map(_is_finite, weights))
        and isinstance(caps, dict)
        and all(_is_finite(cap) and 0 <= cap <= 1 for cap in caps.values())
    )


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def verifier_checksum(folder: Path) -> str:
    """The same for the same verifier, different for others."""
    whole = hashlib.sha256()
    for path in (folder / _ABOUT, folder / _WEIGHTS):
        try:
            whole.update(path.read_bytes())
        except OSError as error:
            raise ModelError(_missing(path, error)) from None
    return whole.hexdigest()


def _missing(path: Path, error: OSError) -> str:
    return f"{path}: {error.strerror}; the verifier is part of ledeline, install it again"


def _read_description(path: Path) -> dict[str, Any]:
    try:
        about: Any = json.loads(path.read_bytes())
    except OSError as error:
        raise ModelError(_missing(path, error)) from None
    except (ValueError, RecursionError):
        raise ModelError(f"{path} is damaged") from None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise ModelError(f"{path} does not describe a verifier of ledeline")
    if about.get("version") != _VERSION:
        version = about.get("version")
        raise ModelError(f"{path} has version {version}; this ledeline reads {_VERSION}")
    return about
