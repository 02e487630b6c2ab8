"""The encoder: Appendix A of the paper, a bidirectional LSTM whose directions are summed."""

from typing import Any, NamedTuple, cast

from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ledeline.model.gpu.dispatch import has_kernel
from ledeline.model.layers.dropout import Dropout


class Ends(NamedTuple):
    """The last states of the two directions of a layer, summed: `fwd_I + bwd_1`."""

    hidden: Tensor  # (B, H)
    cell: Tensor  # (B, H)


class Encoded(NamedTuple):
    """A batch of sources as the decoder sees it."""

    states: Tensor  # (B, I, H): h_1 ... h_I of the top layer
    ends: tuple[Any, ...]  # of each layer, from the first to the top: the decoder starts from them
    sentence: Tensor  # (B, H): s, the summed ends of the top layer


class Encoder(nn.Module):
    """`h_i = fwd_i + bwd_i`, at every layer; layer 1 reads `E_s x_i`, layer n the sums below it.

    The paper sums at the output and is silent on what lies between the layers: we sum there too,
    so each layer but the first reads H values.
    """

    def __init__(
        self, vocabulary: int, embedding_size: int, hidden_size: int, layers: int, dropout: Dropout
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding_size)  # E_s
        sizes = [embedding_size] + [hidden_size] * (layers - 1)
        self.layers = nn.ModuleList(
            nn.LSTM(size, hidden_size, batch_first=True, bidirectional=True) for size in sizes
        )
        self.dropout = dropout

    def forward(self, sources: Tensor, lengths: Tensor | None = None) -> Encoded:
        """Sources (B, I), and their lengths (B,) on the CPU unless all are I."""
        states, ends = embed(sources, self.embedding.weight), []
        for layer in self.layers:
            inputs = self.dropout(states)
            states, hidden, cell = bidirectional_sum(cast(nn.LSTM, layer), inputs, lengths)
            ends.append(Ends(hidden, cell))
        return Encoded(states, tuple(ends), ends[-1].hidden)


@has_kernel
def embed(words: Tensor, weight: Tensor) -> Tensor:
    """`E x` of each word. (B, I), E (V, D) -> (B, I, D)."""
    return functional.embedding(words, weight)


@has_kernel
def bidirectional_sum(
    layer: nn.LSTM, values: Tensor, lengths: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Both directions of a layer, summed: (B, I, D or H) -> states (B, I, H) and ends (B, H)."""
    states, (hidden, cell) = summed_directions(layer, values, lengths)
    return states, hidden.sum(0), cell.sum(0)  # (2, B, H) -> (B, H)


def summed_directions(
    layer: nn.Module, values: Tensor, lengths: Tensor | None
) -> tuple[Tensor, Any]:
    """Any bidirectional layer: (B, I, D or H) -> summed states (B, I, H), and its last states."""
    both, last = both_directions(layer, values, lengths)
    forward, backward = both.chunk(2, dim=-1)  # (B, I, 2H) -> (B, I, H) twice
    return forward + backward, last


def both_directions(layer: nn.Module, values: Tensor, lengths: Tensor | None) -> tuple[Tensor, Any]:
    """Any bidirectional layer: (B, I, D) -> states `[fwd_i; bwd_i]` (B, I, 2H), and its last ones.

    The last ones are fwd_I and bwd_1, (2, B, H), however the sources are padded.
    """
    if lengths is None:
        both, last = layer(values)
    else:
        packed = pack_padded_sequence(values, lengths, batch_first=True, enforce_sorted=False)
        both, last = layer(packed)
        both, _ = pad_packed_sequence(both, batch_first=True, total_length=values.shape[1])
    return both, last
