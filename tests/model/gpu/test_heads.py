"""Multi-head attention as kernels against the plain definition."""

import pytest
import torch
from torch import Tensor

from ledeline.model.gpu import dispatch
from ledeline.model.layers.dropout import Dropout
from ledeline.model.layers.multi_head_attention import attend_self, attend_source

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
FAST: dispatch.KernelMode = "fused" if DEVICE == "cuda" else "interpreted"
LOW = torch.bfloat16 if DEVICE == "cuda" else torch.float16

pytestmark = [
    pytest.mark.skipif(not dispatch.has_triton(), reason="needs Triton"),
    pytest.mark.usefixtures("nothing_is_a_number_before_it_is_written"),
]


def numbers(*shape: int, seed: int = 3) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE)


def valid_places(pairs: int, places: int) -> Tensor:
    """Each pair has one place less than the pair before, and at least one."""
    lengths = (places - torch.arange(pairs, device=DEVICE)).clamp(min=1)
    return torch.arange(places, device=DEVICE) < lengths.unsqueeze(1)


def of_self(
    mode: dispatch.KernelMode,
    given: Tensor,
    heads: int,
    mask: Tensor | None,
    *,
    causal: bool,
    dropout: Dropout | None = None,
) -> list[Tensor]:
    """Contexts, and the gradient of what was given."""
    given = given.clone().requires_grad_()
    with dispatch.kernel_mode(mode):
        contexts = attend_self(given, heads, mask, causal, dropout or Dropout(0.0))
        weights = numbers(*contexts.shape, seed=9).to(contexts.dtype)
        return [contexts.detach(), *torch.autograd.grad(contexts, given, weights)]


def of_source(
    mode: dispatch.KernelMode, queries: Tensor, known: Tensor, heads: int, mask: Tensor | None
) -> list[Tensor]:
    """Contexts, and the gradients of queries, keys and values."""
    leaves = [queries.clone().requires_grad_(), known.clone().requires_grad_()]
    with dispatch.kernel_mode(mode):
        contexts = attend_source(leaves[0], leaves[1], heads, mask, Dropout(0.0))
        weights = numbers(*contexts.shape, seed=9).to(contexts.dtype)
        return [contexts.detach(), *torch.autograd.grad(contexts, leaves, weights)]


def is_fused(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts how often a kernel runs."""
    from ledeline.model.gpu import heads

    calls: list[int] = []
    before = heads._launch

    def counted(*arguments: object) -> object:
        calls.append(1)
        return before(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(heads, "_launch", counted)
    return calls


# pairs, places, heads, size of a head
SHAPES = [(1, 1, 1, 16), (3, 5, 2, 16), (2, 17, 3, 32), (2, 33, 1, 64)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_self(
    shape: tuple[int, int, int, int],
    causal: bool,
    masked: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pairs, places, heads, size = shape
    calls = is_fused(monkeypatch)
    given = numbers(pairs, places, 3 * heads * size)
    mask = valid_places(pairs, places) if masked else None
    ours, plain = (of_self(mode, given, heads, mask, causal=causal) for mode in (FAST, "plain"))
    assert calls
    for one, expected in zip(ours, plain, strict=True):
        torch.testing.assert_close(one, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("steps", [1, 4, 19])
@pytest.mark.parametrize("masked", [False, True])
def test_source(steps: int, masked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = is_fused(monkeypatch)
    queries, known = numbers(3, steps, 48, seed=1), numbers(3, 7, 96, seed=2)
    mask = valid_places(3, 7) if masked else None
    ours, plain = (of_source(mode, queries, known, 3, mask) for mode in (FAST, "plain"))
    assert calls
    for one, expected in zip(ours, plain, strict=True):
        torch.testing.assert_close(one, expected, rtol=1e-4, atol=1e-5)


def test_low_precision() -> None:
    """Contexts and gradients have the type of what was given."""
    given = numbers(2, 9, 3 * 32).to(LOW)
    ours, plain = (of_self(mode, given, 2, None, causal=False) for mode in (FAST, "plain"))
    for one, expected in zip(ours, plain, strict=True):
        assert one.dtype == LOW
        torch.testing.assert_close(one, expected, rtol=3e-2, atol=3e-2)


def test_twice_the_same_bits() -> None:
    given = numbers(4, 21, 3 * 32)
    one, other = (of_self(FAST, given, 2, None, causal=True) for _ in "ab")
    for first, second in zip(one, other, strict=True):
        assert torch.equal(first, second)


@pytest.mark.parametrize(
    ("places", "size", "dropout"),
    [
        (dispatch.MAX_PLACES + 1, 16, Dropout(0.0)),
        (5, 12, Dropout(0.0)),
        (5, 16, Dropout(0.5).train()),
    ],
)
def test_plain_where_it_does_not_fit(
    places: int, size: int, dropout: Dropout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long sentences, odd heads, and attention with dropout."""
    calls = is_fused(monkeypatch)
    given = numbers(1, places, 3 * size)
    torch.manual_seed(1)
    ours = of_self(FAST, given, 1, None, causal=False, dropout=dropout)
    torch.manual_seed(1)
    plain = of_self("plain", given, 1, None, causal=False, dropout=dropout)
    assert not calls
    for one, expected in zip(ours, plain, strict=True):
        assert torch.equal(one, expected)
