"""Systems for tests, small and random."""

from typing import Any

import torch

from ledeline.model.addons.sgate import SelectiveGateConfig
from ledeline.model.addons.spm import SourcePredictionConfig
from ledeline.model.build import build
from ledeline.model.system_config import ADDON_CONFIGS, SystemConfig
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


def random_system(
    *names: str, system: Any = None, vocabulary: int = 11, seed: int = 3, std: float = 0.5
) -> Any:
    """A small system, EncDec if no other is given, with these add-ons and random weights."""
    own = system or EncDecConfig(embedding_size=3, hidden_size=4, dropout=0.0)
    config = SystemConfig(system=own, addons={name: ADDON_CONFIGS[name]() for name in names})
    model, generator = build(config, vocabulary), torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=std, generator=generator)
    return model.eval()
