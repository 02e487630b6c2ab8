"""The features of ABS+ (Rush et al. 2015) around any step model.

    score = lm * log p(y_{i+1}) + unigram * 1{y_{i+1} in x} + bigram * 1{y_i y_{i+1} in x}
          + trigram * 1{y_{i-1} y_i y_{i+1} in x}
          + order * 1{exists j < k: y_i = x_k, y_{i+1} = x_j} + length

Bigrams and trigrams are words that are neighbours in the source. <eos> has no features. <unk> does
not match: two words that are both unknown need not be the same.

Legend: B sources, K hypotheses, V vocabulary, I source length.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ledeline.config.extractive import ExtractiveWeights
from ledeline.search.step_model import StepModel
from ledeline.text.subwords import BOS, EOS, PAD


class FeatureCounts(NamedTuple):
    """How often each feature holds in a headline."""

    unigram: int
    bigram: int
    trigram: int
    order: int
    length: int


def feature_counts(source: Sequence[int], headline: Sequence[int]) -> FeatureCounts:
    """The features of a headline, both given by their ids; without <eos>."""
    words = [word for word in source if word > EOS]
    pairs, triples = set(_ngrams(source, 2)), set(_ngrams(source, 3))
    first = {word: source.index(word) for word in words}
    last = {word: place for place, word in enumerate(source)}
    two = list(pairwise(headline))
    return FeatureCounts(
        sum(word in first for word in headline),
        sum(pair in pairs for pair in two),
        sum(one in triples for one in _ngrams(headline, 3)),
        sum(a in first and b in first and first[b] < last[a] for a, b in two),
        len(headline),
    )


def _ngrams(ids: Sequence[int], size: int) -> list[tuple[int, ...]]:
    """The n-grams of ids without special ones."""
    grams = [tuple(ids[start : start + size]) for start in range(len(ids) - size + 1)]
    return [gram for gram in grams if min(gram) > EOS]


class ExtractiveState(NamedTuple):
    """The state of the inner model, and the word before the last one, (B, K)."""

    inner: Any
    previous: Tensor


class ExtractiveMemory(NamedTuple):
    """The memory of the inner model, and the source."""

    inner: Any
    source: Tensor  # (B, I): <pad> where nothing can match
    first: Tensor  # (B, I): the first place of the same word


class ExtractiveModel:
    """A step model whose scores have the features of ABS+."""

    def __init__(self, model: StepModel[Any, Any], weights: ExtractiveWeights) -> None:
        self._model, self._weights = model, weights

    @property
    def device(self) -> torch.device:
        """Where its tensors are."""
        return self._model.device

    @property
    def bonuses(self) -> ExtractiveWeights:
        """What is added to log-probabilities; with it, the cost of a hypothesis can fall."""
        return self._weights

    def encode(
        self, sources: Tensor, lengths: Tensor | None, mask: Tensor | None
    ) -> tuple[ExtractiveState, ExtractiveMemory]:
        """Sources (B, I) -> the state before the first step, and the memory."""
        state, memory = self._model.encode(sources, lengths, mask)
        special = sources <= EOS
        source = sources.masked_fill(special if mask is None else special | ~mask, PAD)
        first = (source.unsqueeze(2) == source.unsqueeze(1)).byte().argmax(-1)
        previous = torch.full((len(sources), 1), BOS, device=sources.device)
        return ExtractiveState(state, previous), ExtractiveMemory(memory, source, first)

    def step(
        self, words: Tensor, state: ExtractiveState, memory: ExtractiveMemory
    ) -> tuple[Tensor, ExtractiveState]:
        """The last words (B, K) -> scores (B, K, V), and the state after the step."""
        logs, inner = self._model.step(words, state.inner, memory.inner)
        weights = self._weights
        logs = logs if weights.lm == 1 else logs * weights.lm
        bonus = self._bonus(words, state.previous, memory).to(logs.dtype)  # (B, K, I)
        index = memory.source.unsqueeze(1).expand_as(bonus)
        # Places of the same word have the same bonus, so it does not matter which is written last.
        logs = logs.scatter(-1, index, logs.gather(-1, index) + bonus)
        if weights.length:
            end = logs[..., EOS].clone()
            logs = logs + weights.length
            logs[..., EOS] = end
        return logs, ExtractiveState(inner, words)

    def _bonus(self, last: Tensor, before: Tensor, memory: ExtractiveMemory) -> Tensor:
        """What is added to the word at each place of the source; 0 at <pad>. (B, K, I)."""
        source, weights = memory.source.unsqueeze(1), self._weights
        is_word = source != PAD
        at_last = (source == last.unsqueeze(-1)) & is_word  # (B, K, I)
        at_before = (source == before.unsqueeze(-1)) & is_word
        places = torch.arange(source.shape[-1], device=source.device)
        furthest = places.masked_fill(~at_last, -1).amax(-1, keepdim=True)  # last place of y_i
        bigram = _shifted(at_last)
        trigram = bigram & _shifted(_shifted(at_before))
        bonus = torch.full(at_last.shape, weights.unigram, dtype=torch.float64, device=last.device)
        for weight, holds in (
            (weights.bigram, bigram),
            (weights.trigram, trigram),
            (weights.order, places < furthest),
        ):
            if weight:
                bonus += weight * self._at_any_place(holds, memory)
        return bonus.masked_fill_(~is_word, 0)

    def _at_any_place(self, holds: Tensor, memory: ExtractiveMemory) -> Tensor:
        """Whether it holds at any place of the same word. (B, K, I)."""
        index = memory.first.unsqueeze(1).expand_as(holds)
        found = torch.zeros(holds.shape, dtype=torch.int32, device=holds.device)
        return found.scatter_reduce_(-1, index, holds.int(), "amax").gather(-1, index).double()


def _shifted(holds: Tensor) -> Tensor:
    """Whether it holds at the place before. (B, K, I)."""
    return torch.nn.functional.pad(holds[..., :-1], (1, 0))
