"""Residual connection, dropout and norm as kernels against the plain definition."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ledeline.data.dataset import Batch
from ledeline.model.gpu import dispatch
from ledeline.model.layers.dropout import Dropout, Share
from ledeline.model.layers.transformer_layers import add_and_norm
from systems import random_system, small_config

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
FAST: dispatch.KernelMode = "fused" if DEVICE == "cuda" else "interpreted"
# Triton's interpreter cuts values to bfloat16 instead of rounding them.
LOW = torch.bfloat16 if DEVICE == "cuda" else torch.float16

pytestmark = [
    pytest.mark.skipif(not dispatch.has_triton(), reason="needs Triton"),
    pytest.mark.usefixtures("nothing_is_a_number_before_it_is_written"),
]

SHAPES = [(1, 1, 2), (2, 3, 16), (3, 5, 20), (2, 2, 1030)]


def numbers(*shape: int, seed: int = 3) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE)


def layer_norm(size: int) -> nn.LayerNorm:
    norm = nn.LayerNorm(size).to(DEVICE)
    with torch.no_grad():
        norm.weight.copy_(1 + 0.3 * numbers(size, seed=4))
        norm.bias.copy_(numbers(size, seed=5))
    return norm


def run(
    mode: dispatch.KernelMode,
    states: Tensor,
    added: Tensor,
    norm: nn.LayerNorm,
    incoming: tuple[Tensor | None, Tensor | None],
) -> dict[str, Tensor]:
    """Both outputs, and all gradients for the incoming ones, of which one may be missing."""
    leaves = [states.clone().requires_grad_(), added.clone().requires_grad_()]
    with dispatch.kernel_mode(mode):
        outputs = add_and_norm(leaves[0], leaves[1], Dropout(0.3).eval(), norm)
        wanted = [(out, one) for out, one in zip(outputs, incoming, strict=True) if one is not None]
        gradients = torch.autograd.grad(
            [out for out, _ in wanted],
            [*leaves, norm.weight, norm.bias],
            [one.to(out.dtype) for out, one in wanted],
            allow_unused=True,
        )
    named = zip(("states", "added", "weight", "bias"), gradients, strict=True)
    found = {name: torch.zeros(1, device=DEVICE) if one is None else one for name, one in named}
    return {"sums": outputs[0].detach(), "normed": outputs[1].detach(), **found}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("given", [(True, True), (False, True), (True, False)])
def test_values_and_gradients(shape: tuple[int, int, int], given: tuple[bool, bool]) -> None:
    norm = layer_norm(shape[-1])
    incoming = tuple(numbers(*shape, seed=6 + k) if one else None for k, one in enumerate(given))
    inputs = numbers(*shape, seed=1), numbers(*shape, seed=2), norm, incoming
    ours, plain = (run(mode, *inputs) for mode in (FAST, "plain"))  # type: ignore[arg-type]
    for name, expected in plain.items():
        torch.testing.assert_close(
            ours[name].broadcast_to(expected.shape) if ours[name].numel() == 1 else ours[name],
            expected.broadcast_to(ours[name].shape),
            rtol=2e-5,
            atol=2e-5,
            msg=lambda text, name=name: f"{name}: {text}",
        )


def test_many_rows_share_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gains' gradient is that of all rows, whichever program had them."""
    from ledeline.model.gpu import norm as fused

    monkeypatch.setattr(fused, "_MAX_PROGRAMS", 4)
    norm = layer_norm(8)
    both = numbers(3, 7, 8, seed=6), numbers(3, 7, 8, seed=7)
    inputs = numbers(3, 7, 8, seed=1), numbers(3, 7, 8, seed=2), norm, both
    ours, plain = run(FAST, *inputs), run("plain", *inputs)
    for name, expected in plain.items():
        torch.testing.assert_close(ours[name], expected, rtol=2e-5, atol=2e-5)


