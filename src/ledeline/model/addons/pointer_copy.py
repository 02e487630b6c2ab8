"""Copying from the source: the pointer-generator of See et al. 2017."""

from typing import ClassVar, Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from ledeline.config.section import section
from ledeline.model.addons.addon import Addon, Sizes, View
from ledeline.model.layers.encoder import embed

_SMALLEST: Final = 1e-12  # of a copied share, so that its logarithm is finite


@section
class PointerCopyConfig:
    """Copying from the source: the pointer-generator of See et al. 2017."""

    title: ClassVar[str] = "copy"
    free: ClassVar[tuple[str, ...]] = ()  # keys that a run may change on its way


class PointerCopy(Addon):
    """`P_j(w) = p_j o_j[w] + (1 - p_j) sum_{i: x_i = w} alpha_j[i]`, where attention points.

    `p_j = sigmoid(w_c c_j + w_s z_j + w_x E_t y_{j-1} + b)` says how much is generated, with
    `c_j = sum_i alpha_j[i] h_i` of what attention mixes. See et al. have the decoder's cell and
    state for our z_j, and for our E_t y_{j-1} the input merged with the context before. Sources and
    headlines share their sub-words, so the vocabulary has all that can be copied. As in their
    code, b starts at 0: at first half is generated, and both ways learn from the beginning.
    """

    Config = PointerCopyConfig
    needs_attention_gradient = True

    def __init__(self, config: PointerCopyConfig, sizes: Sizes) -> None:  # noqa: ARG002
        super().__init__()
        self.of_context = nn.Linear(sizes.states, 1, bias=False)  # w_c
        self.of_state = nn.Linear(sizes.hidden, 1, bias=False)  # w_s
        self.of_word = nn.Linear(sizes.embedding, 1)  # w_x, b

    def scores(self, scores: Tensor, view: View, extra: None) -> tuple[Tensor, None]:
        """Logits -> `log P_j`, whose softmax is P_j. (B, J or K, V)."""
        dtype = torch.promote_types(scores.dtype, torch.float32)  # also under autocast
        logs = scores.log_softmax(-1, dtype)
        gate = self.gate_logits(view).to(dtype)
        generated = functional.logsigmoid(gate) + logs
        copied = functional.logsigmoid(-gate) + copied_shares(logs, view).clamp(_SMALLEST).log()
        return torch.logaddexp(generated, copied), extra

    def gate_logits(self, view: View) -> Tensor:
        """What p_j is the sigmoid of. (B, J or K, 1)."""
        assert view.values is not None  # an attention system gives both
        assert view.embedding is not None
        contexts = view.attention @ view.values  # (B, J, I) (B, I, H) -> (B, J, H)
        words = self.of_word(embed(view.words, view.embedding))
        gate: Tensor = self.of_context(contexts) + self.of_state(view.states) + words
        return gate


def copied_shares(like: Tensor, view: View) -> Tensor:
    """`sum_{i: x_i = w} alpha_j[i]` of each word; padding has no attention. (B, J or K, V)."""
    places = view.sources.unsqueeze(1).expand_as(view.attention)  # (B, I) -> (B, J, I)
    return torch.zeros_like(like).scatter_add(-1, places, view.attention.to(like.dtype))
