"""The encoders of ABS: a bag of words, convolutions, attention (Rush et al. 2015).

Where paper and released code differ, this is the code. A source has `<s>` three times before it and
`</s>` three times after it, which are read like words; padding of a batch is never read.

Legend: B pairs, L source length with these ends, I without, K contexts of a source, C words of a
context, P size of what an encoder gives.
"""

from typing import Any, Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from ledeline.model.layers.encoder import embed
from ledeline.text.subwords import BOS, EOS

NUM_ENDS: Final = 3  # <s> before a source, and as many </s> after it
FILTER_WIDTH: Final = 5
POOL: Final = 2
# A source is filled up with zeros to this length: then the last convolution has one place.
SHORTEST: Final = POOL * (2 * (FILTER_WIDTH - 1) + 1) + FILTER_WIDTH - 1


class EndedSources(NamedTuple):
    """Sources between their ends."""

    ids: Tensor  # (B, L)
    mask: Tensor | None  # (B, L); None: all positions are valid


def with_ends(sources: Tensor, mask: Tensor | None) -> EndedSources:
    """Put `<s>` before sources (B, I), and `</s>` after the last word of each."""
    begin, end = (sources.new_full((len(sources), NUM_ENDS), symbol) for symbol in (BOS, EOS))
    ids = torch.cat([begin, sources, end], 1)
    if mask is None:
        return EndedSources(ids, None)
    stops = NUM_ENDS + mask.sum(1, keepdim=True)  # (B, 1): behind the last word
    places = torch.arange(ids.shape[1], device=ids.device)
    return EndedSources(ids.where(places < stops, EOS), places < stops + NUM_ENDS)


def contexts_embedded(contexts: Tensor, table: nn.Embedding) -> Tensor:
    """`[E y_{j-C}; ...; E y_{j-1}]` of each context. (B, K, C) -> (B, K, C D)."""
    return embed(contexts.flatten(1), table.weight).view(*contexts.shape[:2], -1)


def _read(source: EndedSources, table: nn.Embedding) -> Tensor:
    """`F x_i`, and 0 where a batch is padded. (B, L) -> (B, L, D)."""
    words = embed(source.ids, table.weight)
    return words if source.mask is None else words * source.mask.unsqueeze(-1)


class AbsEncoder(nn.Module):
    """What an encoder has; one that does not look at the context has a vector for a source."""

    def tables(self) -> list[nn.Embedding]:
        """The embeddings whose rows are kept short, see `AbsNnlm.start_epoch`."""
        return []

    def memory(self, source: EndedSources) -> Any:
        """What every context of a source needs: a tuple of tensors that begin with (B)."""
        raise NotImplementedError

    def forward(self, contexts: Tensor, memory: Any) -> Tensor:
        """Contexts (B, K, C) -> enc(x, y_c) (B, K, P)."""
        vector: Tensor = memory[0]  # (B, P)
        return vector.unsqueeze(1).expand(-1, contexts.shape[1], -1)

    def attention(
        self,
        contexts: Tensor,  # noqa: ARG002
        memory: Any,  # noqa: ARG002
    ) -> Tensor | None:
        """The weights of the words of a source alone, (B, K, I); None: it has no attention."""
        return None


class BagOfWordsEncoder(AbsEncoder):
    """`enc1 = W mean_i(F x_i) + b`. The released code leaves the rows of F as long as they are."""

    def __init__(self, vocabulary: int, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, size)  # F
        self.mix = nn.Linear(size, size)

    def memory(self, source: EndedSources) -> Any:
        """enc1, (B, P)."""
        total = _read(source, self.embedding).sum(1)  # (B, L, P) -> (B, P)
        if source.mask is None:
            return (self.mix(total / source.ids.shape[1]),)
        return (self.mix(total / source.mask.sum(1, keepdim=True)),)


class TimeDelayEncoder(AbsEncoder):
    """Three convolutions over the words, and the highest value of each filter.

    `a = relu(max_pool(Q1 * F x))`, `a' = relu(Q2 * a)`, `enc2 = W max_i((Q3 * a')_i) + b`.

    No convolution looks beyond the ends. A source shorter than `SHORTEST` is filled up with zeros.
    """

    def __init__(self, vocabulary: int, filters: int, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, filters)  # F
        self.layers = nn.ModuleList(nn.Conv1d(filters, filters, FILTER_WIDTH) for _ in range(3))
        self.mix = nn.Linear(filters, size)

    def tables(self) -> list[nn.Embedding]:
        """F."""
        return [self.embedding]

    def memory(self, source: EndedSources) -> Any:
        """enc2, (B, P)."""
        words = _read(source, self.embedding).transpose(1, 2)  # (B, L, F) -> (B, F, L)
        words = functional.pad(words, (0, max(0, SHORTEST - words.shape[-1])))
        first, second, third = self.layers
        below = functional.max_pool1d(first(words), POOL).relu()
        values = third(second(below).relu())  # (B, F, places)
        if source.mask is not None:
            values = values.masked_fill(~_valid(source.mask, values), float("-inf"))
        return (self.mix(values.amax(-1)),)


