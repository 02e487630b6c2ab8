"""The systems put together: EncDec, and the add-ons at their places.

An add-on plugs in at one of these and knows no other:

- encoder states -> `gate` -> encoder states;
- `heads` on z_j beside the output layer, each with the steps it needs and a loss of its own.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol
from zlib import crc32

import numpy as np
import torch
from torch import Tensor, nn

from ledeline.config import SystemConfig
from ledeline.core.shuffle import random_keys
from ledeline.data.dataset import Batch, Ids
from ledeline.model.addons.sgate import SelectiveGate
from ledeline.model.addons.spm import SourcePrediction
from ledeline.model.layers.attention import Attention, Memory
from ledeline.model.layers.decoder import Decoder, State
from ledeline.model.layers.dropout import Dropout
from ledeline.model.layers.encoder import Encoded, Encoder
from ledeline.model.loss import summed, token_losses
from ledeline.model.pairs import Pairs


class Head(Protocol):
    """What an add-on on z_j has."""

    @property
    def name(self) -> str:
        """What its loss is called in reports."""

    def num_steps(self, source_lengths: Ids, headline_lengths: Ids) -> Ids:
        """Steps of the decoder it needs for each pair; longer sides never need fewer."""

    def loss(self, attentional: Tensor, pairs: Pairs) -> Tensor:
        """Its loss of each pair, (B,)."""


@dataclass(frozen=True)
class Losses:
    """What a batch costs, pair by pair. All (B,)."""

    target: Tensor  # l_trg, over all steps that count
    headline: Tensor  # its part of the headline and <eos> alone: what systems are compared by
    heads: dict[str, Tensor]  # of each head, l_src of the SPM under "source"

    def total(self) -> Tensor:
        """What training minimises, for each pair."""
        return torch.stack([self.target, *self.heads.values()]).sum(0)


class Trace(NamedTuple):
    """Known headlines, as the model sees them."""

    attentional: Tensor  # (B, J, H): z_j
    attention: Tensor  # (B, J, I): alpha_j
    log_probabilities: Tensor  # (B, J): log o_j[y_j]


class EncDec(nn.Module):
    """A system: sources in, headlines out."""

    def __init__(self, config: SystemConfig, vocabulary: int, seed: int = 0) -> None:
        super().__init__()
        sizes = config.model
        d, h, layers = sizes.embedding_size, sizes.hidden_size, sizes.layers
        self.config, self.vocabulary = config, vocabulary
        self.dropout = Dropout(sizes.dropout)
        self.encoder = Encoder(vocabulary, d, h, layers, self.dropout)
        self.gate = SelectiveGate(h) if config.gate.enabled else None
        self.decoder = Decoder(vocabulary, d, h, layers, Attention(h), self.dropout)
        self.output = nn.Linear(h, vocabulary)  # W_o, b_o
        self.spm = SourcePrediction(vocabulary, h, config.spm.c) if config.spm.enabled else None
        _initialise(self, seed)

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return self.output.weight.device

    @property
    def heads(self) -> tuple[Head, ...]:
        """The add-ons on z_j."""
        return (self.spm,) if self.spm is not None else ()

    # --- training and analysis: headlines are known ------------------------------------------

    def pairs(self, batch: Batch) -> Pairs:
        """A batch as this system learns it, on its device.

        Its width is that of the whole batch also where this process has a share of it: so the dice
        of the dropout fall alike.
        """
        steps = self.num_steps(batch.source_lengths, batch.headline_lengths)
        widest = [np.array([side.shape[1]]) for side in (batch.sources, batch.headlines)]
        return Pairs.of(batch, steps, int(self.num_steps(*widest)[0]), self.device)

    def num_steps(self, source_lengths: Ids, headline_lengths: Ids) -> Ids:
        """Steps of the decoder for pairs of these lengths. (B,), (B,) -> (B,)."""
        steps = headline_lengths + 1
        for head in self.heads:
            steps = steps.clip(min=head.num_steps(source_lengths, headline_lengths))
        return steps

    def forward(self, pairs: Pairs) -> Losses:
        """The losses of each pair, whose mean is G_1 or, with the SPM, G_2 (Equation 12)."""
        attentional, _ = self._unroll(pairs)
        attentional = self.dropout(attentional)
        losses = token_losses(attentional, self.output, pairs.targets)
        return Losses(
            target=summed(losses, pairs.target_mask),
            headline=summed(losses.detach(), pairs.headline_mask),
            heads={head.name: head.loss(attentional, pairs) for head in self.heads},
        )

    def force(self, pairs: Pairs) -> Trace:
        """Go through known headlines, and say what was seen at each step."""
        attentional, attention = self._unroll(pairs)
        return Trace(attentional, attention, -token_losses(attentional, self.output, pairs.targets))

    def _unroll(self, pairs: Pairs) -> tuple[Tensor, Tensor]:
        state, memory = self.encode(pairs.sources, pairs.source_lengths, pairs.source_mask)
        return self.decoder.unroll(pairs.previous, state, memory)

    # --- inference: one step after another; no head has a part in it --------------------------

    def encode(
        self, sources: Tensor, lengths: Tensor | None = None, mask: Tensor | None = None
    ) -> tuple[State, Memory]:
        """Sources (B, I) -> the decoder's first state and what its attention looks at.

        Lengths (B,) and mask (B, I) are given where the sources are not all of one length.
        """
        encoded = self.encoder(sources, lengths)
        state = self.decoder.start(encoded)
        gated: Encoded = encoded if self.gate is None else self.gate(encoded)
        return state, self.decoder.attention.remember(gated.states, mask)

    def step(self, words: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        """y_{j-1} (B, K) -> `log o_j` (B, K, V), Equation 3, and the state behind the step."""
        state, _ = self.decoder.step(words, state, memory)
        return self.output(state.attentional).log_softmax(-1), state


def _initialise(model: EncDec, seed: int) -> None:
    """Weights uniform in +-0.1 by default; biases 0, but 1 in total at the forget gates.

    Each parameter has dice of its own, thrown from its name: what two systems share starts alike.
    """
    size, bound = model.config.model.hidden_size, model.config.model.init
    for name, parameter in model.named_parameters():
        dice = torch.Generator().manual_seed(int(random_keys(seed, crc32(name.encode()), 1)[0]))
        if parameter.dim() > 1:
            nn.init.uniform_(parameter, -bound, bound, generator=dice)
            continue
        nn.init.zeros_(parameter)
        is_lstm = name.startswith(("encoder.layers", "decoder.first", "decoder.upper"))
        if is_lstm and "bias_hh" not in name:  # torch's own LSTM adds two biases at each gate
            nn.init.ones_(parameter.data[size : 2 * size])
