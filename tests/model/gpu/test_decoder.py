"""The decoder's steps as kernels against the plain ones: values, all gradients, what is kept."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import unrolled
from ledeline.model.gpu import dispatch
from ledeline.model.layers.dropout import Share
from unrolled import Case, Tensors, same, values

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
FAST: dispatch.KernelMode = "fused" if DEVICE == "cuda" else "interpreted"
# Triton's interpreter cuts values to bfloat16 instead of rounding them.
LOW = torch.bfloat16 if DEVICE == "cuda" else torch.float16

pytestmark = [
    pytest.mark.skipif(not dispatch.has_triton(), reason="needs Triton"),
    pytest.mark.usefixtures("nothing_is_a_number_before_it_is_written"),
]
needs_gpu = pytest.mark.skipif(DEVICE != "cuda", reason="needs a GPU")


def case(**sizes: Any) -> Case:
    """In float32, and all sources of one length unless said otherwise."""
    usual = {"masked": False, "dtype": torch.float32, "device": DEVICE, "steps": 2}
    return unrolled.case(**{**usual, **sizes})


def values_and_gradients(
    one: Case, mode: dispatch.KernelMode, grad_output: Tensor | None = None
) -> Tensors:
    with dispatch.kernel_mode(mode):
        return one.values_and_gradients(autograd=False, grad_output=grad_output)


def as_plain(one: Case, tolerance: float = 1e-5, grad_output: Tensor | None = None) -> None:
    """With one place to look at the scores do not matter: what they get is of rounding alone."""
    least = 1.0 if one.states.shape[1] == 1 else 0.0
    same(
        values_and_gradients(one, FAST, grad_output),
        values_and_gradients(one, "plain", grad_output),
        tolerance,
        least,
    )


def close_in_low_precision(one: Case) -> None:
    """Products in 16 bits lose digits, but hardly more than they do in plain PyTorch."""
    exact = values_and_gradients(one, "plain")
    with torch.autocast(DEVICE, LOW):
        found, plain = values_and_gradients(one, FAST), values_and_gradients(one, "plain")
    assert found["z"].dtype == plain["z"].dtype == LOW
    for name, value in exact.items():
        assert name in ("z", "alpha") or found[name].dtype == torch.float32, name
        allowed = max(0.03, 1.5 * (plain[name] - value).norm() / value.norm())
        assert (found[name] - value).norm() / value.norm() < allowed, name


class Made(TorchDispatchMode):
    """Notes every tensor that is made, without keeping it."""

    def __init__(self) -> None:
        super().__init__()
        self._made: list[weakref.ref[Tensor]] = []

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        every = made if isinstance(made, tuple | list) else (made,)
        self._made += [weakref.ref(one) for one in every if isinstance(one, Tensor)]
        return made

    def kept(self, *known: Tensor) -> int:
        """How many places in memory are still held, apart from those of known tensors."""
        gc.collect()
        alive = [one for ref in self._made if (one := ref()) is not None]
        return len({place(one) for one in alive} - {place(one) for one in known})


def place(one: Tensor) -> int:
    return one.untyped_storage().data_ptr()


class TestFloat32:
    def test_a_share_of_the_dropout(self):
        """Each of several processes has every n-th row of the mask, which is strided."""
        one = case(batch=3, length=3, steps=2, size=5)
        one.decoder.dropout.share = Share(1, 2, 6)
        same(values_and_gradients(one, FAST), values_and_gradients(one, "plain"), 1e-5)

    @pytest.mark.parametrize("layers", [1, 2, 3])
    @pytest.mark.parametrize("dropout", [0.0, 0.4])
    def test_as_plain(self, layers, dropout):
        as_plain(case(layers=layers, dropout=dropout, steps=3))

    @pytest.mark.parametrize(
        ("batch", "length", "steps", "size", "layers"),
        [
            (2, 15, 2, 5, 2),
            (3, 16, 2, 16, 2),
            (2, 17, 2, 33, 2),
            (1, 33, 2, 5, 1),
            (3, 9, 1, 6, 2),
            (65, 5, 2, 17, 1),
            (2, 3, 3, 1, 2),
            (4, 1, 2, 5, 2),
            (2, 3, 6, 2, 1),
            (1, 260, 1, 5, 1),
        ],
    )
    def test_edges(self, batch, length, steps, size, layers):
        as_plain(case(batch=batch, length=length, steps=steps, size=size, layers=layers))

    @settings(max_examples=5)
    @given(
        layers=st.integers(1, 3),
        batch=st.integers(1, 4),
        length=st.integers(1, 20),
        steps=st.integers(1, 3),
        size=st.integers(1, 20),
        dropout=st.sampled_from([0.0, 0.3]),
    )
    @example(layers=1, batch=1, length=1, steps=1, size=1, dropout=0.0)
    def test_in_any_size(self, layers, batch, length, steps, size, dropout):
        one = case(
            layers=layers, batch=batch, length=length, steps=steps, size=size, dropout=dropout
        )
        same(values_and_gradients(one, FAST), values_and_gradients(one, "plain"), 3e-5, least=1.0)

    @pytest.mark.parametrize("grad_output", ["stretched", "turned", "some steps", "last step"])
    def test_incoming_gradients(self, grad_output):
        """In memory of any order; and to all steps the same, to some nothing."""
        one, shape = case(layers=1, batch=2, steps=4, size=5), (2, 4, 5)
        full = values(*shape).to(DEVICE, torch.float32)
        number, last = torch.full((), 0.5, device=DEVICE), torch.arange(4, device=DEVICE) == 3
        given = {
            "stretched": number.expand(shape),
            "turned": full.transpose(0, 2).contiguous().transpose(0, 2),
            "some steps": full * torch.arange(4, device=DEVICE).remainder(2).view(-1, 1),
            "last step": full * last.view(-1, 1),
        }[grad_output]
        assert given.is_contiguous() == grad_output.endswith(("step", "steps"))
        as_plain(one, grad_output=given)

    def test_states_that_lie_apart(self):
        one = case(batch=3, length=5)
        apart = one.states.detach().transpose(0, 1).contiguous().transpose(0, 1)
        assert not apart.is_contiguous()
        as_plain(one._replace(states=apart.requires_grad_()))

    @pytest.mark.filterwarnings("ignore:overflow")  # of exp, in the interpreter; it gives inf
    def test_large_scores(self):
        """What is looked at is one place, and nothing overflows. At z the signs are all there is."""
        one = case(length=9)
        one.states.data.mul_(1e3)
        found, expected = values_and_gradients(one, FAST), values_and_gradients(one, "plain")
        assert expected["alpha"].max() > 0.99
        torch.testing.assert_close(found["alpha"], expected["alpha"], rtol=0, atol=1e-3)
        torch.testing.assert_close(found["z"], expected["z"], rtol=0, atol=1e-3)
        assert all(each.isfinite().all() for each in found.values())


class TestLowPrecision:
    def test_close(self):
        close_in_low_precision(case(batch=4, steps=3, length=9, size=20))

    def test_the_way_back_may_start_outside_or_inside_autocast(self):
        one = case()
        with torch.autocast(DEVICE, LOW):
            inside = values_and_gradients(one, FAST)
            with dispatch.kernel_mode(FAST):
                z, _ = one.unroll(autograd=False)
        outside = torch.autograd.grad(z, one.states, values(*z.shape).to(z))[0]
        assert torch.equal(outside, inside["states"])


class TestGradients:
    def test_no_two_share_memory(self):
        """They are clipped in place."""
        one = case(layers=3, steps=1)
        found = values_and_gradients(one, FAST)
        assert len({place(found[name]) for name in one.leaves}) == len(one.leaves)

    def test_the_way_back_may_be_gone_twice(self):
        one = case()
        leaves = list(one.leaves.values())
        with dispatch.kernel_mode(FAST):
            loss = one.unroll(autograd=False)[0].square().sum()
        first = torch.autograd.grad(loss, leaves, retain_graph=True)
        second = torch.autograd.grad(loss, leaves)
        assert all(map(torch.equal, first, second))

    def test_a_gradient_of_the_gradient_is_refused(self):
        one = case()
        with dispatch.kernel_mode(FAST):
            loss = one.unroll(autograd=False)[0].square().sum()
        first = torch.autograd.grad(loss, one.states, create_graph=True)
        with pytest.raises(RuntimeError, match="once_differentiable"):
            first[0].sum().backward()

    def test_nothing_is_trained_through_alpha(self):
        with dispatch.kernel_mode(FAST):
            z, alpha = case().unroll(autograd=False)
        assert z.requires_grad
        assert not alpha.requires_grad

    def test_what_it_is_given_stays_as_it_is(self):
        one = case()
        given = [*one.leaves.values(), one.words]
        before = [each.detach().clone() for each in given]
        values_and_gradients(one, FAST)
        assert all(map(torch.equal, given, before))

    def test_frozen_weights(self):
        one = case()
        expected = values_and_gradients(one, FAST)["states"]
        one.decoder.requires_grad_(False)
        with dispatch.kernel_mode(FAST):
            z, _ = one.unroll(autograd=False)
        found = torch.autograd.grad(z, one.states, values(*z.shape).to(z))[0]
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


class TestWhatIsKept:
    def test_nothing_without_gradients(self):
        one = case()
        with dispatch.kernel_mode(FAST):
            expected = one.unroll(autograd=False)
            with torch.no_grad(), Made() as made:
                found = one.unroll(autograd=False)
        assert not made.kept(*found, *one.leaves.values())
        for each, other in zip(found, expected, strict=True):
            assert not each.requires_grad
            assert torch.equal(each, other)

    def test_it_goes_with_the_gradients(self):
        one = case(dropout=0.0)
        with dispatch.kernel_mode(FAST), Made() as made:
            z, alpha = one.unroll(autograd=False)
        leaves = one.leaves.values()
        assert made.kept(z, alpha, *leaves)
        z.sum().backward()
        assert not made.kept(z, alpha, *leaves, *(each.grad for each in leaves))


class TestChoice:
    @pytest.mark.parametrize(
        "given", [{"masked": True}, {"dtype": torch.float64}, {"length": 5}], ids=str
    )
    def test_plain_where_kernels_do_not_fit(self, monkeypatch, given):
        from ledeline.model.gpu import decoder

        def fail(*_: Any) -> None:
            raise AssertionError("the kernels ran")

        monkeypatch.setattr(decoder, "unroll", fail)
        monkeypatch.setattr(dispatch, "MAX_SOURCE", 4)
        one = case(**given)
        found, expected = values_and_gradients(one, FAST), values_and_gradients(one, "plain")
        assert all(torch.equal(found[name], value) for name, value in expected.items())
        values_and_gradients(case(), "plain")
        with pytest.raises(AssertionError, match="the kernels ran"):
            values_and_gradients(case(), FAST)


@needs_gpu
class TestCuda:
    @pytest.mark.parametrize(
        ("batch", "length", "steps"), [(256, 44, 14), (256, 44, 44), (1, 130, 14), (300, 61, 9)]
    )
    def test_cuda_at_paper_size(self, batch, length, steps):
        as_plain(case(batch=batch, length=length, steps=steps, size=400), 1e-4)

    @pytest.mark.parametrize(("layers", "steps"), [(1, 14), (2, 44)])
    def test_cuda_at_paper_size_in_bfloat16(self, layers, steps):
        close_in_low_precision(case(layers=layers, batch=256, length=44, steps=steps, size=400))

    def test_cuda_bit_for_bit_each_time(self):
        one = case(batch=256, length=44, steps=44, size=400)
        with torch.autocast("cuda", torch.bfloat16):
            first, second = values_and_gradients(one, FAST), values_and_gradients(one, FAST)
        assert all(torch.equal(first[name], second[name]) for name in first)
