"""Search on ids: from sources to the headlines a model thinks best; knows nothing of text.

The shrinking beam of RNNsearch: each headline that ends leaves the beam and takes its place with
it; lengths are made up for after the search. What is written for a source does not depend on what
else is in its batch: candidates are ranked by (cost, place of the parent, word id), and no source
sees another.

Legend: B sources under way, K hypotheses side by side, V vocabulary, J words written so far.
"""

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from ledeline.config import SearchConfig
from ledeline.dataset import Ids
from ledeline.model import kernels
from ledeline.model.pairs import Sources
from ledeline.subword import BOS, EOS, PAD, UNK

STEPS_PER_SOURCE_TOKEN: Final = 2  # the limit of decoder steps, <eos> counted
_BLOCK: Final = 16  # columns that share a maximum while the best candidates are looked for
_IMPOSSIBLE: Final = float("-inf")

S = TypeVar("S")
M = TypeVar("M")


class Writer(Protocol[S, M]):
    """What search needs of a model.

    A state is tensors in tuples, however deep, that begin with (B, K), a memory such that begin
    with (B). What is no tensor there stays as it is.
    """

    @property
    def device(self) -> torch.device:
        """Where its tensors are."""

    def encode(
        self, sources: Tensor, lengths: Tensor | None, mask: Tensor | None, /
    ) -> tuple[S, M]:
        """Sources (B, I) -> the state before the first step, with K = 1, and what stays."""

    def step(self, words: Tensor, state: S, memory: M, /) -> tuple[Tensor, S]:
        """The words before (B, K) -> log-probabilities (B, K, V), and the state behind."""


class Found(NamedTuple):
    """A headline as search found it."""

    ids: tuple[int, ...]  # without <eos>
    cost: float  # -log p of all of it, <eos> counted
    truncated: bool = False  # the limit came before its end; <eos> is not in the cost

    @property
    def score(self) -> float:
        """Mean log-probability; what headlines of different length are compared by."""
        return -self.cost / max(1, len(self.ids) + (not self.truncated))


def search(
    model: Writer[Any, Any], sources: Ids, lengths: Ids, config: SearchConfig | None = None
) -> list[list[Found]]:
    """Write headlines for sources (B, I) with their lengths (B,): of each its n-best list.

    A list holds `n_best` headlines, or fewer where fewer came to an end within the limit; where
    none did, the cheapest beginning. It is empty only if no word at all was possible.
    """
    if not len(sources):
        return []
    beams = _Beams(model, sources, lengths, config or SearchConfig())
    with torch.inference_mode():
        while beams.under_way:
            beams.advance()
    return beams.found


def greedy(model: Writer[Any, Any], sources: Ids, lengths: Ids) -> list[list[int]]:
    """Write each headline with the likeliest word at every step: a beam of one. Ids alone."""
    found = search(model, sources, lengths, SearchConfig(beam=1))
    return [list(headlines[0].ids) if headlines else [] for headlines in found]


