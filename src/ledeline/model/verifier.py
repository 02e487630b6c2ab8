"""The verifier: it says whether a lede supports a headline.

It stands on the generator. What the generator made of the lede (the values that its attention
mixes) and of the headline (its state before and after each sub-word, and how likely it held it)
are its inputs, so a headline that the generator has just written costs little to judge.

Most false headlines leave words out: "may", "deputy", "accused of", half a clause. So each
sub-word of the headline is aligned with the lede, and its input has what stands before, behind and
at that place, and the mean of what was skipped since the sub-word before.

Legend: B ledes, I their sub-words; N headlines, J their sub-words; G the size of the generator's
states, D that of the verifier's, H heads.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from ledeline.model.verifier_labels import KINDS, LABELS
from ledeline.text.subwords import PAD

_NUM_SCALARS: Final = 12
_LEAST_LOG: Final = -12.0  # log-probabilities below it are all the same
_MAX_SKIPPED: Final = 8  # skipped sub-words that count
_FAR: Final = 1e4  # further than any state


class VerifierShape(NamedTuple):
    """The sizes of a verifier."""

    vocabulary: int
    size: int = 192
    heads: int = 4
    layers: int = 2
    embedding_size: int = 64
    generator_size: int = 512


class PairView(NamedTuple):
    """N headlines of one lede, and what the generator made of them.

    Step j writes sub-word j; there is one more step, for <eos>.
    """

    source: Tensor  # (I,)
    values: Tensor  # (I, G): what attention mixes
    headlines: Tensor  # (N, J), padded with <pad>
    states: Tensor  # (N, J + 1, G): z_j
    logs: Tensor  # (N, J + 1): log-probabilities of what was written; 0 at padding

    @property
    def scores(self) -> Tensor:
        """The mean log-probability of each headline, <eos> counted. (N,)."""
        return self.logs.double().sum(1) / ((self.headlines != PAD).sum(1) + 1)


class VerifierBatch(NamedTuple):
    """Some ledes and all of their headlines, padded."""

    sources: Tensor  # (B, I)
    values: Tensor  # (B, I, G)
    rows: Tensor  # (N,): the lede of each headline
    headlines: Tensor  # (N, J)
    states: Tensor  # (N, J + 1, G)
    logs: Tensor  # (N, J + 1)

    @classmethod
    def of(cls, views: list[PairView]) -> Self:
        """Put together what was seen of some ledes."""
        longest = max(view.headlines.shape[1] for view in views)
        rows = [torch.full((len(view.headlines),), row) for row, view in enumerate(views)]

        def wide(one: Tensor, width: int) -> Tensor:
            return functional.pad(one, (0, 0) * (one.dim() - 2) + (0, width - one.shape[1]))

        return cls(
            nn.utils.rnn.pad_sequence([view.source for view in views], batch_first=True),
            nn.utils.rnn.pad_sequence([view.values for view in views], batch_first=True),
            torch.cat(rows),
            torch.cat([wide(view.headlines, longest) for view in views]),
            torch.cat([wide(view.states, longest + 1) for view in views]),
            torch.cat([wide(view.logs, longest + 1) for view in views]),
        )


class Judgement(NamedTuple):
    """What the verifier says of N headlines, before softmax and sigmoid."""

    labels: Tensor  # (N, 4), in the order of `LABELS`
    doubts: Tensor  # (N, J): whether the sub-word is part of an error
    kinds: Tensor  # (N, 10): the kind of error if there is one, in the order of `KINDS`


class Verifier(nn.Module):
    """Says of a headline beside its lede which label it would get, and which words are doubtful."""

    classes: Tensor  # (V,): sub-words of the same class are taken as the same word; 0 matches none

    def __init__(self, shape: VerifierShape, dropout: float = 0.0) -> None:
        super().__init__()
        self.shape = shape
        size, embedded, given = shape.size, shape.embedding_size, shape.generator_size
        self.register_buffer("classes", torch.zeros(shape.vocabulary))
        self.embedding = nn.Embedding(shape.vocabulary, embedded)
        nn.init.normal_(self.embedding.weight, std=0.1)
        # What a sub-word of the lede is: for attention, at, before and behind an aligned place,
        # and among skipped ones.
        self.lede, self.lede_word = nn.Linear(given, size), nn.Linear(embedded, size)
        self.at, self.before, self.behind, self.skipped = (nn.Linear(given, size) for _ in range(4))
        self.word_before, self.word_behind, self.words_skipped = (
            nn.Linear(embedded, size) for _ in range(3)
        )
        self.state_before, self.state_after = nn.Linear(given, size), nn.Linear(given, size)
        self.word, self.scalars = nn.Linear(embedded, size), nn.Linear(_NUM_SCALARS, size)
        self.lede_norm, self.norm = nn.LayerNorm(size), nn.LayerNorm(size)
        self.layers = nn.ModuleList(_VerifierLayer(shape, dropout) for _ in range(shape.layers))
        self.pool, self.label_output = nn.Linear(3 * size, size), nn.Linear(size, len(LABELS))
        self.doubt_output, self.kind_output = nn.Linear(size, 1), nn.Linear(size, len(KINDS))
        self.dropout = nn.Dropout(dropout)

    @classmethod
    def of(cls, shape: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Self:
        """A trained verifier."""
        made = cls(VerifierShape(**shape))
        made.load_state_dict(dict(weights))
        return made.eval()

    def forward(self, batch: VerifierBatch) -> Judgement:
        """Judge headlines beside their ledes."""
        sources, rows, headlines = batch.sources, batch.rows, batch.headlines
        values, embedded = self.dropout(batch.values), self.embedding(sources)
        memory = self.lede_norm(self.lede(values) + self.lede_word(embedded))  # (B, I, D)
        places = align(self.classes, sources[rows], headlines)
        states = self._inputs(batch, places, values, embedded)
        written = headlines != PAD
        mask = torch.cat([(sources != PAD)[rows], written], 1)[:, None, None, :]
        for layer in self.layers:
            states = layer(states, memory, rows, mask)
        return self._conclude(self.norm(states), written)

    def _inputs(
        self, batch: VerifierBatch, places: "Places", values: Tensor, embedded: Tensor
    ) -> Tensor:
        """What is known of each sub-word of the headlines. (N, J, D)."""
        rows, at = batch.rows, places.at
        is_aligned, lengths = at >= 0, (batch.sources != PAD).sum(1)[rows].unsqueeze(1)
        seen = self.dropout(batch.states)
        of_before = self.before(values) + self.word_before(embedded)  # (B, I, D)
        of_behind = self.behind(values) + self.word_behind(embedded)
        weight = places.num_skipped.clamp(max=_MAX_SKIPPED).sqrt().unsqueeze(-1)
        inputs = (
            self.state_before(seen[:, :-1])
            + self.state_after(seen[:, 1:])
            + self.word(self.embedding(batch.headlines))
            + _pick(self.at(values), rows, at, is_aligned)
            + _pick(of_behind, rows, at + 1, is_aligned & (at + 1 < lengths))
            + _pick(of_before, rows, at - 1, is_aligned & (at > 0))
            + _mean_skipped(self.skipped(values), rows, places)
            + self.words_skipped(_mean_skipped(embedded, rows, places) * weight)
            + self.scalars(_scalars(batch, places, lengths))
        )
        dropped: Tensor = self.dropout(inputs)
        return dropped

    def _conclude(self, states: Tensor, written: Tensor) -> Judgement:
        """The judgement from the last states (N, J, D); no <pad> is where written (N, J)."""
        absent = ~written.unsqueeze(-1)
        mean = states.masked_fill(absent, 0).sum(1) / written.sum(1, keepdim=True).clamp(min=1)
        highest = states.masked_fill(absent, -_FAR).amax(1)
        lowest = states.masked_fill(absent, _FAR).amin(1)
        pooled = functional.relu(self.pool(torch.cat([mean, highest, lowest], -1)))
        pooled = self.dropout(pooled)
        doubts = self.doubt_output(states).squeeze(-1)
        return Judgement(self.label_output(pooled), doubts, self.kind_output(pooled))


class _VerifierLayer(nn.Module):
    """Attention to the lede and the headline at once, and a feed-forward layer."""

    def __init__(self, shape: VerifierShape, dropout: float) -> None:
        super().__init__()
        size = shape.size
        self.heads = shape.heads
        self.attention_norm, self.hidden_norm = nn.LayerNorm(size), nn.LayerNorm(size)
        self.lede_key_value = nn.Linear(size, 2 * size)
        self.query_key_value, self.mix = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, memory: Tensor, rows: Tensor, mask: Tensor) -> Tensor:
        """States (N, J, D) beside the memory (B, I, D) of their ledes."""
        normed = self.attention_norm(states)
        queries, *own = _split_heads(self.query_key_value(normed), self.heads, 3)
        lede = (one[rows] for one in _split_heads(self.lede_key_value(memory), self.heads, 2))
        keys, values = (torch.cat(both, 2) for both in zip(lede, own, strict=True))
        seen = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        states = states + self.dropout(self.mix(seen.transpose(1, 2).flatten(2)))
        hidden = functional.relu(self.up(self.hidden_norm(states)))
        after: Tensor = states + self.dropout(self.down(hidden))
        return after


def _split_heads(values: Tensor, heads: int, parts: int) -> tuple[Tensor, ...]:
    """(N, J, parts D) -> so many parts (N, H, J, D / H)."""
    shape = *values.shape[:2], parts, heads, values.shape[2] // (parts * heads)
    return values.view(shape).permute(2, 0, 3, 1, 4).unbind(0)


# --- alignment ------------------------------------------------------------------------------------


class Places(NamedTuple):
    """Where the sub-words of headlines stand in their ledes. All (N, J)."""

    at: Tensor  # the place in the lede, or -1
    last: Tensor  # the place of the sub-word before that has one, or -1
    start: Tensor  # of what was skipped between the two
    stop: Tensor
    is_exact: Tensor  # whether the lede has the very sub-word there

    @property
    def num_skipped(self) -> Tensor:
        """How many sub-words of the lede were skipped."""
        return (self.stop - self.start).clamp(min=0) * (self.at >= 0)


def align(classes: Tensor, sources: Tensor, headlines: Tensor) -> Places:
    """Find each sub-word of the headlines (N, J) in their ledes (N, I), from left to right.

    Of several places the one right behind the last is best, then one where the next sub-word
    matches as well, then the nearest ahead.
    """
    lede_classes, own_classes = classes[sources], classes[headlines]
    same = (own_classes.unsqueeze(2) == lede_classes.unsqueeze(1)) & (own_classes > 0).unsqueeze(2)
    exact = headlines.unsqueeze(2) == sources.unsqueeze(1)  # (N, J, I)
    next_too = functional.pad(same[:, 1:, 1:], (0, 1, 0, 1))
    base = torch.where(same, 1.5 * next_too + 0.3 * exact, -_FAR)
    positions = torch.arange(sources.shape[1], device=sources.device)
    last = torch.full(sources.shape[:1], -1, device=sources.device)
    at, before = [], []
    for scores in base.unbind(1):
        distance = positions - last.unsqueeze(1) - 1
        ahead, back = 0.03 * distance.clamp(max=40), 0.6 - 0.01 * distance
        far = torch.where(distance < 0, back, ahead)
        best, place = (scores + 2.0 * (distance == 0) - far).max(1)
        found = best > -_FAR / 2
        before.append(last)
        at.append(torch.where(found, place, -1))
        last = torch.where(found, place, last)
    at_, last_ = torch.stack(at, 1), torch.stack(before, 1)
    forward = at_ > last_
    start, stop = torch.where(forward, last_, at_) + 1, torch.where(forward, at_, last_)
    is_exact = exact.gather(2, at_.clamp(min=0).unsqueeze(2)).squeeze(2) & (at_ >= 0)
    return Places(at_, last_, start, stop, is_exact)


def _pick(values: Tensor, rows: Tensor, places: Tensor, is_valid: Tensor) -> Tensor:
    """Values (B, I, D) at places (N, J) of their ledes, or 0. (N, J, D)."""
    picked = values[rows.unsqueeze(1), places.clamp(0, values.shape[1] - 1)]
    return picked * is_valid.unsqueeze(-1)


def _mean_skipped(values: Tensor, rows: Tensor, places: Places) -> Tensor:
    """The mean of the values (B, I, D) that were skipped before each sub-word, or 0. (N, J, D)."""
    sums = functional.pad(values.cumsum(1), (0, 0, 1, 0))
    number = places.num_skipped.unsqueeze(-1)
    limit, of_row = values.shape[1], rows.unsqueeze(1)
    total = sums[of_row, places.stop.clamp(0, limit)] - sums[of_row, places.start.clamp(0, limit)]
    return total / number.clamp(min=1) * (number > 0)


def _scalars(batch: VerifierBatch, places: Places, lengths: Tensor) -> Tensor:
    """Numbers about each sub-word: how it is aligned, where it stands, how likely it was."""
    is_aligned, distance = places.at >= 0, places.at - places.last
    skipped, shape = places.num_skipped, places.at.shape
    own_length = (batch.headlines != PAD).sum(1, keepdim=True).expand(shape)
    number = torch.arange(shape[1], device=places.at.device).expand(shape)
    logs = batch.logs.clamp(min=_LEAST_LOG) / 4
    features = (
        is_aligned,
        places.is_exact,
        (distance == 1) & is_aligned,
        (distance < 1) & is_aligned,
        skipped.float().log1p(),
        skipped > 0,
        places.at.clamp(min=0) / lengths,
        number / own_length.clamp(min=1),
        logs[:, :-1],
        logs[:, 1:],
        own_length / 20,
        lengths.expand(shape) / 40,
    )
    return torch.stack([one.to(batch.logs.dtype) for one in features], -1)
