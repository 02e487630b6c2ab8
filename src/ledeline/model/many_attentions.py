"""Systems with many attentions, one of which explains headlines."""

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import torch
from torch import Tensor

from ledeline.model.pairs import Pairs

if TYPE_CHECKING:
    from ledeline.model.system_config import SystemConfig


@runtime_checkable
class ManyAttentions(Protocol):
    """A system whose decoder attends to the source in several layers or heads.

    Both are counted from 1; head 0 is the mean of a layer's heads.
    """

    @property
    def device(self) -> torch.device:
        """Where its weights are."""

    @property
    def num_attentions(self) -> tuple[int, int]:
        """How many layers it has, and how many heads each of them."""

    def every_attention(self, pairs: Pairs) -> Tensor:
        """Teacher-force known headlines -> attention of all layers and heads, (B, L, h, J, I)."""

    def explained_by(self, layer: int, head: int) -> "SystemConfig":
        """Its configuration, but for the attention that explains headlines, which is this one."""