class _Beams:
    """The beams of a batch between two steps; sources that are done leave it."""

    def __init__(
        self, model: Writer[Any, Any], sources: Ids, lengths: Ids, config: SearchConfig
    ) -> None:
        self._model, self._config, device = model, config, model.device
        with torch.inference_mode():
            self._state, self._memory = model.encode(*Sources.of(sources, lengths, device))
        least = config.min_length + 1
        self._limits = [max(least, STEPS_PER_SOURCE_TOKEN * int(one)) for one in lengths]
        self._rows = list(range(len(sources)))  # which source each beam is of
        self._widths = [config.beam] * len(sources)  # k of each source
        self._words = torch.full((len(sources), 1), BOS, device=device)  # (B, K)
        self._totals = torch.zeros(self._words.shape, dtype=_dtype(self._state), device=device)
        self._prefixes = self._words[..., None][..., :0]  # (B, K, J)
        self._finished: list[list[Found]] = [[] for _ in sources]
        self._truncated: dict[int, Found] = {}

    @property
    def under_way(self) -> bool:
        """Whether any source is."""
        return bool(self._rows)

    @property
    def found(self) -> list[list[Found]]:
        """The n-best list of each source."""
        lists = []
        for row, finished in enumerate(self._finished):
            ranked = sorted(finished, key=lambda one: -one.score)  # stable: ties as they finished
            cut = [self._truncated[row]] if row in self._truncated else []
            lists.append(ranked[: self._config.n_best] or cut)
        return lists

    def advance(self) -> None:
        """Every hypothesis writes a word; headlines that end leave, and so do sources then done."""
        logs, self._state = self._model.step(self._words, self._state, self._memory)
        self._forbid(logs)
        totals, places = best(logs, self._totals, max(self._widths))
        parents, words = places // logs.shape[-1], places % logs.shape[-1]
        live = totals > _IMPOSSIBLE  # (B, K)
        if min(self._widths) < totals.shape[1]:
            ranks = torch.arange(totals.shape[1], device=totals.device)
            live &= ranks < torch.tensor(self._widths, device=totals.device)[:, None]
        ended = live & (words == EOS)
        if ended.any():
            self._finish(ended, totals, parents)
            live &= ~ended
        if live.all():
            counts = [live.shape[1]] * len(live)
        else:  # live ones to the front, as ranked
            counts, order = (
                live.sum(1).tolist(),
                live.byte().argsort(dim=1, descending=True, stable=True),
            )
            totals = totals.masked_fill(~live, _IMPOSSIBLE).gather(1, order)
            parents, words = parents.gather(1, order), words.gather(1, order)
        self._follow(counts, totals, parents, words)

    def _forbid(self, logs: Tensor) -> None:
        """Rule out words in place; the others keep their probabilities."""
        written = self._num_written
        for word in (PAD, BOS, UNK) if self._config.forbid_unknown else (PAD, BOS):
            logs[..., word] = _IMPOSSIBLE
        if written < self._config.min_length:
            logs[..., EOS] = _IMPOSSIBLE
        if self._config.block_ngrams:
            _block_ngrams(logs, self._prefixes, self._config.block_ngrams)
        if written == self._config.max_length:
            logs[..., :EOS] = _IMPOSSIBLE
            logs[..., EOS + 1 :] = _IMPOSSIBLE

    def _finish(self, ended: Tensor, totals: Tensor, parents: Tensor) -> None:
        """Move headlines that end to the finished ones, in the order of their rank."""
        for beam, rank in ended.nonzero().tolist():
            ids = self._prefixes[beam, int(parents[beam, rank])].tolist()
            found = Found(tuple(ids), -float(totals[beam, rank]))
            self._finished[self._rows[beam]].append(found)
            self._widths[beam] -= 1

    def _follow(self, counts: list[int], totals: Tensor, parents: Tensor, words: Tensor) -> None:
        """Go on with the live hypotheses of the sources that are not done."""
        before = self._prefixes.gather(1, parents[..., None].expand(-1, -1, self._num_written))
        prefixes = torch.cat([before, words[..., None]], -1)  # (B, K, J + 1)
        goes_on = []
        for beam, row in enumerate(self._rows):
            at_limit = self._limits[beam] <= prefixes.shape[-1]
            if at_limit and counts[beam]:
                ids, cost = tuple(prefixes[beam, 0].tolist()), -float(totals[beam, 0])
                self._truncated[row] = Found(ids, cost, truncated=True)
            if counts[beam] and not at_limit and not self._is_decided(beam, totals):
                goes_on.append(beam)
        num_live = max((counts[beam] for beam in goes_on), default=0)
        parents, words, totals = (one[:, :num_live] for one in (parents, words, totals))
        self._prefixes = prefixes[:, :num_live]
        if len(goes_on) < len(self._rows):
            beams = torch.tensor(goes_on, dtype=torch.long, device=totals.device)
            self._leave(goes_on, beams)
            parents, words, totals = parents[beams], words[beams], totals[beams]
            self._prefixes = self._prefixes[beams]
        else:
            beams = torch.arange(len(goes_on), device=totals.device)
        self._take_up(beams, parents)
        self._words, self._totals = words, totals

    @property
    def _num_written(self) -> int:
        return self._prefixes.shape[-1]

    def _leave(self, goes_on: list[int], beams: Tensor) -> None:
        """Keep nothing of the sources that are done but what was found."""
        self._memory = _mapped(self._memory, lambda leaf: leaf.index_select(0, beams))
        self._limits = [self._limits[beam] for beam in goes_on]
        self._widths = [self._widths[beam] for beam in goes_on]
        self._rows = [self._rows[beam] for beam in goes_on]

    def _take_up(self, beams: Tensor, parents: Tensor) -> None:
        """The state of each hypothesis is that of its parent, (B, K) numbers in these beams."""
        shape = parents.shape
        rows = (beams[:, None] * self._words.shape[1] + parents).flatten()  # of (B K) states
        self._state = _mapped(
            self._state,
            lambda leaf: leaf.flatten(0, 1).index_select(0, rows).view(*shape, *leaf.shape[2:]),
        )

    def _is_decided(self, beam: int, totals: Tensor) -> bool:
        """Whether no live hypothesis can come before the finished ones that will be given.

        Its cost cannot fall, and its length is at most the limit (Huang et al., 2017).
        """
        finished, config = self._finished[self._rows[beam]], self._config
        if not config.stop_early or len(finished) < config.n_best:
            return False
        longest = self._limits[beam]
        if config.max_length is not None:
            longest = min(longest, config.max_length + 1)
        hope = float(totals[beam, 0]) / longest
        return sorted((one.score for one in finished), reverse=True)[config.n_best - 1] >= hope


