"""The best candidates of a step: the definition, and faster ways to the same result.

Legend: B sources, K hypotheses of a source, V vocabulary, k candidates to select.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

import torch
from torch import Tensor

from ledeline.model.gpu import dispatch
from ledeline.search.hypotheses import TopK
from ledeline.search.recombination import recombine_

_BLOCK: Final = 16  # columns of a block, whose maximum is looked at first
_IMPOSSIBLE: Final = float("-inf")
_MAX_FUSED_K: Final = 128  # more do not fit into the registers of a GPU


class BannedWords(NamedTuple):
    """Words that must not be written at a step; the probabilities of others stay as they are."""

    words: Tensor  # their ids
    penalty: Tensor  # (V,): -inf for these words, 0 for others
    repeats: Tensor | None = None  # (B, K, N): further ids, for each hypothesis

    @classmethod
    def of(cls, words: Sequence[int], vocabulary: int, device: torch.device) -> Self:
        """Of word ids."""
        ids = torch.tensor(words, dtype=torch.long, device=device)
        return cls(ids, torch.zeros(vocabulary, device=device).index_fill_(0, ids, _IMPOSSIBLE))


def select_top_k(
    scores: Tensor,
    totals: Tensor,
    beam_sizes: Tensor,
    k: int,
    banned: BannedWords,
    bias: Tensor | None = None,
    groups: Tensor | None = None,
) -> TopK:
    """The best extensions of all hypotheses of each source: as many as its beam size, at most k.

    Scores (B, K, V) are log-probabilities, and are overwritten; with a bias (V,) they are logits,
    and `log_softmax(scores + bias)` is computed here. Totals (B, K), beam sizes (B,). With groups
    (B, K), of the extensions of a group by the same word only the best can be selected.
    """
    if groups is not None:
        scores, bias = _possible_logs(scores, bias, banned), None
        recombine_(scores, totals, groups)
    fits = totals.dtype == torch.float32 and k <= _MAX_FUSED_K
    if fits and dispatch.use_triton(scores, totals):
        from ledeline.model.gpu import top_k as fused

        banned_tensors = banned.penalty, banned.repeats
        return TopK(*fused.select_top_k(scores, totals, beam_sizes, k, *banned_tensors, bias))
    logs = _possible_logs(scores, bias, banned) if groups is None else scores
    values, indices = top_k(logs, totals, k)
    ranks = torch.arange(values.shape[1], device=values.device)
    values = values.masked_fill_(ranks >= beam_sizes.unsqueeze(1), _IMPOSSIBLE)
    return TopK(values, indices // logs.shape[-1], indices % logs.shape[-1])


def _possible_logs(scores: Tensor, bias: Tensor | None, banned: BannedWords) -> Tensor:
    """Log-probabilities, -inf where a word is banned. (B, K, V)."""
    logs = scores if bias is None else (scores + bias).log_softmax(-1)
    logs.index_fill_(-1, banned.words, _IMPOSSIBLE)
    if banned.repeats is not None:
        logs.scatter_(-1, banned.repeats, _IMPOSSIBLE)
    return logs


def top_k(logs: Tensor, totals: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k highest of `totals + logs` of each source: values and flat indices, both (B, k).

    Ranked by value, then by index. Logs (B, K, V), totals (B, K). The maxima of blocks of sixteen
    columns are computed first, and only the k best blocks are searched. Where values are equal that
    may be wrong, and everything is sorted instead.
    """
    k = min(k, logs.shape[1] * logs.shape[2])
    found = _top_k_of_blocks(logs, totals, k) if logs.shape[-1] >= _BLOCK**2 else None
    if found is not None:
        return found
    everything = (totals.unsqueeze(-1) + logs).flatten(1)
    values, indices = everything.sort(dim=1, descending=True, stable=True)
    return values[:, :k].clone(), indices[
        :, :k
    ].clone()  # clones: a view would keep all values in memory


def _top_k_of_blocks(logs: Tensor, totals: Tensor, k: int) -> tuple[Tensor, Tensor] | None:
    """As `top_k`, or None where values are equal. Block c has columns c, c + S, ..."""
    size, tail = divmod(logs.shape[-1], _BLOCK)
    maxima = logs[..., : _BLOCK * size].view(*logs.shape[:2], _BLOCK, size).amax(-2)  # (B, K, S)
    if tail:
        maxima[..., :tail] = maxima[..., :tail].maximum(logs[..., _BLOCK * size :])
    maxima = (maxima + totals.unsqueeze(-1)).flatten(1)
    blocks = maxima.topk(min(k, maxima.shape[1])).indices  # (B, k)
    parents, first = blocks // size, blocks % size
    columns = first.unsqueeze(-1) + size * torch.arange(_BLOCK + 1, device=logs.device)
    indices = parents.unsqueeze(-1) * logs.shape[-1] + columns.clamp(max=logs.shape[-1] - 1)
    values = logs.flatten(1).gather(1, indices.flatten(1)).view_as(columns)
    values = values + totals.gather(1, parents).unsqueeze(-1)
    values = values.masked_fill(columns >= logs.shape[-1], _IMPOSSIBLE).flatten(1)  # (B, 17 k)
    highest, positions = values.topk(k)
    if _has_equals(highest, values, maxima, blocks.shape[1]):
        return None
    return highest, indices.flatten(1).gather(1, positions)


def _has_equals(highest: Tensor, values: Tensor, maxima: Tensor, num_blocks: int) -> bool:
    """Whether equal values could change which are the highest, or their order."""
    possible = highest > _IMPOSSIBLE
    lowest = highest[:, -1:]
    unsure = ((highest[:, 1:] == highest[:, :-1]) & possible[:, 1:]).any(1)
    full = possible[:, -1]
    unsure |= full & ((values >= lowest).sum(1) > highest.shape[1])
    unsure |= full & ((maxima >= lowest).sum(1) > num_blocks)
    return bool(unsure.any())
