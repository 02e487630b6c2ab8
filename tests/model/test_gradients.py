"""Gradients against finite differences, part by part and for the whole objective."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from ledeline.data.dataset import Batch
from ledeline.model.addons.spm import source_losses
from ledeline.model.layers.dropout import seed
from ledeline.model.layers.encoder import Encoded, Ends
from ledeline.model.loss import summed, token_losses

PAIRS = [([4, 5, 6, 4], [5]), ([6, 5], [4]), ([4, 6, 6], [6, 4])]


def random(*shape: int, number: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(number)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


class Calls(nn.Module):
    """A module and what to do with it, in the form that `functional_call` wants."""

    def __init__(self, module: nn.Module, function: Callable[..., object]) -> None:
        super().__init__()
        self.module, self.function = module, function

    def forward(self, *inputs: Tensor) -> object:
        return self.function(self.module, *inputs)


def check(module: nn.Module, function: Callable[..., object], *inputs: Tensor) -> bool:
    """Compare the gradients of `function(module, *inputs)` for all inputs and all parameters."""
    calls = Calls(module, function)
    names = [name for name, _ in calls.named_parameters()]
    values = [value.detach().clone().requires_grad_() for value in calls.parameters()]

    def call(*tensors: Tensor) -> object:
        given, own = tensors[: len(inputs)], tensors[len(inputs) :]
        return functional_call(calls, dict(zip(names, own, strict=True)), given)

    return bool(torch.autograd.gradcheck(call, (*inputs, *values)))


@pytest.fixture
def small(make):
    def made(name, **settings):
        return make(name, embedding=2, hidden=2, vocabulary=7, **settings)

    return made


@pytest.mark.parametrize("mixed", [True, False])
def test_encoder(small, mixed):
    sources = torch.tensor([[4, 5, 6, 4], [6, 5, 0, 0]])
    lengths = torch.tensor([4, 2]) if mixed else None

    def function(encoder):
        states, ends, _ = encoder(sources, lengths)
        return (states, *(part for end in ends for part in end))

    assert check(small("EncDec").encoder, function)


def test_gate(small):
    def function(gate, states, hidden, cell):
        return gate.encoded(Encoded(states, (Ends(cell, cell), Ends(hidden, cell)), hidden)).states

    inputs = random(2, 3, 2), random(2, 2, number=2), random(2, 2, number=3)
    assert check(small("EncDec+sGate").gate, function, *inputs)


@pytest.mark.parametrize("masked", [True, False])
def test_attention(small, masked):
    mask = torch.tensor([[True, True, True], [True, False, False]]) if masked else None

    def function(attention, queries, states):
        return attention(queries, attention.memory_of(states, mask))

    inputs = random(2, 2, 2), random(2, 3, 2, number=2)
    assert check(small("EncDec").decoder.attention, function, *inputs)


@pytest.mark.parametrize(
    ("layers", "masked", "dropout"),
    [(1, False, 0.0), (1, True, 0.4), (2, True, 0.0), (2, False, 0.4), (3, True, 0.4)],
)
def test_decoder(small, layers, masked, dropout):
    words = torch.tensor([[2, 5, 6], [2, 4, 3]])
    mask = torch.tensor([[True, True, True], [True, False, False]]) if masked else None

    def function(decoder, states, *ends):
        seed(1, 1)  # the same masks each time
        pairs = tuple(Ends(*ends[n : n + 2]) for n in range(0, len(ends), 2))
        start = decoder.start(Encoded(states, pairs, pairs[-1].hidden))
        return decoder.unroll(words, start, decoder.attention.memory_of(states, mask))[0]

    ends = [random(2, 2, number=n) for n in range(2 * layers)]
    decoder = small("EncDec", layers=layers, dropout=dropout).decoder.train()
    assert check(decoder, function, random(2, 3, 2), *ends)


def test_decoder_from_another_state(small):
    """An attentional state that is not 0, which only happens in the middle of a headline."""

    def function(decoder, states, attentional, *hidden):
        start = decoder.start(Encoded(states, (Ends(*hidden[:2]), Ends(*hidden[2:])), hidden[2]))
        memory = decoder.attention.memory_of(states)
        return decoder.unroll(
            torch.tensor([[5, 6]]), start._replace(attentional=attentional), memory
        )[0]

    hidden = [random(1, 2, number=n) for n in range(4)]
    attentional = random(1, 1, 2, number=5)
    assert check(small("EncDec").decoder, function, random(1, 3, 2), attentional, *hidden)


def test_target_loss():
    targets = torch.tensor([[4, 3, 0], [5, 6, 3]])
    mask = torch.tensor([[True, True, False], [True, True, True]])

    def function(output, attentional):
        losses = token_losses(attentional, output, targets)
        return summed(losses, mask), summed(losses, None)

    assert check(nn.Linear(2, 7).double(), function, random(2, 3, 2))


@pytest.mark.parametrize("equal", [True, False])
def test_source_loss(small, equal):
    model = small("EncDec+SPM", c=2.0)
    pairs = model.pairs(Batch.of(PAIRS[:1] * 2 if equal else PAIRS))
    assert (pairs.target_mask is None) == equal

    def function(spm, attentional):
        return source_losses(attentional, spm.output, pairs, spm.c)

    assert check(model.spm, function, random(*pairs.targets.shape, 2))


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_the_whole_objective(small, dropout):
    model = small("EncDec+sGate+SPM", c=2.0, dropout=dropout).train()
    pairs = model.pairs(Batch.of(PAIRS[:2]))

    def function(model):
        seed(1, 1)
        return model(pairs).total()

    assert check(model, function)


def test_the_headline_loss_is_only_looked_at(make, system):
    model = make(system)
    losses = model(model.pairs(Batch.of(PAIRS)))
    assert losses.named["target"].requires_grad
    assert not losses.headline.requires_grad
