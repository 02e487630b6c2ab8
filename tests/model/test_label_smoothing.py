"""Label smoothing: torch's own as the reference, and what is reported stays without it."""

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

from ledeline.data.dataset import Batch
from ledeline.model.loss import logit_losses, smoothed
from ledeline.model.systems.encdec import EncDec
from ledeline.text.subwords import BOS, EOS, PAD

BATCH = Batch.of([([5, 6, 7, 8, 9], [5, 7]), ([8, 8, 10], [9]), ([4, 6, 7, 4], [10, 4, 7])])


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
def test_it_is_that_of_torch(smoothing: float) -> None:
    numbers = torch.Generator().manual_seed(1)
    logits = torch.randn(3, 4, 11, generator=numbers, dtype=torch.float64)
    targets = torch.randint(11, (3, 4), generator=numbers)
    targets.clamp_(min=EOS)
    ours = smoothed(logit_losses(logits, targets), logits, smoothing)
    wanted = torch.full((3, 4, 11), smoothing / 9, dtype=torch.float64)
    wanted[..., [PAD, BOS]] = 0.0  # which no headline has
    wanted += (1 - smoothing) * functional.one_hot(targets, 11)
    theirs = functional.cross_entropy(logits.flatten(0, 1), wanted.flatten(0, 1), reduction="none")
    torch.testing.assert_close(ours, theirs.view(3, 4))


@pytest.fixture
def model(make: Callable[..., EncDec], system: str) -> EncDec:
    model = make(system)
    model.train()
    return model


def test_what_is_minimised_is_smoothed_and_what_is_reported_is_not(model: EncDec) -> None:
    pairs = model.pairs(BATCH)
    plain = model(pairs)
    model.label_smoothing = 0.2
    losses = model(pairs)
    torch.testing.assert_close(losses.headline, plain.headline)
    assert not torch.allclose(losses.named["target"], plain.named["target"])
    for name in plain.named.keys() - {"target"}:
        assert torch.equal(losses.named[name], plain.named[name])
    # by hand, from the probabilities that a search would see
    state, memory = model.encode(pairs.sources, pairs.source_lengths, pairs.source_mask)
    logs = []
    for j in range(pairs.targets.shape[1]):
        log, state = model.step(pairs.previous[:, j : j + 1], state, memory)
        logs.append(log.squeeze(1))
    log_o = torch.stack(logs, 1)  # (B, J, V)
    nll = -log_o.gather(2, pairs.targets.unsqueeze(2)).squeeze(2)
    written = [one for one in range(log_o.shape[2]) if one not in (PAD, BOS)]
    expected = 0.8 * nll - 0.2 * log_o[..., written].mean(2)
    mask = torch.ones_like(nll) if pairs.target_mask is None else pairs.target_mask
    torch.testing.assert_close(losses.named["target"], (expected * mask).sum(1))


def test_validation_is_without_it(model: EncDec) -> None:
    model.eval()
    pairs = model.pairs(BATCH)
    plain = model(pairs)
    model.label_smoothing = 0.2
    assert torch.equal(model(pairs).named["target"], plain.named["target"])


def test_its_gradient_is_that_of_its_loss(make: Callable[..., EncDec]) -> None:
    """As autograd has it of the reference, through every parameter."""
    model = make("EncDec+sGate+SPM").train()
    model.label_smoothing = 0.3
    pairs = model.pairs(BATCH)
    model(pairs).named["target"].sum().backward()
    bias = model.output.bias.grad
    assert bias is not None
    step, before = 1e-5, []
    with torch.no_grad():
        for sign in (1, -1):
            model.output.bias[7] += sign * step
            before.append(model(pairs).named["target"].sum())
            model.output.bias[7] -= sign * step
    slope = (before[0] - before[1]) / (2 * step)
    torch.testing.assert_close(bias[7], slope, rtol=1e-6, atol=1e-8)
