"""The selective gate (sGate) of SEASS, Zhou et al. 2017: how much of each source state passes."""

import torch
from torch import Tensor, nn

from ledeline.config.engine_systems import SelectiveGateConfig as SelectiveGateConfig
from ledeline.model.addons.addon import Addon, Sizes
from ledeline.model.layers.encoder import Encoded


class SelectiveGate(Addon):
    """`g_i = sigmoid(W_g h_i + U_g s + b_g)`, `h'_i = h_i * g_i`, with `s = fwd_I + bwd_1`.

    SEASS concatenates the two ends of the sentence; our directions are summed. Attention sees the
    gated states; the decoder still starts from the ends, which stay ungated.
    """

    Config = SelectiveGateConfig
    capturable = True

    def __init__(self, config: SelectiveGateConfig, sizes: Sizes) -> None:
        super().__init__()
        self._initial_bias = config.initial_bias
        self.of_state = nn.Linear(sizes.states, sizes.states, bias=False)  # W_g
        self.of_sentence = nn.Linear(sizes.states, sizes.states)  # U_g, b_g

    def initialize_(self, generator: torch.Generator) -> None:  # noqa: ARG002
        """Open the gate as far as the configuration says."""
        nn.init.constant_(self.of_sentence.bias, self._initial_bias)

    def encoded(self, encoded: Encoded) -> Encoded:
        """The same with gated states."""
        return encoded._replace(states=encoded.states * self.gate_values(encoded))

    def gate_values(self, encoded: Encoded) -> Tensor:
        """g, from 0 (closed) to 1. (B, I, H)."""
        sentence = self.of_sentence(encoded.sentence)  # (B, H)
        return torch.sigmoid(self.of_state(encoded.states) + sentence.unsqueeze(1))
