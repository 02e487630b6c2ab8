"""An add-on that follows attention in the simplest way, for tests of systems that pass it on."""

from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

from ledeline.config.section import section
from ledeline.model import addons as known_addons
from ledeline.model.addons.addon import Addon, AttentionStep, Sizes
from ledeline.model.layers.encoder import Encoded
from ledeline.model.system_config import ADDON_CONFIGS


@section
class FollowingConfig:
    """A vector more on keys that were looked at."""

    title: ClassVar[str] = "following"
    free: ClassVar[tuple[str, ...]] = ()


class Following(Addon):
    """`k_j[i] = k[i] + v sum_{n<j} alpha_n[i]`."""

    Config = FollowingConfig

    def __init__(self, config: FollowingConfig, sizes: Sizes) -> None:
        super().__init__()
        self.vector = nn.Parameter(torch.zeros(sizes.keys))
        self.query_size = sizes.queries

    def begin(self, encoded: Encoded, sources: Tensor, mask: Tensor | None) -> Tensor:
        return torch.zeros_like(encoded.states[..., 0]).unsqueeze(1)  # (B, 1, I)

    def attention_keys(self, extra: Any) -> Tensor:
        change: Tensor = extra.unsqueeze(-1) * self.vector
        return change

    def attended(self, extra: Any, step: AttentionStep) -> Any:
        assert step.queries.shape == (*step.weights.shape[:2], self.query_size)
        return extra + step.weights


def offer(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one more file in `model/addons` would bring it."""
    monkeypatch.setitem(known_addons.ADDONS, "following", Following)  # type: ignore[arg-type]
    monkeypatch.setitem(ADDON_CONFIGS, "following", FollowingConfig)
