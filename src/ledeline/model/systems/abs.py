"""ABS (Rush et al. 2015): a feed-forward language model of the last words, and an encoder.

Where the paper and its released code differ, this is the code.

Legend: B pairs, I source length, J steps, K hypotheses, C words of a context, D embedding, H hidden
size, P size of what the encoder gives, V vocabulary.
"""

import math
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from ledeline.config.recipe import Recipe
from ledeline.config.section import SIZE, at_least, below, section
from ledeline.model.layers.abs_encoders import (
    AbsEncoder,
    BagOfWordsEncoder,
    TimeDelayEncoder,
    WindowAttentionEncoder,
    contexts_embedded,
    with_ends,
)
from ledeline.model.layers.dropout import Dropout
from ledeline.model.loss import summed, token_losses
from ledeline.model.pairs import Pairs
from ledeline.model.system import Losses, System, Trace
from ledeline.text.subwords import BOS

if TYPE_CHECKING:
    from ledeline.model.system_config import SystemConfig


@section
class AbsConfig:
    """ABS: a feed-forward language model with attention; weights start as in its released code.

    They are not those of [init].
    """

    title: ClassVar[str] = "ABS"
    free: ClassVar[tuple[str, ...]] = ("dropout",)  # keys that a run may change on its way

    name: Annotated[Literal["abs"], "The system."] = "abs"
    embedding_size: Annotated[int, "D, of the word embeddings.", SIZE] = 200
    hidden_size: Annotated[int, "H, of the hidden layer.", SIZE] = 400
    encoder: Annotated[
        Literal["attention", "bow", "conv", "none"],
        "attention: ABS; bow: the mean of the words of the source; conv: convolutions over them; "
        "none: the source is not read.",
    ] = "attention"
    encoder_size: Annotated[int, "P, of what the encoder gives.", SIZE] = 200
    context: Annotated[int, "C: a word depends on so many words before it.", SIZE] = 5
    smoothing: Annotated[
        int, "Q: attention mixes windows of 2 Q + 1 words of the source.", at_least(0), below(2**16)
    ] = 2
    filters: Annotated[int, "Filters of each convolution, with conv.", SIZE] = 1000
    dropout: Annotated[
        float,
        "Share of values dropped before the output; there was none where it was published.",
        at_least(0),
        below(1),
    ] = 0.0


class AbsState(NamedTuple):
    """A search between two steps."""

    context: Tensor  # (B, K, C): the last words
    nothing: Tensor  # (B, K, 0), of the type in which costs are summed