def _valid(mask: Tensor, values: Tensor) -> Tensor:
    """Which places of the last convolution are made of words and ends only. (B, 1, places).

    A place of any layer sees only places up to its own end in the layer below, so there is no need
    to mask in between.
    """
    lengths = mask.sum(1).clamp(min=SHORTEST)  # (B,)
    num_places = (lengths - FILTER_WIDTH + 1) // POOL - 2 * (FILTER_WIDTH - 1)
    places = torch.arange(values.shape[-1], device=values.device)
    return (places < num_places.unsqueeze(1)).unsqueeze(1)


class WindowSum(nn.Module):
    """`xb_i = w sum_{q=i-Q}^{i+Q} x_q + b`, with two learned numbers w and b."""

    def __init__(self, reach: int) -> None:
        super().__init__()
        self.reach = reach  # Q
        self.factor = nn.Parameter(torch.empty(1))  # w
        self.bias = nn.Parameter(torch.empty(1))  # b

    @torch.no_grad()
    def initialize_(self, generator: torch.Generator) -> None:  # noqa: ARG002
        """The mean of the window."""
        self.factor.fill_(1 / (2 * self.reach + 1))
        self.bias.zero_()

    def forward(self, values: Tensor) -> Tensor:
        """(B, L, P) -> (B, L, P); beyond both ends all is 0."""
        padded = functional.pad(values, (0, 0, self.reach, self.reach))
        windows = padded.unfold(1, 2 * self.reach + 1, 1)  # (B, L + 2 Q, P) -> (B, L, P, 2 Q + 1)
        return self.factor * windows.sum(-1) + self.bias


class WindowMemory(NamedTuple):
    """What attention of every context looks at."""

    words: Tensor  # (B, L, P): x_i
    windows: Tensor  # (B, L, P): xb_i
    mask: Tensor | None  # (B, L)


class WindowAttentionEncoder(AbsEncoder):
    """`p = softmax_i(x_i^T (P_m y'_c + b))`, `enc3 = W sum_i(p_i xb_i) + b`.

    x are the words of the source in F, xb are windows of them (`WindowSum`), y'_c is the context in
    an embedding G of its own.
    """

    def __init__(self, vocabulary: int, context: int, reach: int, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, size)  # F
        self.context_embedding = nn.Embedding(vocabulary, size)  # G
        self.query = nn.Linear(context * size, size)  # P_m
        self.window_sum = WindowSum(reach)
        self.mix = nn.Linear(size, size)

    def tables(self) -> list[nn.Embedding]:
        """F and G."""
        return [self.embedding, self.context_embedding]

    def memory(self, source: EndedSources) -> WindowMemory:
        """x, xb, and the mask."""
        words = _read(source, self.embedding)
        return WindowMemory(words, self.window_sum(words), source.mask)

    def forward(self, contexts: Tensor, memory: WindowMemory) -> Tensor:
        """Contexts (B, K, C) -> enc3 (B, K, P)."""
        weights = _masked(self._scores(contexts, memory), memory.mask).softmax(-1)
        mixed: Tensor = self.mix(weights @ memory.windows)  # (B, K, L) (B, L, P) -> (B, K, P)
        return mixed

    def attention(self, contexts: Tensor, memory: WindowMemory) -> Tensor | None:
        """The weights without the ends, which are no words of the source: the rest sums to 1."""
        own = slice(NUM_ENDS, -NUM_ENDS)
        mask = None if memory.mask is None else memory.mask[:, 2 * NUM_ENDS :]
        return _masked(self._scores(contexts, memory)[..., own], mask).softmax(-1)

    def _scores(self, contexts: Tensor, memory: WindowMemory) -> Tensor:
        """`x_i^T (P_m y'_c + b)`, (B, K, L)."""
        queries = self.query(contexts_embedded(contexts, self.context_embedding))
        scores: Tensor = queries @ memory.words.transpose(1, 2)  # (B, K, P) (B, P, L) -> (B, K, L)
        return scores


def _masked(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Scores (B, K, L) that are minus infinity where the mask (B, L) is not True."""
    return scores if mask is None else scores.masked_fill(~mask.unsqueeze(1), float("-inf"))
