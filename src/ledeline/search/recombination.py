"""Recombination: of hypotheses that end in the same words, only the best is kept.

A model that looks at its last C words only cannot tell such hypotheses apart, so whatever follows,
the best stays the best (Rush et al. 2015). Legend: B sources, K slots, V vocabulary.
"""

from typing import Final

import torch
from torch import Tensor

from ledeline.text.subwords import BOS

_IMPOSSIBLE: Final = float("-inf")


class LastWords:
    """The last C - 1 words of each hypothesis, filled from the left with <bos>."""

    def __init__(self, num_sources: int, context_size: int, device: torch.device) -> None:
        self._words = torch.full((num_sources, 1, context_size - 1), BOS, device=device)

    def groups(self) -> Tensor:
        """Of each hypothesis, the first slot with the same last words. (B, K)."""
        same = self._words.unsqueeze(2) == self._words.unsqueeze(1)  # (B, K, K, C - 1)
        return same.all(-1).byte().argmax(-1)

    def keep(self, beams: Tensor) -> None:
        """Keep the hypotheses of these beams."""
        self._words = self._words.index_select(0, beams)

    def extend(self, parents: Tensor, words: Tensor) -> None:
        """Replace each hypothesis by its parent, extended by a word. Both (B, K)."""
        index = parents.unsqueeze(-1).expand(-1, -1, self._words.shape[-1])
        grown = torch.cat([self._words.gather(1, index), words.unsqueeze(-1)], -1)
        self._words = grown[..., 1:]


def recombine_(logs: Tensor, totals: Tensor, groups: Tensor) -> None:
    """Rule out all extensions of a group by the same word but the best; of equals, the first slot.

    Logs (B, K, V) become -inf there; totals (B, K); groups (B, K) name the first slot of each.
    """
    if logs.device.type == "cpu":
        _recombine_on_cpu_(logs, totals, groups)
    else:  # a look at the groups would have to wait for the device
        logs.masked_fill_(_is_worse(logs, totals, groups), _IMPOSSIBLE)


def _recombine_on_cpu_(logs: Tensor, totals: Tensor, groups: Tensor) -> None:
    """The same, group by group: most hypotheses are alone in theirs."""
    live = totals > _IMPOSSIBLE
    for row, (own, is_live) in enumerate(zip(groups.tolist(), live.tolist(), strict=True)):
        by_group: dict[int, list[int]] = {}
        for slot, group in enumerate(own):
            if is_live[slot]:
                by_group.setdefault(group, []).append(slot)
        for slots in by_group.values():
            if len(slots) > 1:
                some = logs[row, slots]  # (N, V)
                candidates = totals[row, slots].unsqueeze(-1) + some
                is_best = candidates == candidates.amax(0)
                is_first = is_best & (is_best.cumsum(0, dtype=torch.int32) == 1)
                logs[row, slots] = some.masked_fill_(~is_first, _IMPOSSIBLE)


def _is_worse(logs: Tensor, totals: Tensor, groups: Tensor) -> Tensor:
    """Whether a better extension of the group, or an equal one before it, has the same word."""
    candidates = totals.unsqueeze(-1) + logs  # (B, K, V)
    index = groups.unsqueeze(-1).expand_as(candidates)
    best = torch.full_like(candidates, _IMPOSSIBLE)
    best = best.scatter_reduce_(1, index, candidates, "amax").gather(1, index)
    num_slots = groups.shape[1]
    slots = torch.arange(num_slots, dtype=torch.int32, device=logs.device).view(1, -1, 1)
    slots = slots.expand_as(candidates)
    at_best = slots.masked_fill(candidates < best, num_slots)
    first = torch.full_like(at_best, num_slots)
    first = first.scatter_reduce_(1, index, at_best, "amin").gather(1, index)
    return slots != first
