"""Beam searches written plainly, one source and one hypothesis at a time, and models for them."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import strategies as st

from ledeline.config import SearchConfig
from ledeline.search import Hypothesis
from ledeline.text.subwords import BOS, EOS, PAD, UNK


class TableModel:
    """The next word depends on the last one alone, by a table for each first word of a source."""

    device = torch.device("cpu")

    def __init__(self, seed: int, vocabulary: int, num_levels: int | None = None) -> None:
        rng = np.random.default_rng(seed)
        logits = rng.normal(size=(vocabulary, vocabulary, vocabulary)) * 2
        logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        if num_levels is not None:  # many that are equal, and sums without rounding
            logs = -rng.integers(1, num_levels + 1, logs.shape) / 4.0
        self.logs = torch.from_numpy(logs)  # (first word of the source, last word, next word)

    def encode(self, sources: Any, lengths: Any, mask: Any) -> tuple[Any, Any]:
        return (torch.zeros(len(sources), 1, dtype=torch.float64),), (sources[:, 0],)

    def step(self, words: Any, state: Any, memory: Any) -> tuple[Any, Any]:
        return self.logs[memory[0].unsqueeze(1), words].clone(), state


class _Live(NamedTuple):
    words: tuple[int, ...]
    total: float
    state: Any


@torch.inference_mode()
def slow_search(model: Any, source: list[int], config: SearchConfig) -> list[Hypothesis]:
    """The n-best list of a source, by the rules of docs/search.md."""
    state, memory = model.encode(torch.tensor([source]), None, None)
    live, finished, size = [_Live((), 0.0, state)], [], config.beam_size
    limit = max(2 * len(source), config.min_length + 1)
    for step in range(limit):
        candidates = []
        for slot, one in enumerate(live):
            last = one.words[-1] if one.words else BOS
            logs, after = model.step(torch.tensor([[last]]), one.state, memory)
            for word, log in enumerate(logs.flatten().tolist()):
                if log > -np.inf and is_possible(one.words, word, config):
                    total = one.total + log
                    candidates.append((-total, slot, word, _Live((*one.words, word), total, after)))
        candidates.sort(key=lambda one: one[:3])
        best = recombined([one for *_, one in candidates], config.recombine or 0)[:size]
        if config.keep_finished:
            best = _best_of_all(finished, best, step + 1, config.beam_size)
            finished = [one for one in finished if one in best]
            best = [one for one in best if isinstance(one, _Live)]
        live = [one for one in best if one.words[-1] != EOS]
        finished += [Hypothesis(o.words[:-1], -o.total) for o in best if o.words[-1] == EOS]
        if not config.keep_finished:
            size = config.beam_size - len(finished)
        if not live:
            break
        if step == limit - 1 and not finished:
            return [Hypothesis(live[0].words, -live[0].total, truncated=True)]
    return sorted(finished, key=lambda one: -one.score)[: config.n_best]


def recombined(ranked: list[_Live], context: int) -> list[_Live]:
    """Of those with the same last words, the first."""
    if not context:
        return ranked
    kept: dict[tuple[int, ...], _Live] = {}
    for one in ranked:
        kept.setdefault(((BOS,) * context + one.words)[-context:], one)
    return list(kept.values())


def _best_of_all(finished: list[Any], extensions: list[Any], step: int, beam: int) -> list[Any]:
    scores = [one.score for one in finished] + [one.total / step for one in extensions]
    everything = finished + extensions
    ranked = sorted(range(len(everything)), key=lambda number: -scores[number])[:beam]
    return [everything[number] for number in sorted(ranked)]


def is_possible(words: tuple[int, ...], word: int, config: SearchConfig) -> bool:
    if word in (PAD, BOS) or (config.forbid_unknown and word == UNK):
        return False
    if word == EOS and len(words) < config.min_length:
        return False
    if config.max_length is not None and len(words) == config.max_length and word != EOS:
        return False
    n = config.block_ngrams
    grown = (*words, word)
    grams = [grown[i : i + n] for i in range(len(grown) - n + 1)] if n else []
    return not grams or grams[-1] not in grams[:-1]


def assert_alike(found: list[Hypothesis], expected: list[Hypothesis]) -> None:
    assert [one.ids for one in found] == [one.ids for one in expected]
    assert [one.truncated for one in found] == [one.truncated for one in expected]
    assert [one.cost for one in found] == pytest.approx([one.cost for one in expected], rel=1e-12)


def search_options(**more: Any) -> Any:
    """Options of all kinds, and more keys with their own strategies."""

    def made(n_best: int, extra: int | None, **keys: Any) -> SearchConfig:
        longest = None if extra is None else keys["min_length"] + extra
        return SearchConfig(n_best=min(n_best, keys["beam"]), max_length=longest, **keys)

    return st.builds(
        made,
        n_best=st.integers(1, 6),
        extra=st.none() | st.integers(0, 3),
        beam=st.integers(1, 6),
        min_length=st.integers(1, 4),
        **more,
    )
