"""The candidates that get the places of a step: the definition, and quicker ways to the same.

Legend: B sources, K hypotheses side by side, V vocabulary, k places.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

import torch
from torch import Tensor

from ledeline.model.gpu import dispatch
from ledeline.runtime import kernels
from ledeline.search.hypotheses import TopK

_BLOCK: Final = 16  # columns that share a maximum while the best candidates are looked for
_IMPOSSIBLE: Final = float("-inf")
_FUSED_PLACES: Final = 128  # more do not fit into the registers of a GPU


class Forbidden(NamedTuple):
    """Words that cannot be written at a step; the others keep their probabilities."""

    words: Tensor  # their ids
    allowed: Tensor  # (V,): the same as 0, or -inf for those words
    repeats: Tensor | None = None  # (B, K, N): ids that a hypothesis must not write beside them

    @classmethod
    def of(cls, words: Sequence[int], vocabulary: int, device: torch.device) -> Self:
        """Words by their ids, of a vocabulary."""
        ids = torch.tensor(words, dtype=torch.long, device=device)
        return cls(ids, torch.zeros(vocabulary, device=device).index_fill_(0, ids, _IMPOSSIBLE))


def select_top_k(
    scores: Tensor,
    totals: Tensor,
    widths: Tensor,
    k: int,
    forbidden: Forbidden,
    bias: Tensor | None = None,
) -> TopK:
    """Of all hypotheses and words, the best: of each source as many as it has places, k at most.

    Scores (B, K, V) are log-probabilities, and used up; with a bias (V,), their softmax is still to
    come, and the bias is added before. Totals (B, K), widths (B,).
    """
    fits = totals.dtype == torch.float32 and k <= _FUSED_PLACES
    if fits and dispatch.use_triton(scores, totals):
        from ledeline.model.gpu import top_k as fused

        rules = forbidden.allowed, forbidden.repeats
        return TopK(*fused.select_top_k(scores, totals, widths, k, *rules, bias))
    logs = scores if bias is None else (scores + bias).log_softmax(-1)
    logs.index_fill_(-1, forbidden.words, _IMPOSSIBLE)
    if forbidden.repeats is not None:
        logs.scatter_(-1, forbidden.repeats, _IMPOSSIBLE)
    values, places = top_k(logs, totals, k)
    ranks = torch.arange(values.shape[1], device=values.device)
    values = values.masked_fill_(ranks >= widths.unsqueeze(1), _IMPOSSIBLE)
    return TopK(values, places // logs.shape[-1], places % logs.shape[-1])


def top_k(logs: Tensor, totals: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k highest of `totals + logs`, of each source: values and flat places, both (B, k).

    Ranked by value, then by place. Logs (B, K, V), totals (B, K). Where C does not do it, a quick
    way takes the maximum of every sixteen columns first, and looks only into as many blocks as are
    wanted; where values are equal it may err, and everything is sorted instead.
    """
    k = min(k, logs.shape[1] * logs.shape[2])
    quick = kernels.top_k(logs, totals, k)
    if quick is None and logs.shape[-1] >= _BLOCK**2:
        quick = _top_k_of_blocks(logs, totals, k)
    if quick is not None:
        return quick
    everything = (totals.unsqueeze(-1) + logs).flatten(1)
    values, places = everything.sort(dim=1, descending=True, stable=True)
    return values[:, :k].clone(), places[:, :k].clone()  # and nothing of all the others


def _top_k_of_blocks(logs: Tensor, totals: Tensor, k: int) -> tuple[Tensor, Tensor] | None:
    """What `best` gives, or None where some values are equal. Block c has columns c, c + S, ..."""
    size, tail = divmod(logs.shape[-1], _BLOCK)
    maxima = logs[..., : _BLOCK * size].view(*logs.shape[:2], _BLOCK, size).amax(-2)  # (B, K, S)
    if tail:
        maxima[..., :tail] = maxima[..., :tail].maximum(logs[..., _BLOCK * size :])
    maxima = (maxima + totals.unsqueeze(-1)).flatten(1)
    blocks = maxima.topk(min(k, maxima.shape[1])).indices  # (B, k)
    parents, first = blocks // size, blocks % size
    columns = first.unsqueeze(-1) + size * torch.arange(_BLOCK + 1, device=logs.device)
    places = parents.unsqueeze(-1) * logs.shape[-1] + columns.clamp(max=logs.shape[-1] - 1)
    values = logs.flatten(1).gather(1, places.flatten(1)).view_as(columns)
    values = values + totals.gather(1, parents).unsqueeze(-1)
    values = values.masked_fill(columns >= logs.shape[-1], _IMPOSSIBLE).flatten(1)  # (B, 17 k)
    highest, where = values.topk(k)
    if _has_equals(highest, values, maxima, blocks.shape[1]):
        return None
    return highest, places.flatten(1).gather(1, where)


def _has_equals(highest: Tensor, values: Tensor, maxima: Tensor, num_blocks: int) -> bool:
    """Whether the order of the highest, or what belongs to them, hangs on equal values."""
    possible = highest > _IMPOSSIBLE
    lowest = highest[:, -1:]
    unsure = ((highest[:, 1:] == highest[:, :-1]) & possible[:, 1:]).any(1)
    full = possible[:, -1]
    unsure |= full & ((values >= lowest).sum(1) > highest.shape[1])
    unsure |= full & ((maxima >= lowest).sum(1) > num_blocks)
    return bool(unsure.any())
