"""Word-frequency estimation (WFE), after Suzuki and Nagata 2017: an upper bound for each word.

Their abstract says that a part of the encoder estimates how often each word may be written at most,
and that the decoder is held to it. The method section could not be confirmed: the equations here
are a reconstruction, and this is not called a reproduction. The budget is of sub-words as the
vocabulary has them; an add-on knows ids only, so it cannot exempt pieces of words.
"""

from typing import Annotated, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from ledeline.config.section import above, at_least, below, section
from ledeline.model.addons.addon import Addon, Sizes, View
from ledeline.model.layers.encoder import Encoded
from ledeline.model.pairs import Pairs
from ledeline.text.subwords import BOS, EOS, PAD


@section
class WordFrequencyConfig:
    """Word-frequency estimation (WFE): no word is written more often than is estimated."""

    title: ClassVar[str] = "WFE"
    free: ClassVar[tuple[str, ...]] = ("weight",)  # keys that a run may change on its way

    size: Annotated[
        int, "K, of the estimator's hidden layers; 0: that of z_j.", at_least(0), below(2**16)
    ] = 0
    epsilon: Annotated[float, "Errors up to this cost nothing.", at_least(0)] = 0.25
    power: Annotated[float, "Larger errors cost this power of the rest.", at_least(1)] = 2.0
    over: Annotated[float, "c_1, the factor of an estimate too high.", at_least(0)] = 0.2
    under: Annotated[float, "c_2, the factor of an estimate too low.", at_least(0)] = 1.0
    weight: Annotated[float, "Factor of the loss.", above(0)] = 1.0


class Budget(NamedTuple):
    """What each hypothesis may still write. (B, K, V) both."""

    remaining: Tensor  # rt_j: r^ less what was written; inf for marks
    occurrence: Tensor  # g^; 1 for marks


class WordFrequency(Addon):
    """Estimates how often each word is written, and holds search to it.

    From the encoder's states, ungated, with K values in between (all layers have a bias):

    - frequency: `r^ = relu(W_2r sum_i (W_1r h_i + b_1r) + b_2r)`;
    - occurrence: `g^ = sigmoid(W_2g [max_i G_i; min_i G_i] + b_2g)`, `G_i = W_1g h_i + b_1g`;
    - estimate: `a^ = r^ g^`.

    The loss compares a^ with a*, the counts of the headline's words, where <eos> is left out:
    `sum_m over max(0, a^ - a* - epsilon)^power + under max(0, a* - a^ - epsilon)^power`.

    In search and traces, `log o_j + log(clip(rt_j, 0, 1) g^)` with `rt_1 = r^` and
    `rt_j = rt_{j-1} - onehot(y_{j-1})`. So a word is written `ceil(r^)` times at most. The marks
    <pad>, <bos> and <eos> are exempt: search never writes the first two, and <eos> stays possible
    where nothing else is.
    """

    Config = WordFrequencyConfig
    loss_name = "frequency"

    def __init__(self, config: WordFrequencyConfig, sizes: Sizes) -> None:
        super().__init__()
        self.config, size = config, config.size or sizes.hidden
        self.of_frequency = nn.Linear(sizes.states, size)  # W_1r, b_1r
        self.frequency = nn.Linear(size, sizes.vocabulary)  # W_2r, b_2r
        self.of_occurrence = nn.Linear(sizes.states, size)  # W_1g, b_1g
        self.occurrence = nn.Linear(2 * size, sizes.vocabulary)  # W_2g, b_2g

    def initialize_(self, generator: torch.Generator) -> None:  # noqa: ARG002
        """Start with about one of every word; with none, the ReLU would never learn."""
        nn.init.ones_(self.frequency.bias)

    def estimate(self, states: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """States h (B, I, H) and their mask (B, I) -> r^ and g^, both (B, V)."""
        frequency, occurrence = self.of_frequency(states), self.of_occurrence(states)  # (B, I, K)
        highest = lowest = occurrence
        if mask is not None:
            padding = ~mask.unsqueeze(-1)  # (B, I, 1)
            frequency = frequency.masked_fill(padding, 0.0)
            highest = occurrence.masked_fill(padding, float("-inf"))
            lowest = occurrence.masked_fill(padding, float("inf"))
        extremes = torch.cat([highest.amax(1), lowest.amin(1)], -1)  # (B, 2K)
        r_hat, g_hat = self.frequency(frequency.sum(1)).relu(), self.occurrence(extremes).sigmoid()
        dtype = torch.promote_types(r_hat.dtype, torch.float32)  # counts need it under autocast
        return r_hat.to(dtype), g_hat.to(dtype)

    # --- training ---------------------------------------------------------------------------------

    def loss(self, view: View, pairs: Pairs) -> Tensor:
        """The error of a^, of each pair. (B,)."""
        assert view.encoded is not None  # this is a loss
        r_hat, g_hat = self.estimate(view.encoded.states, pairs.source_mask)
        return self.config.weight * self.errors(r_hat * g_hat, counts_of(pairs, r_hat)).sum(-1)

    def errors(self, estimates: Tensor, counts: Tensor) -> Tensor:
        """What each word costs: a^ and a* -> d. (B, V)."""
        config, difference = self.config, estimates - counts
        over = (difference - config.epsilon).relu() ** config.power
        under = (-difference - config.epsilon).relu() ** config.power
        return config.over * over + config.under * under

    # --- search and traces ------------------------------------------------------------------------

    def begin(self, encoded: Encoded, sources: Tensor, mask: Tensor | None) -> Budget:  # noqa: ARG002
        """The whole budget, before anything is written. K = 1."""
        r_hat, g_hat = self.estimate(encoded.states, mask)
        marks = torch.tensor([PAD, BOS, EOS], device=r_hat.device)
        remaining = r_hat.index_fill(-1, marks, float("inf"))
        return Budget(remaining.unsqueeze(1), g_hat.index_fill(-1, marks, 1.0).unsqueeze(1))

    def search_scores(self, logs: Tensor, view: View, extra: Budget) -> tuple[Tensor, Budget]:
        """`log o_j + log(clip(rt_j, 0, 1) g^)`, -inf where nothing remains. (B, K, V)."""
        written = view.words.unsqueeze(-1)  # y_{j-1}: (B, K, 1)
        once = extra.remaining.new_full(written.shape, -1.0)
        remaining = extra.remaining.scatter_add(-1, written, once)
        share = remaining.clamp(0.0, 1.0) * extra.occurrence
        possible = share > 0
        costs = share.where(possible, 1.0).log()  # no log(0), whose gradient is infinite
        return (logs + costs).where(possible, float("-inf")), Budget(remaining, extra.occurrence)


def counts_of(pairs: Pairs, like: Tensor) -> Tensor:
    """`a*`: how often each word is in the headline; <eos> and padding do not count. (B, V)."""
    is_word = pairs.headline_mask & (pairs.targets != EOS)
    counts = torch.zeros_like(like)
    return counts.scatter_add(1, pairs.targets, is_word.to(like.dtype))
