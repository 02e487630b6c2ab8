"""Beam search for a batch of sources, step by step.

All that a step needs is on the model's device: for each source its hypotheses in ranked slots,
their log-probabilities so far (-inf in an empty slot), and its beam size. Only the state of the
model is copied from step to step. What each step selected is kept, and at the end headlines are
read from it, from their last words backwards. So a GPU need not wait for the host, which checks
only every few steps which sources are finished.

Legend: B sources that are not finished, K slots, V vocabulary, J words written so far.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ledeline.config import BadValue, SearchConfig
from ledeline.data.dataset import Ids
from ledeline.model.pairs import Sources
from ledeline.search.finished_beam import FinishedBeam, survivors
from ledeline.search.hypotheses import Step, TopK, read_hypotheses
from ledeline.search.hypothesis import Hypothesis
from ledeline.search.recombination import LastWords
from ledeline.search.step_limit import max_steps
from ledeline.search.step_model import (
    FallingCosts,
    Scorer,
    StepModel,
    cost_dtype,
    map_tensors,
)
from ledeline.search.top_k import BannedWords, select_top_k
from ledeline.text.subwords import BOS, EOS, PAD, UNK

_IMPOSSIBLE: Final = float("-inf")


class Compaction(NamedTuple):
    """When finished sources are removed from the batch."""

    interval: int  # steps between two checks by the host
    live_share: float  # they are removed if at most this share of the sources is not finished


# On a CPU a check costs nothing, and fewer rows save time. A GPU would have to wait for the host.
COMPACTIONS: Final = {"cpu": Compaction(1, 1.0), "cuda": Compaction(8, 0.75)}


def search(
    model: StepModel[Any, Any], sources: Ids, lengths: Ids, config: SearchConfig | None = None
) -> list[list[Hypothesis]]:
    """The n-best list of each source; sources (B, I), their lengths (B,).

    A list has `n_best` headlines, or fewer where fewer ended within the limit of steps. Where none
    did, it has the best unfinished one. It is empty only if no word at all was possible.
    """
    if not len(sources):
        return []
    running = BeamSearch(model, sources, lengths, config)
    while running.running:
        running.step()
    return running.hypotheses


def greedy(model: StepModel[Any, Any], sources: Ids, lengths: Ids) -> list[list[int]]:
    """The ids of the headlines with the likeliest word at every step: a beam of one."""
    hypotheses = search(model, sources, lengths, SearchConfig(beam=1))
    return [list(headlines[0].ids) if headlines else [] for headlines in hypotheses]


class BeamSearch:
    """A search that is carried on step by step, and can be given up between two steps.

    Making one encodes the sources. With `forbidden`, some ids for each source, these are never
    written.
    """

    @torch.inference_mode()
    def __init__(
        self,
        model: StepModel[Any, Any],
        sources: Ids,
        lengths: Ids,
        config: SearchConfig | None = None,
        forbidden: Sequence[Sequence[int]] | None = None,
    ) -> None:
        config = config or SearchConfig()
        _refuse_early_stop(model, config)
        self._model, self._config, device = model, config, model.device
        self._scorer = model if isinstance(model, Scorer) else None
        self._state, self._memory = model.encode(*Sources.of(sources, lengths, device))
        self._forbidden = None if forbidden is None else _as_rows(forbidden, device)  # (B, N)
        self._all_max_steps: Ids = np.array([max_steps(int(one), config) for one in lengths])
        self._sources: Ids = np.arange(len(sources))  # the number of each beam's source
        self._all_beams = torch.arange(len(sources), device=device)
        self._max_steps = torch.from_numpy(self._all_max_steps).to(device)
        self._lowest_limit = self._all_max_steps.min()
        self._highest_limit = self._all_max_steps.max()
        self._beam_sizes = torch.full((len(sources),), config.beam_size, device=device)  # (B,)
        self._max_beam_size = config.beam_size
        self._words = torch.full((len(sources), 1), BOS, device=device)  # (B, K)
        self._totals = torch.zeros(self._words.shape, dtype=cost_dtype(self._state), device=device)
        self._prefixes = self._words[..., None][..., :0]  # (B, K, J); only for n-grams
        self._last_words = (
            LastWords(len(sources), config.recombine, device) if config.recombine else None
        )
        self._kept = (
            FinishedBeam.empty(len(sources), config.beam_size, device)
            if config.keep_finished
            else None
        )
        self._kept_history: list[FinishedBeam] = []  # as it was after each step
        shape = len(sources), config.n_best
        self._finished_scores = torch.full(shape, _IMPOSSIBLE, dtype=torch.float64, device=device)
        self._history: list[Step] = []
        self._banned_by_ids: dict[tuple[int, ...], BannedWords] = {}
        self._compaction = COMPACTIONS.get(device.type, COMPACTIONS["cuda"])
        self.running = True

    @property
    def hypotheses(self) -> list[list[Hypothesis]]:
        """The n-best list of each source; of one that was given up, whatever had ended."""
        if not self._history:
            return [[] for _ in self._all_max_steps]
        limits, number = self._all_max_steps, self._config.n_best
        ends = None if self._kept is None else survivors(self._history, self._kept_history)
        return read_hypotheses(self._history, limits, number, ends)

    @torch.inference_mode()
    def step(self) -> None:
        """Extend every hypothesis by a word, and take out finished ones."""
        selected = self._select()
        if self._kept is not None:
            self._kept, selected = self._kept.compete(selected, len(self._history))
        self._history.append(Step(self._sources, selected))
        totals = self._live_totals(selected)
        beams, counts = self._all_beams, None
        if len(self._history) % self._compaction.interval == 0:
            counts = (totals > _IMPOSSIBLE).sum(1).cpu().numpy()
            totals = self._compact_slots(totals, int(counts.max()))
        if self._kept is not None:
            self._kept_history.append(self._kept)
        if counts is not None:
            beams = self._drop_finished(counts)
        self.running = len(self._history) < self._highest_limit and totals.shape[1] > 0
        if self.running:
            self._reorder(beams, totals)

    @torch.inference_mode()
    def give_up(self, sources: Collection[int]) -> None:
        """Search no further for these sources, given by number; their memory is released."""
        stay = np.flatnonzero(~np.isin(self._sources, list(sources)))
        if not self.running or len(stay) == len(self._sources):
            return
        if not len(stay):
            self.running = False
            self._state = self._memory = None
            return
        beams = self._keep(stay)
        self._state = map_tensors(self._state, lambda leaf: leaf.index_select(0, beams))
        self._words, self._totals, self._prefixes = (
            one.index_select(0, beams) for one in (self._words, self._totals, self._prefixes)
        )
        if self._last_words is not None:
            self._last_words.keep(beams)

    # --- a step -------------------------------------------------------------------------------

    def _select(self) -> TopK:
        """The best candidates of each source."""
        inputs = self._words, self._state, self._memory
        bias = None
        if self._scorer is not None:
            (scores, self._state), bias = self._scorer.score(*inputs), self._scorer.bias
        else:
            scores, self._state = self._model.step(*inputs)
        banned = self._banned_words(scores.shape[-1])
        groups = None if self._last_words is None else self._last_words.groups()
        return select_top_k(
            scores, self._totals, self._beam_sizes, self._max_beam_size, banned, bias, groups
        )

    def _banned_words(self, vocabulary: int) -> BannedWords:
        """What must not be written at this step."""
        config, written = self._config, len(self._history)
        words: tuple[int, ...] = (PAD, BOS, UNK) if config.forbid_unknown else (PAD, BOS)
        if written < config.min_length:
            words = (*words, EOS)
        if written == config.max_length:
            words = (*range(EOS), *range(EOS + 1, vocabulary))
        if words not in self._banned_by_ids:
            self._banned_by_ids[words] = BannedWords.of(words, vocabulary, self._model.device)
        repeats = _repeats(self._prefixes, config.block_ngrams) if config.block_ngrams else None
        if self._forbidden is not None:
            own = self._forbidden.unsqueeze(1).expand(-1, self._words.shape[1], -1)
            repeats = own if repeats is None else torch.cat([repeats, own], -1)
        return self._banned_by_ids[words]._replace(repeats=repeats)

    def _live_totals(self, selected: TopK) -> Tensor:
        """The totals of unfinished hypotheses, else -inf.

        Each that ends makes the beam smaller, unless finished ones compete with the others.
        """
        ended = (selected.words == EOS) & (selected.totals > _IMPOSSIBLE)
        if self._kept is None:
            self._beam_sizes = self._beam_sizes - ended.sum(1)
        done = ended
        if len(self._history) >= self._lowest_limit:
            done = ended | (self._max_steps <= len(self._history)).unsqueeze(1)
        totals = selected.totals.masked_fill(done, _IMPOSSIBLE)
        if self._config.stop_early:
            ends = selected.totals.masked_fill(~ended, _IMPOSSIBLE).double() / len(self._history)
            scores = torch.cat([self._finished_scores, ends], 1)
            self._finished_scores = scores.topk(self._config.n_best).values
            totals = totals.masked_fill(self._is_settled(totals), _IMPOSSIBLE)
        return totals

    def _is_settled(self, totals: Tensor) -> Tensor:
        """Whether no unfinished hypothesis can get into the n-best list any more. (B, 1).

        Its cost cannot fall, and its length is at most the limit (Huang et al., 2017).
        """
        upper_bounds = totals.double().amax(1) / self._max_steps
        last = self._finished_scores[:, -1]
        return ((last > _IMPOSSIBLE) & (last >= upper_bounds)).unsqueeze(1)

    # --- from step to step --------------------------------------------------------------------

    def _compact_slots(self, totals: Tensor, num_live: int) -> Tensor:
        """Move live hypotheses to the front, in their order, and drop slots that no source needs.

        (B, K) -> (B, num_live), the most that a source has.
        """
        if num_live == totals.shape[1]:
            return totals
        order = (totals == _IMPOSSIBLE).byte().argsort(dim=1, stable=True)
        sources, selected = self._history[-1]
        self._history[-1] = Step(sources, TopK(*(one.gather(1, order) for one in selected)))
        if self._kept is not None:
            self._kept = self._kept.moved(order, len(self._history) - 1)
        return totals.gather(1, order)[:, :num_live]

    def _drop_finished(self, counts: Ids) -> Tensor:
        """Remove sources without a live hypothesis, if these are enough; the beams that stay."""
        live, beams = np.flatnonzero(counts), self._all_beams
        if len(counts) > len(live) <= self._compaction.live_share * len(counts):
            beams = self._keep(live)
        self._max_beam_size = int(self._beam_sizes.cpu().numpy().max(initial=0))
        return beams

    def _keep(self, stay: Ids) -> Tensor:
        """Keep these beams in all that has no hypotheses; the beams as a tensor."""
        beams = torch.from_numpy(stay).to(self._all_beams.device)
        self._sources = self._sources[stay]
        self._memory = map_tensors(self._memory, lambda leaf: leaf.index_select(0, beams))
        self._max_steps, self._beam_sizes, self._finished_scores = (
            one.index_select(0, beams)
            for one in (self._max_steps, self._beam_sizes, self._finished_scores)
        )
        if self._forbidden is not None:
            self._forbidden = self._forbidden.index_select(0, beams)
        if self._kept is not None:
            self._kept = self._kept.kept(beams)
        self._highest_limit = self._all_max_steps[self._sources].max(initial=0)
        self._all_beams = self._all_beams[: len(stay)]
        return beams

    def _reorder(self, beams: Tensor, totals: Tensor) -> None:
        """Continue with the hypotheses of these beams; each gets the state of its parent."""
        _, parents, words = self._history[-1].selected
        if totals.shape != words.shape:
            parents, words = (one[:, : totals.shape[1]] for one in (parents, words))
        num_slots, prefixes = self._words.shape[1], self._prefixes
        if beams.shape[0] < words.shape[0]:
            parents, words, totals, prefixes = (
                one.index_select(0, beams) for one in (parents, words, totals, prefixes)
            )
            if self._last_words is not None:
                self._last_words.keep(beams)
        shape = words.shape
        rows = (beams.unsqueeze(1) * num_slots + parents).flatten()  # of (B K) states
        self._state = map_tensors(
            self._state,
            lambda leaf: leaf.flatten(0, 1).index_select(0, rows).view(*shape, *leaf.shape[2:]),
        )
        if self._config.block_ngrams:
            index = parents[..., None].expand(-1, -1, prefixes.shape[-1])
            prefixes = prefixes.gather(1, index)
            self._prefixes = torch.cat([prefixes, words[..., None]], -1)  # (B, K, J + 1)
        if self._last_words is not None:
            self._last_words.extend(parents, words)
        self._words, self._totals = words, totals


def _refuse_early_stop(model: StepModel[Any, Any], config: SearchConfig) -> None:
    """Refuse to stop early where no bound is known for the score of what is not finished."""
    if config.stop_early and isinstance(model, FallingCosts):
        raise BadValue(
            "stop_early",
            config.stop_early,
            "does not go with a model whose scores have extractive features, for they can rise",
        )


def _as_rows(ids: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """Lists of ids as rows (B, N), filled up with <pad>, which is banned anyway."""
    rows = torch.full((len(ids), max(map(len, ids), default=0)), PAD)
    for row, own in zip(rows, ids, strict=True):
        row[: len(own)] = torch.tensor(own, dtype=torch.long)
    return rows.to(device)


def _repeats(prefixes: Tensor, size: int) -> Tensor | None:
    """Words that would repeat an n-gram of the hypothesis. (B, K, J) -> (B, K, N).

    Where there are fewer than N, the rest is <pad>, which is banned anyway.
    """
    written = prefixes.shape[-1]
    if written < size:
        return None
    grams = prefixes.unfold(-1, size, 1)  # (B, K, J) -> (B, K, J - n + 1, n)
    last = prefixes[..., written - size + 1 :].unsqueeze(2)  # the last n - 1 words
    is_repeat = (grams[..., :-1] == last).all(-1)
    return grams[..., -1].masked_fill(~is_repeat, PAD)