def test_types() -> None:
    """States stay in float32, the norm has the type of the products, gradients that of inputs."""
    norm = layer_norm(16)
    states = numbers(2, 3, 16, seed=1).requires_grad_()
    added = numbers(2, 3, 16, seed=2).to(LOW).requires_grad_()
    with dispatch.kernel_mode(FAST):
        sums, normed = add_and_norm(states, added, Dropout(0.0), norm)
    assert (sums.dtype, normed.dtype) == (torch.float32, LOW)
    expected = states + added.float()
    torch.testing.assert_close(sums, expected)
    torch.testing.assert_close(normed.float(), norm(expected), rtol=2e-2, atol=2e-2)
    (sums.sum() + (normed.float() * numbers(2, 3, 16)).sum()).backward()
    assert states.grad is not None
    assert added.grad is not None
    assert (states.grad.dtype, added.grad.dtype) == (torch.float32, LOW)
    torch.testing.assert_close(added.grad.float(), states.grad, rtol=2e-2, atol=2e-2)


def dropped(dropout: Dropout, shape: tuple[int, ...], seed: int = 1) -> tuple[Tensor, Tensor]:
    """What dropout multiplies with, going forward and going back."""
    states, added = torch.zeros(shape, device=DEVICE), torch.ones(shape, device=DEVICE)
    torch.manual_seed(seed)
    with dispatch.kernel_mode(FAST):
        sums, _ = add_and_norm(states, added.requires_grad_(), dropout, layer_norm(shape[-1]))
    (back,) = torch.autograd.grad(sums.sum(), added)
    return sums.detach(), back


class TestDropout:
    def test_the_mask_is_the_same_both_ways(self) -> None:
        forward, back = dropped(Dropout(0.4).train(), (4, 6, 20))
        torch.testing.assert_close(forward, back)

    def test_shares_and_scale(self) -> None:
        forward, _ = dropped(Dropout(0.25).train(), (8, 16, 64))
        kept = forward > 0
        torch.testing.assert_close(forward[kept], torch.full_like(forward[kept], 1 / 0.75))
        assert (~kept).float().mean().item() == pytest.approx(0.25, abs=0.02)
        # No row, place or column is treated alike.
        for dim in (0, 1, 2):
            assert (kept != kept.roll(1, dim)).any()

    def test_another_seed_is_another_mask(self) -> None:
        one, other = (dropped(Dropout(0.4).train(), (4, 6, 20), seed)[0] for seed in (1, 2))
        assert not torch.equal(one, other)
        again, _ = dropped(Dropout(0.4).train(), (4, 6, 20), 1)
        assert torch.equal(one, again)

    def test_two_layers_in_turn_have_other_masks(self) -> None:
        dropout = Dropout(0.4).train()
        states, added = torch.zeros(2, 3, 20, device=DEVICE), torch.ones(2, 3, 20, device=DEVICE)
        with dispatch.kernel_mode(FAST):
            one, other = (add_and_norm(states, added, dropout, layer_norm(20))[0] for _ in "ab")
        assert not torch.equal(one, other)

    def test_processes_have_their_rows_of_one_mask(self) -> None:
        whole, _ = dropped(Dropout(0.4).train(), (5, 3, 20))
        for rank in (0, 1):
            dropout = Dropout(0.4).train()
            rows = whole[rank::2]
            dropout.share = Share(rank, 2, 5)
            own, back = dropped(dropout, tuple(rows.shape))
            assert torch.equal(own, rows)
            assert torch.equal(back, rows)

    def test_nothing_is_dropped_in_evaluation(self) -> None:
        forward, _ = dropped(Dropout(0.4).eval(), (2, 3, 20))
        assert (forward == 1).all()


@pytest.mark.parametrize("names", [(), ("sgate", "spm")])
def test_a_whole_transformer(names: tuple[str, ...]) -> None:
    """All losses and all gradients, without dropout."""
    model: Any = random_system(*names, system=small_config("transformer")).to(DEVICE)
    batch = Batch.of([([4, 5, 6, 7, 5], [4, 6]), ([8, 9, 4, 4, 8], [9])])
    found = {}
    for mode in (FAST, "plain"):
        model.zero_grad()
        with dispatch.kernel_mode(mode):  # type: ignore[arg-type]
            losses = model(model.pairs(batch))
            losses.total().sum().backward()
        gradients = {name: one.grad.clone() for name, one in model.named_parameters()}
        found[mode] = losses.named | gradients
    for name, expected in found["plain"].items():
        torch.testing.assert_close(found[FAST][name], expected, rtol=1e-3, atol=1e-4)