class AbsNnlm(System):
    """`h = tanh(U [E y_{j-C}; ...; E y_{j-1}] + b)`, `o_j = softmax(W [h; enc(x, y_c)] + b)`."""

    Config = AbsConfig
    recipe = Recipe(
        optimizer={"name": "sgd", "learning_rate": 0.1},
        schedule={"name": "plateau", "compare_with": "previous"},
    )
    learns_words = True

    def __init__(self, config: "SystemConfig", vocabulary: int) -> None:
        super().__init__(config, vocabulary)
        own = config.of_type(AbsConfig)
        self._context = own.context
        self.embedding = nn.Embedding(vocabulary, own.embedding_size)  # E
        self.hidden = nn.Linear(own.context * own.embedding_size, own.hidden_size)  # U
        self.encoder = _encoder(own, vocabulary)
        size = own.hidden_size + (0 if self.encoder is None else own.encoder_size)
        self.output = nn.Linear(size, vocabulary)
        self.dropout = Dropout(own.dropout)

    @torch.no_grad()
    def initialize_(self, generator: torch.Generator) -> None:
        """As Torch7 did: embeddings normal, others uniform within `1 / sqrt(inputs)` of 0."""
        for layer in self.modules():
            if isinstance(layer, nn.Embedding):
                nn.init.normal_(layer.weight, generator=generator)
            elif isinstance(layer, nn.Linear | nn.Conv1d):
                bound = 1 / math.sqrt(layer.weight[0].numel())
                for values in layer.parameters():
                    nn.init.uniform_(values, -bound, bound, generator=generator)

    @torch.no_grad()
    def start_epoch(self) -> None:
        """Make the rows of E, F and G that are longer than 1 as long as that; not F of bow."""
        tables = [] if self.encoder is None else self.encoder.tables()
        for table in (self.embedding, *tables):
            table.weight.div_(table.weight.norm(dim=1, keepdim=True).clamp(min=1))

    # --- training and analysis: headlines are known ------------------------------------------

    def losses(self, pairs: Pairs) -> Losses:
        """`-log o_j[y_j]`, summed over the steps of a pair, or of the one word that is learned."""
        contexts, targets, mask = self._contexts(pairs.previous), pairs.targets, pairs.target_mask
        if pairs.positions is not None:
            at = pairs.positions.unsqueeze(1)  # (B, 1)
            targets, mask = targets.gather(1, at), None
            contexts = contexts.gather(1, at.unsqueeze(-1).expand(-1, -1, self._context))
        states = self.dropout(self._states(contexts, self._memory(pairs)))
        target = summed(token_losses(states, self.output, targets), mask)
        return Losses({"target": target}, target.detach())  # it learns no <pad>

    def trace(self, pairs: Pairs) -> Trace:
        """Teacher-force known headlines; attention is that over the words, without the ends."""
        contexts, memory = self._contexts(pairs.previous), self._memory(pairs)
        states = self._states(contexts, memory)
        logs = -token_losses(states, self.output, pairs.targets)
        seen = None if self.encoder is None else self.encoder.attention(contexts, memory)
        return Trace(logs, seen, None)

    def _contexts(self, previous: Tensor) -> Tensor:
        """The last C words before each step, `<bos>` where there are fewer. (B, J) -> (B, J, C)."""
        begin = previous.new_full((len(previous), self._context - 1), BOS)
        return torch.cat([begin, previous], 1).unfold(1, self._context, 1)

    def _memory(self, pairs: Pairs) -> Any:
        return self._read(pairs.sources, pairs.source_mask)

    def _read(self, sources: Tensor, mask: Tensor | None) -> Any:
        """What the encoder keeps of sources (B, I)."""
        return () if self.encoder is None else self.encoder.memory(with_ends(sources, mask))

    def _states(self, contexts: Tensor, memory: Any) -> Tensor:
        """`[h; enc(x, y_c)]`. Contexts (B, K, C) -> (B, K, H + P)."""
        hidden = torch.tanh(self.hidden(contexts_embedded(contexts, self.embedding)))
        if self.encoder is None:
            return hidden
        return torch.cat([hidden, self.encoder(contexts, memory)], -1)

    # --- search: one step after another -------------------------------------------------------

    def encode(
        self,
        sources: Tensor,
        lengths: Tensor | None = None,  # noqa: ARG002
        mask: Tensor | None = None,
    ) -> tuple[AbsState, Any]:
        """Sources (B, I) -> a context of <bos> alone, and what the encoder keeps."""
        context = sources.new_full((len(sources), 1, self._context), BOS)
        nothing = self.output.weight.new_empty(len(sources), 1, 0)
        return AbsState(context, nothing), self._read(sources, mask)

    def step(self, words: Tensor, state: AbsState, memory: Any) -> tuple[Tensor, AbsState]:
        """y_{j-1} (B, K) -> `log o_j` (B, K, V), and the state after the step."""
        context = torch.cat([state.context[..., 1:], words.unsqueeze(-1)], -1)
        logits = self.output(self._states(context, memory))
        return logits.log_softmax(-1), state._replace(context=context)

    @property
    def has_attention(self) -> bool:
        """Only the attention-based encoder has it."""
        return isinstance(self.encoder, WindowAttentionEncoder)

    @property
    def context_size(self) -> int:
        """C."""
        return self._context


def _encoder(config: AbsConfig, vocabulary: int) -> AbsEncoder | None:
    size = config.encoder_size
    if config.encoder == "bow":
        return BagOfWordsEncoder(vocabulary, size)
    if config.encoder == "conv":
        return TimeDelayEncoder(vocabulary, config.filters, size)
    if config.encoder == "attention":
        return WindowAttentionEncoder(vocabulary, config.context, config.smoothing, size)
    return None
