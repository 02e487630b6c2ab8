"""DRGD: a decoder with a latent variable at each step (Li, Lam, Bing and Wang 2017).

The paper and the code that its authors released differ: in the recurrence, in how the latent
variable is fused with the decoder's state, and in a deep output layer. Each is a key here. Both
give the posterior no look at the word that comes next, so training and search share it.

What is neither's: the first word read is <bos>, where the code has a vector of zeros, and sources
and headlines have embeddings of their own, where the code has one table. GRUs are torch's, which
apply the reset gate after the recurrent matrix. Noise is fresh at each step and update, where the
code draws it once for all; the code's KL, which is summed along another axis, weighs about 0.02 of
the one here.
"""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import torch
from torch import Tensor, nn

from ledeline.config.recipe import Recipe
from ledeline.config.section import SIZE, at_least, below, section
from ledeline.model.addons.addon import Sizes
from ledeline.model.attention_system import AttentionSystem, Begun, Unrolled
from ledeline.model.layers.dropout import Dropout
from ledeline.model.layers.encoder import Encoded, both_directions, embed
from ledeline.model.layers.latent_decoder import LatentDecoder, LatentDecoderSizes, fill_gates_

if TYPE_CHECKING:
    from ledeline.model.system_config import SystemConfig


@section
class DrgdConfig:
    """A GRU encoder and decoder, with a latent variable at each step of the decoder."""

    title: ClassVar[str] = "DRGD"
    free: ClassVar[tuple[str, ...]] = ("dropout", "beta")  # keys that a run may change on its way

    name: Annotated[Literal["drgd"], "The system."] = "drgd"
    embedding_size: Annotated[int, "D, of the word embeddings.", SIZE] = 300
    hidden_size: Annotated[int, "H, of each GRU and direction.", SIZE] = 500
    latent_size: Annotated[int, "Z, of the latent variable of a step.", SIZE] = 500
    attention_size: Annotated[int, "Of the hidden layer of attention.", SIZE] = 1000
    decoder: Annotated[
        Literal["two", "one"],
        "The recurrence: two GRUs as in the paper, or one of two steps as in the released code.",
    ] = "two"
    fusion: Annotated[
        Literal["gated", "sum"],
        "How state and latent variable meet: by a gate as in the released code, or in a tanh of "
        "their sum as in the paper.",
    ] = "gated"
    deep_output: Annotated[
        bool,
        "A layer more below the output, which also reads the last word and the context, as in the "
        "released code.",
    ] = False
    beta: Annotated[
        float,
        "Weight of the KL divergence of the latent variable; that of the released code comes to "
        "about 0.02.",
        at_least(0),
    ] = 1.0
    dropout: Annotated[
        float, "Share of values dropped at embeddings and before the output.", at_least(0), below(1)
    ] = 0.0


class DrgdEncoder(nn.Module):
    """`h_i = [fwd_i; bwd_i]`; its end is the mean of all h_i, its sentence `[fwd_I; bwd_1]`."""

    def __init__(self, vocabulary: int, config: DrgdConfig, dropout: Dropout) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, config.embedding_size)  # E_s
        self.layer = nn.GRU(
            config.embedding_size, config.hidden_size, batch_first=True, bidirectional=True
        )
        self.dropout = dropout

    def initialize_(self, generator: torch.Generator) -> None:
        """Small embeddings and orthogonal recurrent matrices, as published."""
        nn.init.normal_(self.embedding.weight, 0.0, 0.01, generator=generator)
        weights = dict(self.layer.named_parameters())
        for end in ("_l0", "_l0_reverse"):
            fill_gates_(weights["weight_ih" + end], weights["weight_hh" + end], generator)

    def forward(self, sources: Tensor, lengths: Tensor | None = None) -> Encoded:
        """Sources (B, I), and their lengths (B,) on the CPU where they are not all I."""
        embedded = self.dropout(embed(sources, self.embedding.weight))
        states, last = both_directions(self.layer, embedded, lengths)
        return Encoded(states, (_mean(states, lengths),), torch.cat([*last], -1))  # (B, 2H) both


def _mean(states: Tensor, lengths: Tensor | None) -> Tensor:
    """The mean over real positions; states (B, I, 2H) are 0 at padding. -> (B, 2H)."""
    if lengths is None:
        return states.mean(1)
    return states.sum(1) / lengths.to(states.device).unsqueeze(1)


class Drgd(AttentionSystem):
    """BiGRU, additive attention, and a latent variable with the prior N(0, I) at each step.

    Its loss "kl" is `beta * sum_j KL_j` over the steps that count. The GRUs and the embeddings have
    the published first values whatever `[init]` says; it fills all other matrices.
    """

    Config = DrgdConfig
    recipe = Recipe(
        optimizer={"name": "adadelta", "learning_rate": 1.0, "rho": 0.95, "epsilon": 1e-6},
        schedule={"name": "constant"},
        init={"name": "xavier"},
    )
    cost_names = ("kl",)
    decoder: LatentDecoder

    def __init__(self, config: "SystemConfig", vocabulary: int) -> None:
        super().__init__(config, vocabulary)
        own = config.of_type(DrgdConfig)
        self.beta, dropout = own.beta, Dropout(own.dropout)
        sizes = LatentDecoderSizes(
            vocabulary, own.embedding_size, own.hidden_size, own.latent_size, own.attention_size
        )
        decoder = LatentDecoder(
            sizes, dropout, cell=own.decoder, fusion=own.fusion, deep_output=own.deep_output
        )
        self.assemble(
            DrgdEncoder(vocabulary, own, dropout),
            decoder,
            Sizes(
                vocabulary,
                own.embedding_size,
                decoder.output_size,
                own_states=sizes.states,
                own_keys=own.attention_size,
                own_queries=own.hidden_size,
            ),
            dropout,
        )

    def unroll(self, words: Tensor, begun: Begun, *, attention_gradient: bool = False) -> Unrolled:  # noqa: ARG002 - autograd has it in any case
        """The decoder's steps with known words (B, J), and the weighted KL of each."""
        follower = self._follower(begun.memory, begun.extras)
        steps = self.decoder.follow(words, begun.state, begun.memory, follower)
        return Unrolled(
            steps.states, steps.attention, {"kl": self.beta * steps.posterior.divergence()}
        )
