"""The steps at once against the steps one by one: values, all gradients, all types."""

import gc
import weakref

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ledeline.data.dataset import Batch
from ledeline.model.layers.attention import Memory
from ledeline.model.layers.dropout import seed
from ledeline.model.layers.unroll import LayerInputs, WordInputs, unroll
from unrolled import case, same, values

MIXED = [([4, 5, 6, 4, 9], [5]), ([6, 5], [4]), ([4, 6, 8, 10], [6, 4])]
EQUAL = [([4, 5, 6, 4], [5]), ([6, 5, 9, 10], [4, 7])]


def close_in_bfloat16(layers: int, device: str) -> None:
    """Products in bfloat16 lose digits, but hardly more than they do step by step."""
    sizes = {"layers": layers, "batch": 8, "steps": 9, "length": 9, "size": 32}
    one = case(**sizes, dtype=torch.float32, device=device)
    exact = one.values_and_gradients(autograd=True)
    with torch.autocast(device, torch.bfloat16):
        found, plain = (
            one.values_and_gradients(autograd=False),
            one.values_and_gradients(autograd=True),
        )
    assert found["z"].dtype == plain["z"].dtype == torch.bfloat16
    for name, value in exact.items():
        assert name in ("z", "alpha") or found[name].dtype == torch.float32
        allowed = max(0.03, 1.5 * (plain[name] - value).norm() / value.norm())
        assert (found[name] - value).norm() / value.norm() < allowed, name


class TestDecoder:
    @pytest.mark.parametrize("layers", [1, 2, 3])
    @pytest.mark.parametrize("masked", [True, False])
    @pytest.mark.parametrize("dropout", [0.0, 0.4])
    def test_as_step_after_step(self, layers, masked, dropout):
        one = case(layers=layers, masked=masked, dropout=dropout)
        same(
            one.values_and_gradients(autograd=False), one.values_and_gradients(autograd=True), 1e-13
        )

    @settings(max_examples=40)
    @given(
        layers=st.integers(1, 3),
        batch=st.integers(1, 4),
        length=st.integers(1, 5),
        steps=st.integers(1, 5),
        size=st.integers(1, 9),
        dropout=st.sampled_from([0.0, 0.3]),
        masked=st.booleans(),
    )
    def test_in_any_size(self, layers, batch, length, steps, size, dropout, masked):
        one = case(
            layers=layers,
            batch=batch,
            length=length,
            steps=steps,
            size=size,
            dropout=dropout,
            masked=masked,
        )
        same(
            one.values_and_gradients(autograd=False), one.values_and_gradients(autograd=True), 1e-11
        )

    def test_in_float32(self):
        one = case(batch=8, steps=20, length=9, size=32, dtype=torch.float32)
        found, expected = (
            one.values_and_gradients(autograd=False),
            one.values_and_gradients(autograd=True),
        )
        assert found["z"].dtype == torch.float32
        same(found, expected, 3e-5)

    @pytest.mark.parametrize("layers", [1, 3])
    def test_in_bfloat16(self, layers):
        close_in_bfloat16(layers, "cpu")

    def test_the_way_back_may_start_outside_or_inside_autocast(self):
        one = case(dtype=torch.float32)
        with torch.autocast("cpu", torch.bfloat16):
            inside = one.values_and_gradients(autograd=False)
            z, _ = one.unroll(autograd=False)
        outside = torch.autograd.grad((z * values(*z.shape).to(z)).sum(), one.states)[0]
        assert torch.equal(outside, inside["states"])

    def test_bit_for_bit_each_time(self):
        one = case(batch=8, steps=9, length=9, size=32, dtype=torch.float32)
        first, second = (
            one.values_and_gradients(autograd=False),
            one.values_and_gradients(autograd=False),
        )
        assert all(torch.equal(first[name], second[name]) for name in first)

    def test_no_gradient_means_no_such_function(self):
        one = case()
        with torch.no_grad():
            z, _ = one.unroll(autograd=False)
            expected, _ = one.unroll(autograd=True)
        assert torch.equal(z, expected)

    def test_frozen_words(self):
        """The gradient is there as long as anything wants one."""
        one = case()
        expected = one.values_and_gradients(autograd=True)["states"]
        one.decoder.requires_grad_(False)
        z, _ = one.unroll(autograd=False)
        found = torch.autograd.grad((z * values(*z.shape)).sum(), one.states)[0]
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-13)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
class TestOnGpu:
    @pytest.mark.parametrize("layers", [1, 3])
    @pytest.mark.parametrize("masked", [True, False])
    def test_as_step_after_step(self, layers, masked):
        one = case(layers=layers, masked=masked, device="cuda")
        same(
            one.values_and_gradients(autograd=False), one.values_and_gradients(autograd=True), 1e-12
        )

    @pytest.mark.parametrize("layers", [1, 3])
    def test_in_bfloat16(self, layers):
        close_in_bfloat16(layers, "cuda")


