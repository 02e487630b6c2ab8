"""Verifiers in PyTorch, for tests of the engine's."""

import json
from pathlib import Path

from ledeline.model.format.weights import read_weights
from ledeline.model.verifier import Verifier, VerifierShape


def verifier_in_torch(folder: Path) -> Verifier:
    """The verifier of a folder as PyTorch runs it."""
    shape = json.loads((folder / "verifier.json").read_text(encoding="utf-8"))["shape"]
    like = Verifier(VerifierShape(**shape)).state_dict()
    return Verifier.of(shape, read_weights(folder / "model.safetensors", like, "int8", {}))
