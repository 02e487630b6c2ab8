"""The selective gate (sGate) of SEASS, Zhou et al. 2017: what of each source state goes on."""

import torch
from torch import Tensor, nn

from ledeline.model.layers.encoder import Encoded


class SelectiveGate(nn.Module):
    """`g_i = sigmoid(W_g h_i + U_g s + b_g)`, `h'_i = h_i * g_i`, with `s = fwd_I + bwd_1`.

    SEASS concatenates the two ends of the sentence; our directions are summed. The gated states
    attentional attention; the decoder still starts from the ends, which stay ungated.
    """

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.of_state = nn.Linear(hidden_size, hidden_size, bias=False)  # W_g
        self.of_sentence = nn.Linear(hidden_size, hidden_size)  # U_g, b_g

    def forward(self, encoded: Encoded) -> Encoded:
        """Encoded -> encoded, with gated states."""
        return encoded._replace(states=encoded.states * self.openness(encoded))

    def openness(self, encoded: Encoded) -> Tensor:
        """g, from 0 (closed) to 1. (B, I, H)."""
        sentence = self.of_sentence(encoded.ends[-1].hidden)  # (B, H)
        return torch.sigmoid(self.of_state(encoded.states) + sentence.unsqueeze(1))
