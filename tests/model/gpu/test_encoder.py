"""A layer of the encoder as kernels against torch's own LSTM: values, ends, all gradients."""

import copy
from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from ledeline.model.gpu import dispatch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
FAST: dispatch.KernelMode = "fused" if DEVICE == "cuda" else "interpreted"
# Triton's interpreter cuts values to bfloat16 instead of rounding them.
LOW = torch.bfloat16 if DEVICE == "cuda" else torch.float16
OUTPUTS = ("states", "last state", "last cell")

pytestmark = [
    pytest.mark.skipif(not dispatch.has_triton(), reason="needs Triton"),
    pytest.mark.usefixtures("nothing_is_a_number_before_it_is_written"),
]
needs_gpu = pytest.mark.skipif(DEVICE != "cuda", reason="needs a GPU")

Tensors = dict[str, Tensor]
Outputs = tuple[Tensor, Tensor, Tensor]


def kernels(lstm: nn.LSTM, values: Tensor) -> Outputs:
    from ledeline.model.gpu import encoder

    with dispatch.kernel_mode(FAST):
        return encoder.bidirectional_sum(lstm, values)


def definition(lstm: nn.LSTM, values: Tensor) -> Outputs:
    """`h_i = fwd_i + bwd_i`, and the same of the ends."""
    both, (hidden, cell) = lstm(values)
    forward, backward = both.chunk(2, -1)
    return forward + backward, hidden[0] + hidden[1], cell[0] + cell[1]


class Case(NamedTuple):
    """A layer, its input, and the incoming gradient of each output."""

    lstm: nn.LSTM
    values: Tensor  # (B, I, D)
    grad_outputs: Outputs  # (B, I, H), (B, H), (B, H)

    @property
    def leaves(self) -> dict[str, Tensor]:
        return {"values": self.values, **dict(self.lstm.named_parameters())}

    def exact(self) -> "Case":
        """The same in float64, where nothing of note is rounded."""
        double = self.values.detach().double().requires_grad_()
        return Case(
            copy.deepcopy(self.lstm).double(),
            double,
            tuple(one.double() for one in self.grad_outputs),
        )

    def values_and_gradients(
        self, run: Callable[[nn.LSTM, Tensor], Outputs], used: tuple[str, ...] = OUTPUTS
    ) -> Tensors:
        """The outputs, and the gradients of a loss that uses some of them."""
        outputs = dict(zip(OUTPUTS, run(self.lstm, self.values), strict=True))
        grad_outputs = dict(zip(OUTPUTS, self.grad_outputs, strict=True))
        gradients = torch.autograd.grad(
            [outputs[name] for name in used],
            list(self.leaves.values()),
            [grad_outputs[name].to(outputs[name].dtype) for name in used],
        )
        return {**outputs, **dict(zip(self.leaves, gradients, strict=True))}


def numbers(*shape: int, number: int = 9) -> Tensor:
    generator = torch.Generator().manual_seed(number)
    return torch.randn(shape, generator=generator).to(DEVICE)


def case(batch: int = 3, length: int = 3, width: int = 5, size: int = 6) -> Case:
    """Random in all, with weights that neither fade nor saturate."""
    lstm = nn.LSTM(width, size, batch_first=True, bidirectional=True).to(DEVICE)
    for number, parameter in enumerate(lstm.parameters()):
        scale = parameter.shape[-1] ** -0.5 if parameter.dim() > 1 else 0.5
        parameter.data.copy_(scale * numbers(*parameter.shape, number=number))
    grad_outputs = (batch, length, size), (batch, size), (batch, size)
    return Case(
        lstm,
        numbers(batch, length, width, number=20).requires_grad_(),
        tuple(numbers(*shape, number=21 + n) for n, shape in enumerate(grad_outputs)),
    )


def same(found: Tensors, expected: Tensors, tolerance: float = 1e-5) -> None:
    """All alike, each within the tolerance times its own largest value, or a tenth.

    The two directions may cancel each other, and leave little but rounding.
    """
    assert found.keys() == expected.keys()
    for name, one in expected.items():
        assert found[name].shape == one.shape, name
        assert found[name].dtype == torch.float32, name
        error = (found[name].double() - one).abs().max().item()
        assert error <= tolerance * max(one.abs().max().item(), 0.1), name


