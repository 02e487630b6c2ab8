"""The beams of a batch, step after step.

All that a step needs lies on the device of the model: of each source its hypotheses in ranked
places, their totals (-inf in an empty place), and how many places it has. Nothing is copied from
step to step but the state of the model; what was kept at each step stays, and headlines are read
from it at the end, from their last words back. So a GPU need not wait for the host, which looks
only every few steps whether a source is still under way.

Legend: B sources under way, K places, V vocabulary, J words written so far.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ledeline.config import SearchConfig
from ledeline.data.dataset import Ids
from ledeline.model.pairs import Sources
from ledeline.search.hypotheses import Hypothesis, Step, TopK, read_hypotheses
from ledeline.search.step_model import Scorer, StepModel, cost_type, mapped
from ledeline.search.top_k import Forbidden, select_top_k
from ledeline.text.subwords import BOS, EOS, PAD, UNK

STEPS_PER_SOURCE_TOKEN: Final = 2  # the limit of decoder steps, <eos> counted
_IMPOSSIBLE: Final = float("-inf")


class Pace(NamedTuple):
    """How often the host looks, and when sources that are done leave the batch."""

    steps: int  # from look to look
    share: float  # of sources under way, at which the others leave


# On a CPU looking costs nothing, and any row that is spared is time. A GPU would wait.
PACES: Final = {"cpu": Pace(1, 1.0), "cuda": Pace(8, 0.75)}


def search(
    model: StepModel[Any, Any], sources: Ids, lengths: Ids, config: SearchConfig | None = None
) -> list[list[Hypothesis]]:
    """Write headlines for sources (B, I) with their lengths (B,): of each its n-best list.

    A list holds `n_best` headlines, or fewer where fewer came to an end within the limit; where
    none did, the cheapest beginning. It is empty only if no word at all was possible.
    """
    if not len(sources):
        return []
    with torch.inference_mode():
        beams = _Beams(model, sources, lengths, config or SearchConfig())
        while beams.under_way:
            beams.advance()
        return beams.found


def greedy(model: StepModel[Any, Any], sources: Ids, lengths: Ids) -> list[list[int]]:
    """Write each headline with the likeliest word at every step: a beam of one. Ids alone."""
    found = search(model, sources, lengths, SearchConfig(beam=1))
    return [list(headlines[0].ids) if headlines else [] for headlines in found]


class _Beams:
    """The beams of a batch between two steps; sources that are done leave it now and then."""

    def __init__(
        self, model: StepModel[Any, Any], sources: Ids, lengths: Ids, config: SearchConfig
    ) -> None:
        self._model, self._config, device = model, config, model.device
        self._scorer = model if isinstance(model, Scorer) else None
        self._state, self._memory = model.encode(*Sources.of(sources, lengths, device))
        self._all_limits = (STEPS_PER_SOURCE_TOKEN * lengths).clip(min=config.min_length + 1)
        self._rows: Ids = np.arange(len(sources))  # which source each beam is of
        self._beams = torch.arange(len(sources), device=device)
        self._limits = torch.from_numpy(self._all_limits).to(device)
        self._first_limit, self._last_limit = self._all_limits.min(), self._all_limits.max()
        self._widths = torch.full((len(sources),), config.beam, device=device)  # k of each source
        self._most_places = config.beam
        self._words = torch.full((len(sources), 1), BOS, device=device)  # (B, K)
        self._totals = torch.zeros(self._words.shape, dtype=cost_type(self._state), device=device)
        self._prefixes = self._words[..., None][..., :0]  # (B, K, J); only for n-grams
        shape = len(sources), config.n_best
        self._scores = torch.full(shape, _IMPOSSIBLE, dtype=torch.float64, device=device)
        self._steps: list[Step] = []
        self._rules: dict[tuple[int, ...], Forbidden] = {}
        self._pace = PACES.get(device.type, PACES["cuda"])
        self.under_way = True

    @property
    def found(self) -> list[list[Hypothesis]]:
        """The n-best list of each source."""
        return read_hypotheses(self._steps, self._all_limits, self._config.n_best)

    def advance(self) -> None:
        """Every hypothesis writes a word; headlines that end leave."""
        kept = self._kept()
        self._steps.append(Step(self._rows, kept))
        totals = self._live(kept)
        beams = self._beams
        if len(self._steps) % self._pace.steps == 0:
            counts = (totals > _IMPOSSIBLE).sum(1).cpu().numpy()
            totals, beams = self._close_up(totals, int(counts.max())), self._leave(counts)
        self.under_way = len(self._steps) < self._last_limit and totals.shape[1] > 0
        if self.under_way:
            self._follow(beams, totals)

    # --- a step -------------------------------------------------------------------------------

    def _kept(self) -> TopK:
        """The candidates that get the places."""
        given = self._words, self._state, self._memory
        bias = None
        if self._scorer is not None:
            (scores, self._state), bias = self._scorer.score(*given), self._scorer.bias
        else:
            scores, self._state = self._model.step(*given)
        forbidden = self._forbidden(scores.shape[-1])
        return select_top_k(scores, self._totals, self._widths, self._most_places, forbidden, bias)

    def _forbidden(self, vocabulary: int) -> Forbidden:
        """What cannot be written at this step."""
        config, written = self._config, len(self._steps)
        words: tuple[int, ...] = (PAD, BOS, UNK) if config.forbid_unknown else (PAD, BOS)
        if written < config.min_length:
            words = (*words, EOS)
        if written == config.max_length:
            words = (*range(EOS), *range(EOS + 1, vocabulary))
        if words not in self._rules:
            self._rules[words] = Forbidden.of(words, vocabulary, self._model.device)
        repeats = _repeats(self._prefixes, config.block_ngrams) if config.block_ngrams else None
        return self._rules[words]._replace(repeats=repeats)

    def _live(self, kept: TopK) -> Tensor:
        """The totals of what goes on. Headlines that end take their places with them."""
        ended = (kept.words == EOS) & (kept.totals > _IMPOSSIBLE)
        self._widths = self._widths - ended.sum(1)
        over = ended
        if len(self._steps) >= self._first_limit:
            over = ended | (self._limits <= len(self._steps)).unsqueeze(1)
        totals = kept.totals.masked_fill(over, _IMPOSSIBLE)
        if self._config.stop_early:
            ends = kept.totals.masked_fill(~ended, _IMPOSSIBLE).double() / len(self._steps)
            self._scores = torch.cat([self._scores, ends], 1).topk(self._config.n_best).values
            totals = totals.masked_fill(self._is_decided(totals), _IMPOSSIBLE)
        return totals

    def _is_decided(self, totals: Tensor) -> Tensor:
        """Whether no live hypothesis can come before the finished ones that will be given. (B, 1).

        Its cost cannot fall, and its length is at most the limit (Huang et al., 2017).
        """
        longest = self._limits
        if self._config.max_length is not None:
            longest = longest.clamp(max=self._config.max_length + 1)
        hopes = totals.double().amax(1) / longest
        last = self._scores[:, -1]
        return ((last > _IMPOSSIBLE) & (last >= hopes)).unsqueeze(1)

    # --- from step to step --------------------------------------------------------------------

    def _close_up(self, totals: Tensor, num_live: int) -> Tensor:
        """Live hypotheses move to the front, as ranked; places that no source needs are given up.

        (B, K) -> (B, the most that are live).
        """
        if num_live == totals.shape[1]:
            return totals
        order = (totals == _IMPOSSIBLE).byte().argsort(dim=1, stable=True)
        rows, kept = self._steps[-1]
        self._steps[-1] = Step(rows, TopK(*(one.gather(1, order) for one in kept)))
        return totals.gather(1, order)[:, :num_live]

    def _leave(self, counts: Ids) -> Tensor:
        """Let sources without a hypothesis leave, if it is worth it; the beams that stay."""
        goes_on, beams = np.flatnonzero(counts), self._beams
        if len(counts) > len(goes_on) <= self._pace.share * len(counts):
            beams = torch.from_numpy(goes_on).to(beams.device)
            self._rows = self._rows[goes_on]
            self._memory = mapped(self._memory, lambda leaf: leaf.index_select(0, beams))
            self._limits, self._widths, self._scores = (
                one.index_select(0, beams) for one in (self._limits, self._widths, self._scores)
            )
            self._last_limit = self._all_limits[self._rows].max(initial=0)
            self._beams = self._beams[: len(goes_on)]
        self._most_places = int(self._widths.cpu().numpy().max(initial=0))
        return beams

    def _follow(self, beams: Tensor, totals: Tensor) -> None:
        """Go on with the hypotheses of these beams; the state of each is that of its parent."""
        _, parents, words = self._steps[-1].kept
        if totals.shape != words.shape:
            parents, words = (one[:, : totals.shape[1]] for one in (parents, words))
        num_places, prefixes = self._words.shape[1], self._prefixes
        if beams.shape[0] < words.shape[0]:
            parents, words, totals, prefixes = (
                one.index_select(0, beams) for one in (parents, words, totals, prefixes)
            )
        shape = words.shape
        rows = (beams.unsqueeze(1) * num_places + parents).flatten()  # of (B K) states
        self._state = mapped(
            self._state,
            lambda leaf: leaf.flatten(0, 1).index_select(0, rows).view(*shape, *leaf.shape[2:]),
        )
        if self._config.block_ngrams:
            before = prefixes.gather(1, parents[..., None].expand(-1, -1, prefixes.shape[-1]))
            self._prefixes = torch.cat([before, words[..., None]], -1)  # (B, K, J + 1)
        self._words, self._totals = words, totals


def _repeats(prefixes: Tensor, size: int) -> Tensor | None:
    """Words that would end an n-gram which the hypothesis has already. (B, K, J) -> (B, K, N).

    Where there are fewer than N, <pad>, which is never possible.
    """
    written = prefixes.shape[-1]
    if written < size:
        return None
    grams = prefixes.unfold(-1, size, 1)  # (B, K, J) -> (B, K, J - n + 1, n)
    last = prefixes[..., written - size + 1 :].unsqueeze(2)  # the n - 1 words before
    again = (grams[..., :-1] == last).all(-1)
    return grams[..., -1].masked_fill(~again, PAD)
