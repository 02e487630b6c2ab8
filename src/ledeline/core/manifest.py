"""Manifests: JSON that shows whether it was changed after it was written."""

import hashlib
import json
from typing import Any


def sealed(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest with a checksum of all that it says."""
    return manifest | {"checksum": _checksum(manifest)}


def is_unchanged(manifest: dict[str, Any]) -> bool:
    """Whether the manifest says what it said when it was sealed."""
    return manifest.get("checksum") == _checksum(manifest)


def _checksum(manifest: dict[str, Any]) -> str:
    rest = {key: value for key, value in manifest.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