def close_in_low_precision(one: Case) -> None:
    """Products in 16 bits lose digits, but hardly more than they do in torch's own LSTM."""
    exact = one.exact().values_and_gradients(definition)
    with torch.autocast(DEVICE, LOW):
        found = one.values_and_gradients(kernels)
        # torch has no LSTM in float16 on a CPU
        plain = one.values_and_gradients(definition) if DEVICE == "cuda" else exact
    assert found["states"].dtype == found["last state"].dtype == LOW
    assert found["last cell"].dtype == torch.float32
    for name, value in exact.items():
        assert name in OUTPUTS or found[name].dtype == torch.float32, name
        allowed = max(0.03, 1.5 * (plain[name].double() - value).norm() / value.norm())
        assert (found[name].double() - value).norm() / value.norm() < allowed, name


class TestFloat32:
    @pytest.mark.parametrize(
        ("batch", "length", "width", "size"),
        [(3, 4, 5, 6), (70, 3, 7, 5), (65, 2, 16, 17), (2, 9, 3, 33), (5, 1, 9, 13), (1, 1, 1, 1)],
    )
    def test_as_torch(self, batch, length, width, size):
        one = case(batch, length, width, size)
        same(one.values_and_gradients(kernels), one.exact().values_and_gradients(definition))

    @settings(max_examples=8)
    @given(
        batch=st.integers(1, 6),
        length=st.integers(1, 5),
        width=st.integers(1, 20),
        size=st.integers(1, 20),
    )
    @example(batch=1, length=2, width=1, size=1)
    @example(batch=2, length=2, width=8, size=16)
    def test_in_any_size(self, batch, length, width, size):
        one = case(batch, length, width, size)
        same(one.values_and_gradients(kernels), one.exact().values_and_gradients(definition))

    @pytest.mark.parametrize("length", [1, 3])
    @pytest.mark.parametrize(
        "used",
        [OUTPUTS[:1], OUTPUTS[1:2], OUTPUTS[2:], OUTPUTS[::2]],
        ids=" and ".join,
    )
    def test_some_outputs_unused(self, used, length):
        one = case(length=length)
        same(
            one.values_and_gradients(kernels, used),
            one.exact().values_and_gradients(definition, used),
        )

    def test_the_same_is_owed_to_all(self):
        """As a sum hands it down: one number, stretched."""
        one = case(batch=4)
        stretched = tuple(
            torch.full((), 0.5, device=DEVICE).expand_as(each) for each in one.grad_outputs
        )
        assert all(set(each.stride()) == {0} for each in stretched)
        one = one._replace(grad_outputs=stretched)
        same(one.values_and_gradients(kernels), one.exact().values_and_gradients(definition))

    def test_what_is_owed_lies_apart(self):
        one = case(batch=4)
        turned = tuple(
            each.transpose(0, 1).contiguous().transpose(0, 1) for each in one.grad_outputs
        )
        assert not any(each.is_contiguous() for each in turned)
        same(
            one._replace(grad_outputs=turned).values_and_gradients(kernels),
            one.exact().values_and_gradients(definition),
        )

    @pytest.mark.parametrize("dimensions", [(0, 1), (1, 2), (0, 2)])
    def test_values_that_lie_apart(self, dimensions):
        one = case(batch=4)
        apart = one.values.detach().transpose(*dimensions).contiguous().transpose(*dimensions)
        assert not apart.is_contiguous()
        found = one._replace(values=apart.requires_grad_()).values_and_gradients(kernels)
        same(found, one.exact().values_and_gradients(definition))

    def test_a_layer_on_a_layer(self):
        def gradients(
            run: Callable[[nn.LSTM, Tensor], Outputs], below: Case, above: Case
        ) -> Tensors:
            states, *_ = run(above.lstm, run(below.lstm, below.values)[0])
            leaves = below.leaves
            found = torch.autograd.grad(states, list(leaves.values()), above.grad_outputs[0])
            return dict(zip(leaves, found, strict=True))

        below, above = case(), case(width=6)
        same(gradients(kernels, below, above), gradients(definition, below.exact(), above.exact()))


