"""A decoder and its inputs, for tests that compare two ways to unroll it."""

from typing import NamedTuple

import torch
from torch import Tensor

from ledeline.model.layers.attention import Attention
from ledeline.model.layers.decoder import Decoder, DecoderState
from ledeline.model.layers.dropout import Dropout, seed

Tensors = dict[str, Tensor]


class Case(NamedTuple):
    """A decoder and its inputs."""

    decoder: Decoder
    words: Tensor  # (B, J)
    state: DecoderState
    states: Tensor  # (B, I, H)
    mask: Tensor | None  # (B, I)

    def unroll(self, *, autograd: bool) -> tuple[Tensor, Tensor]:
        self.decoder.autograd_only = autograd
        seed(1, 1)  # the same dropout masks for both
        memory = self.decoder.attention.memory_of(self.states, self.mask)
        z, alpha = self.decoder.unroll(self.words, self.state, memory)
        return z, alpha

    @property
    def leaves(self) -> dict[str, Tensor]:
        """All that gets a gradient, by name."""
        starts = {f"hidden {n}": one for n, one in enumerate(self.state.hidden)}
        starts |= {f"cell {n}": one for n, one in enumerate(self.state.cell)}
        parameters = dict(self.decoder.named_parameters())
        return parameters | starts | {"attentional": self.state.attentional, "states": self.states}

    def values_and_gradients(self, *, autograd: bool, grad_output: Tensor | None = None) -> Tensors:
        """z, alpha and all gradients, of a loss in which each value counts differently."""
        z, alpha = self.unroll(autograd=autograd)
        grad_output = values(*z.shape).to(z) if grad_output is None else grad_output
        leaves = self.leaves
        gradients = torch.autograd.grad(z, list(leaves.values()), grad_output)
        return {"z": z, "alpha": alpha, **dict(zip(leaves, gradients, strict=True))}


def values(*shape: int, number: int = 9) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(number), dtype=torch.float64)


def case(
    *,
    layers: int = 2,
    batch: int = 3,
    length: int = 4,
    steps: int = 3,
    size: int = 4,
    dropout: float = 0.3,
    masked: bool = True,
    dtype: torch.dtype = torch.float64,
    device: str = "cpu",
) -> Case:
    decoder = Decoder(7, 3, size, layers, Attention(size), Dropout(dropout)).to(device, dtype)
    for number, parameter in enumerate(decoder.parameters()):
        parameter.data.copy_(values(*parameter.shape, number=number) / parameter.shape[-1] ** 0.5)
    attentional, *rest = (
        values(batch, 1, size, number=n).to(device, dtype).requires_grad_()
        for n in range(2 * layers + 1)
    )
    mask = torch.arange(length) < 1 + (torch.arange(batch) % length).unsqueeze(1)
    return Case(
        decoder,
        (values(batch, steps).abs() * 10).long().to(device) % 7,
        DecoderState(tuple(rest[:layers]), tuple(rest[layers:]), attentional),
        values(batch, length, size).to(device, dtype).requires_grad_(),
        mask.to(device) if masked else None,
    )


def same(found: Tensors, expected: Tensors, tolerance: float, least: float = 0.0) -> None:
    """All alike, each within the tolerance times its own largest value, or the least given."""
    assert found.keys() == expected.keys()
    for name, one in expected.items():
        assert found[name].shape == one.shape, name
        error = (found[name].double() - one.double()).abs().max().item()
        assert error <= tolerance * max(one.double().abs().max().item(), least), name
