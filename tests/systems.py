"""Systems for tests: EncDec with its add-ons, small and random."""

from typing import Any

from ledeline.model.addons.sgate import SelectiveGateConfig
from ledeline.model.addons.spm import SourcePredictionConfig
from ledeline.model.config import SystemConfig
from ledeline.model.systems.encdec import EncDecConfig


def addons(*, sgate: bool = False, spm: bool = False, c: float = 10.0) -> dict[str, Any]:
    """The sections of add-ons, for a configuration."""
    chosen: dict[str, Any] = {"sgate": SelectiveGateConfig()} if sgate else {}
    return chosen | ({"spm": SourcePredictionConfig(c=c)} if spm else {})


def encdec(
    *, sgate: bool = False, spm: bool = False, c: float = 10.0, **sizes: Any
) -> SystemConfig:
    """EncDec of these sizes with add-ons."""
    return SystemConfig(system=EncDecConfig(**sizes), addons=addons(sgate=sgate, spm=spm, c=c))
