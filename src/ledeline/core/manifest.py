"""Manifests: JSON with a checksum of its own content."""

import json
from typing import Any


def with_checksum(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest with a checksum of its content added."""
    return manifest | {"checksum": _checksum(manifest)}


def checksum_matches(manifest: dict[str, Any]) -> bool:
    """Whether the manifest still has the content that its checksum was made of."""
    return manifest.get("checksum") == _checksum(manifest)


def _checksum(manifest: dict[str, Any]) -> str:
    import hashlib  # takes its time

    rest = {key: value for key, value in manifest.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
