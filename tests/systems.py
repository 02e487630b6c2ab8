"""Systems for tests, small and random."""

from typing import Any

import pytest
import torch

from ledeline.config import SearchConfig
from ledeline.data.dataset import Batch, padded
from ledeline.model.addons.sgate import SelectiveGateConfig
from ledeline.model.addons.spm import SourcePredictionConfig
from ledeline.model.build import build
from ledeline.model.system_config import ADDON_CONFIGS, SYSTEM_CONFIGS, SystemConfig
from ledeline.model.systems.encdec import EncDecConfig
from ledeline.search import search

SMALL = {"embedding_size": 3, "hidden_size": 4}
OWN_SIZES = {"transformer": {"embedding_size": 4, "heads": 2, "encoder_layers": 2}}  # by system


def addons(*, sgate: bool = False, spm: bool = False, c: float = 10.0) -> dict[str, Any]:
    """The sections of add-ons, for a configuration."""
    chosen: dict[str, Any] = {"sgate": SelectiveGateConfig()} if sgate else {}
    return chosen | ({"spm": SourcePredictionConfig(c=c)} if spm else {})


def encdec(
    *, sgate: bool = False, spm: bool = False, c: float = 10.0, **sizes: Any
) -> SystemConfig:
    """EncDec of these sizes with add-ons."""
    return SystemConfig(system=EncDecConfig(**sizes), addons=addons(sgate=sgate, spm=spm, c=c))


def small_config(name: str, dropout: float = 0.0) -> Any:
    """The section of a small system."""
    return SYSTEM_CONFIGS[name](**(SMALL | OWN_SIZES.get(name, {}) | {"dropout": dropout}))


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


def assert_a_beam_carries_states_along(model: Any, sources: list[list[int]]) -> None:
    """Hypotheses are reordered, and sources leave the batch early: all is as alone, and forced."""
    config = SearchConfig(beam=4, n_best=3)
    together = search(model, *padded(sources), config)
    for source, found in zip(sources, together, strict=True):
        (alone,) = search(model, *padded([source]), config)
        assert [one.ids for one in found] == [one.ids for one in alone]
        for one in found:
            trace = model.trace(model.pairs(Batch.of([(source, list(one.ids))])))
            steps = len(one.ids) + (not one.truncated)
            forced = trace.log_probabilities[0, :steps].sum().item()
            assert -one.cost == pytest.approx(forced, abs=1e-9)