class TestLowPrecision:
    def test_close(self):
        close_in_low_precision(case(batch=8, length=5, width=20, size=33))

    def test_values_in_low_precision(self):
        """As a layer below gives them under autocast: their gradient has their type."""
        one = case()
        values = one.values.detach().to(LOW)
        low = one._replace(values=values.requires_grad_())
        exact = one._replace(values=values.detach().float().requires_grad_())
        with torch.autocast(DEVICE, LOW):
            found, expected = low.values_and_gradients(kernels), exact.values_and_gradients(kernels)
        assert found["values"].dtype == LOW
        expected["values"] = expected["values"].to(LOW)
        assert all(torch.equal(found[name], value) for name, value in expected.items())

    def test_the_way_back_may_start_outside_or_inside_autocast(self):
        one = case()
        with torch.autocast(DEVICE, LOW):
            inside = one.values_and_gradients(kernels)
            states, hidden, cell = kernels(one.lstm, one.values)
        grad_outputs = [
            each.to(out.dtype)
            for each, out in zip(one.grad_outputs, (states, hidden, cell), strict=True)
        ]
        outside = torch.autograd.grad([states, hidden, cell], one.values, grad_outputs)[0]
        assert torch.equal(outside, inside["values"])


class TestGradients:
    def test_no_two_share_memory(self):
        """They are clipped in place."""
        one = case()
        found = torch.autograd.grad(
            kernels(one.lstm, one.values), list(one.leaves.values()), one.grad_outputs
        )
        assert len({each.untyped_storage().data_ptr() for each in found}) == len(one.leaves)

    def test_the_way_back_may_be_gone_twice(self):
        one = case()
        loss = sum(each.square().sum() for each in kernels(one.lstm, one.values))
        leaves = list(one.leaves.values())
        first = torch.autograd.grad(loss, leaves, retain_graph=True)
        second = torch.autograd.grad(loss, leaves)
        assert all(map(torch.equal, first, second))

    def test_a_gradient_of_the_gradient_is_refused(self):
        one = case()
        loss = kernels(one.lstm, one.values)[0].square().sum()
        first = torch.autograd.grad(loss, one.values, create_graph=True)
        with pytest.raises(RuntimeError, match="once_differentiable"):
            first[0].sum().backward()

    def test_what_it_is_given_stays_as_it_is(self):
        one = case()
        given = [*one.leaves.values(), *one.grad_outputs]
        before = [each.detach().clone() for each in given]
        one.values_and_gradients(kernels)
        assert all(map(torch.equal, given, before))

    @pytest.mark.parametrize("guard", [torch.no_grad, torch.inference_mode])
    def test_none_wanted(self, guard):
        one = case()
        expected = kernels(one.lstm, one.values)
        with guard():
            found = kernels(one.lstm, one.values)
        assert not any(each.requires_grad for each in found)
        assert all(map(torch.equal, found, expected))

    def test_frozen_weights(self):
        one = case()
        expected = one.values_and_gradients(kernels)["values"]
        one.lstm.requires_grad_(False)
        found = torch.autograd.grad(kernels(one.lstm, one.values), one.values, one.grad_outputs)[0]
        assert torch.equal(found, expected)


@needs_gpu
class TestCuda:
    @pytest.mark.parametrize(("batch", "length"), [(256, 44), (300, 130), (1, 61), (64, 7)])
    def test_cuda_at_paper_size(self, batch, length):
        one = case(batch, length, 200, 400)
        same(one.values_and_gradients(kernels), one.exact().values_and_gradients(definition), 3e-5)

    @pytest.mark.parametrize(("batch", "length"), [(256, 44), (3, 16)])
    def test_cuda_at_paper_size_in_bfloat16(self, batch, length):
        close_in_low_precision(case(batch, length, 400, 400))

    def test_cuda_bit_for_bit_each_time(self):
        one = case(256, 44, 200, 400)
        with torch.autocast("cuda", torch.bfloat16):
            first, second = one.values_and_gradients(kernels), one.values_and_gradients(kernels)
        assert all(torch.equal(first[name], second[name]) for name in first)
