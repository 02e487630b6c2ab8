"""Word prediction (WP) of Weng et al. 2017: states must say which words the headline will have."""

import torch
from torch import Tensor, nn

from ledeline.config.engine_systems import WordPredictionConfig as WordPredictionConfig
from ledeline.model.addons.addon import Addon, Sizes, View
from ledeline.model.layers.additive_attention import AdditiveAttention
from ledeline.model.layers.encoder import Encoded
from ledeline.model.pairs import Pairs


class WordPrediction(Addon):
    """`WP_E + WP_D`, for a headline of n tokens, <eos> counted, in no order.

    - `WP_E = (1/n) sum_k -log P_E(y_k)`: all words from the encoded source;
    - `WP_D = (1/n) sum_j (1/(n-j+1)) sum_{k>=j} -log P_D(y_k | z_j)`: at step j the words that
      remain, y_j among them.

    They only train: search writes as without them. Both are means, while the headline's own loss
    is a sum over its steps.
    """

    Config = WordPredictionConfig
    loss_name = "words"

    def __init__(self, config: WordPredictionConfig, sizes: Sizes) -> None:
        super().__init__()
        self.weight = config.weight
        self.of_source = SourceWords(sizes) if config.encoder else None
        self.of_step = nn.Linear(sizes.hidden, sizes.vocabulary) if config.decoder else None

    def loss(self, view: View, pairs: Pairs) -> Tensor:
        """Of each pair. (B,)."""
        losses = []
        if self.of_source is not None:
            assert view.encoded is not None  # this is a loss
            logits = self.of_source(view.encoded, pairs.source_mask).unsqueeze(1)  # (B, 1, V)
            losses.append(_set_losses(logits, pairs.targets, pairs.headline_mask.unsqueeze(1)))
        if self.of_step is not None:
            logits = self.of_step(view.states)  # (B, J, V)
            losses.append(_set_losses(logits, pairs.targets, remaining_mask(pairs.headline_mask)))
        return self.weight * torch.stack(losses).sum(0)


class SourceWords(nn.Module):
    """`P_E = softmax(W_o tanh(W_s [s; c] + b_s) + b_o)`; s attends to c in the source.

    The sentence vector s stands for the decoder's first state: systems start from various things,
    and s is what all have. Attention is additive and its own.
    """

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.attention = AdditiveAttention(sizes.states, sizes.states, sizes.states)
        self.mix = nn.Linear(2 * sizes.states, sizes.hidden)  # W_s, b_s
        self.output = nn.Linear(sizes.hidden, sizes.vocabulary)  # W_o, b_o

    def forward(self, encoded: Encoded, mask: Tensor | None) -> Tensor:
        """The source, and its mask (B, I) -> the logits of P_E (B, V)."""
        sentence = encoded.sentence.unsqueeze(1)  # (B, 1, H)
        contexts, _ = self.attention(sentence, self.attention.memory_of(encoded.states, mask))
        mixed = torch.tanh(self.mix(torch.cat([sentence, contexts], -1)))
        logits: Tensor = self.output(mixed).squeeze(1)
        return logits


def remaining_mask(headline_mask: Tensor) -> Tensor:
    """Which words remain at each step of a headline: y_k with k >= j. (B, J) -> (B, J, J)."""
    steps, words = headline_mask.unsqueeze(2), headline_mask.unsqueeze(1)
    return (steps & words).triu()


def _set_losses(logits: Tensor, targets: Tensor, mask: Tensor) -> Tensor:
    """The mean over steps of the mean of `-log P_j(y_k)` over the words of the step's set. (B,).

    Logits (B, S, V), targets (B, J), the words of each set (B, S, J); a step without words is none.
    """
    logs = logits.log_softmax(-1, torch.promote_types(logits.dtype, torch.float32))
    words = targets.unsqueeze(1).expand_as(mask)  # (B, S, J)
    losses = -logs.gather(-1, words) * mask
    of_steps = losses.sum(-1) / mask.sum(-1).clamp(min=1)  # (B, S)
    return of_steps.sum(-1) / mask.any(-1).sum(-1)
