"""An add-on that changes attention, as attention sees it (`layers.attention.AttentionFollower`)."""

from typing import Any

from torch import Tensor

from ledeline.model.addons.addon import Addon, AttentionStep


class AddonFollower:
    """The add-on that changes attention, while a decoder takes its steps."""

    def __init__(self, addon: Addon, number: int, memory: Any, extras: tuple[Any, ...]) -> None:
        self._addon, self._number, self._values = addon, number, memory.states
        self.extras = extras

    def key_change(self) -> Tensor:
        """What is added to the keys at this step. (B, K, I, size of a key)."""
        return self._addon.attention_keys(self.extras[self._number])

    def score_change(self, queries: Tensor) -> Tensor:
        """What that adds to scores that are products `q . key`. (B, K, I)."""
        return self._addon.attention_scores(self.extras[self._number], queries)

    def attended(self, queries: Tensor, weights: Tensor) -> None:
        """Take note of a step."""
        step = AttentionStep(queries, weights, self._values)
        after = list(self.extras)
        after[self._number] = self._addon.attended(after[self._number], step)
        self.extras = tuple(after)