class TestFunction:
    @staticmethod
    def given(layers: int = 2) -> list[Tensor]:
        """Every tensor that gets a gradient: B = 2, I = 3, J = 3, D = 2, H = 2."""
        shapes = [(2, 3, 2), (8, 2), (8,), (2, 2), (2, 4), (2, 3, 2), (2, 3, 2)]
        shapes += [(8, 4), (2, 2), (2, 2)] * layers + [(8,)] * (layers - 1)
        return [values(*shape, number=n).requires_grad_() for n, shape in enumerate(shapes)]

    @staticmethod
    def call(*given: Tensor, masked: bool = False) -> tuple[Tensor, Tensor]:
        """z and alpha; half of what goes from layer to layer is dropped."""
        words, (attentional, mix, keys, states), rest = (
            WordInputs(*given[:3]),
            given[3:7],
            given[7:],
        )
        num = (len(rest) + 1) // 4
        starts, biases = rest[: 3 * num], (None, *rest[3 * num :])
        layers = [
            LayerInputs(starts[3 * n], biases[n], *starts[3 * n + 1 : 3 * n + 3])
            for n in range(num)
        ]
        masks = [values(2, 3, 2, number=n).gt(0) * 2.0 for n in range(1, num)]
        mask = torch.tensor([[True, True, False], [True, True, True]]) if masked else None
        return unroll(words, layers, masks, attentional, mix, Memory(states, keys, mask))

    @pytest.mark.parametrize("layers", [1, 2, 3])
    @pytest.mark.parametrize("masked", [True, False])
    def test_gradients_by_small_differences(self, layers, masked):
        def function(*given: Tensor) -> Tensor:
            return self.call(*given, masked=masked)[0]

        assert torch.autograd.gradcheck(function, self.given(layers))

    def test_nothing_is_trained_through_alpha(self):
        z, alpha = self.call(*self.given())
        assert z.requires_grad
        assert not alpha.requires_grad

    def test_a_gradient_of_the_gradient_is_refused(self):
        given = self.given()
        loss = self.call(*given)[0].square().sum()
        first = torch.autograd.grad(loss, given, create_graph=True)
        with pytest.raises(RuntimeError, match="once_differentiable"):
            first[0].sum().backward()

    def test_the_way_back_may_be_gone_twice(self):
        given = self.given()
        loss = self.call(*given)[0].sum()
        first = torch.autograd.grad(loss, given, retain_graph=True)
        second = torch.autograd.grad(loss, given)
        assert all(map(torch.equal, first, second))

    def test_what_it_is_given_stays_as_it_is(self):
        given = self.given()
        before = [one.detach().clone() for one in given]
        self.call(*given)[0].sum().backward()
        assert all(map(torch.equal, given, before))

    def test_buffers_go_with_the_gradients(self):
        z = self.call(*self.given())[0]
        saved = z.grad_fn.saved_tensors
        buffers = [weakref.ref(one) for one in saved if not one.requires_grad]
        del saved
        assert len(buffers) == 11  # the words, 2 of attention, 4 of each layer
        z.sum().backward()
        gc.collect()
        assert all(one() is None for one in buffers)


class TestSystem:
    @pytest.mark.parametrize("pairs", [MIXED, EQUAL], ids=["mixed", "equal"])
    @pytest.mark.parametrize("dropout", [0.0, 0.3])
    def test_losses_and_gradients(self, make, system, pairs, dropout):
        model = make(system, dropout=dropout).train()
        found = []
        for plain in (False, True):
            model.decoder.autograd_only = plain
            seed(1, 1)
            losses = model(model.pairs(Batch.of(pairs)))
            model.zero_grad()
            losses.total().mean().backward()
            gradients = {name: one.grad for name, one in model.named_parameters()}
            found.append({"loss": losses.total().detach(), **gradients})
        same(*found, 1e-12)

    def test_analysis_is_the_same(self, make, system):
        model = make(system)
        pairs = model.pairs(Batch.of(MIXED))
        at_once = model.trace(pairs)
        with torch.no_grad():
            stepwise = model.trace(pairs)
        for found, expected in zip(at_once, stepwise, strict=True):
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-13)