def best(logs: Tensor, totals: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k highest of `totals + logs`, of each source: values and flat places, both (B, k).

    Ranked by value, then by place. Logs (B, K, V), totals (B, K). Where C does not do it, a quick
    way takes the maximum of every sixteen columns first, and looks only into as many blocks as are
    wanted; where values are equal it may err, and everything is sorted instead.
    """
    k = min(k, logs.shape[1] * logs.shape[2])
    quick = kernels.best(logs, totals, k)
    if quick is None and logs.shape[-1] >= _BLOCK**2:
        quick = _best_of_blocks(logs, totals, k)
    if quick is not None:
        return quick
    everything = (totals.unsqueeze(-1) + logs).flatten(1)
    values, places = everything.sort(dim=1, descending=True, stable=True)
    return values[:, :k], places[:, :k]


def _best_of_blocks(logs: Tensor, totals: Tensor, k: int) -> tuple[Tensor, Tensor] | None:
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


def _block_ngrams(logs: Tensor, prefixes: Tensor, size: int) -> None:
    """Rule out words that would end an n-gram which the hypothesis has already."""
    written = prefixes.shape[-1]
    if written < size:
        return
    grams = prefixes.unfold(-1, size, 1)  # (B, K, J) -> (B, K, J - n + 1, n)
    last = prefixes[..., written - size + 1 :].unsqueeze(2)  # the n - 1 words before
    beams, places, where = (grams[..., :-1] == last).all(-1).nonzero(as_tuple=True)
    logs[beams, places, grams[beams, places, where, -1]] = _IMPOSSIBLE


# --- states and memories: tensors in tuples, however deep ---------------------------------------


def _mapped(tree: Any, change: Any) -> Any:
    if isinstance(tree, Tensor):
        return change(tree)
    if not isinstance(tree, tuple):
        return tree
    leaves = [_mapped(leaf, change) for leaf in tree]
    return type(tree)(*leaves) if hasattr(tree, "_fields") else tuple(leaves)


def _dtype(tree: Any) -> torch.dtype:
    """The widest floating type in a state, float32 at least: costs are summed in it."""
    if isinstance(tree, tuple):
        kinds = {_dtype(leaf) for leaf in tree}
        return torch.float64 if torch.float64 in kinds else torch.float32
    return torch.float64 if getattr(tree, "dtype", None) == torch.float64 else torch.float32


# --- several models as one ----------------------------------------------------------------------


class Ensemble:
    """Models that share a vocabulary, as one: the mean of their probabilities."""

    def __init__(self, models: Sequence[Writer[Any, Any]]) -> None:
        if not models:
            raise ValueError("an ensemble needs a model")
        self._models = tuple(models)

    @property
    def device(self) -> torch.device:
        """Where the tensors of all of them are."""
        return self._models[0].device

    def encode(
        self, sources: Tensor, lengths: Tensor | None, mask: Tensor | None
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The states of all, the memories of all."""
        encoded = [model.encode(sources, lengths, mask) for model in self._models]
        return tuple(state for state, _ in encoded), tuple(memory for _, memory in encoded)

    def step(
        self, words: Tensor, state: tuple[Any, ...], memory: tuple[Any, ...]
    ) -> tuple[Tensor, tuple[Any, ...]]:
        """The log of the mean probabilities, the states behind."""
        steps = [
            model.step(words, *each)
            for model, *each in zip(self._models, state, memory, strict=True)
        ]
        logs = torch.stack([log for log, _ in steps]).logsumexp(0)
        return logs - math.log(len(steps)), tuple(each for _, each in steps)
