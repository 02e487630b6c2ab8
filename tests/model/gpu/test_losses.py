"""The two heads as kernels against the plain ones: values, gradients, types, and what they keep."""

import gc
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ledeline.model.addons.addon import Sizes
from ledeline.model.addons.spm import SourcePrediction, SourcePredictionConfig, source_losses
from ledeline.model.gpu import dispatch
from ledeline.model.gpu import losses as fused
from ledeline.model.loss import smoothed_token_losses, token_losses
from ledeline.model.pairs import Pairs

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
FAST: dispatch.KernelMode = "fused" if DEVICE == "cuda" else "interpreted"
# Triton's interpreter cuts values to bfloat16 instead of rounding them.
LOW = torch.bfloat16 if DEVICE == "cuda" else torch.float16
WIDE = 2100  # more than a block of any kernel, and no multiple of one

pytestmark = pytest.mark.skipif(not dispatch.has_triton(), reason="needs Triton")
needs_gpu = pytest.mark.skipif(DEVICE != "cuda", reason="needs a GPU")

Tensors = dict[str, Tensor]


class Case(NamedTuple):
    """Feeds, the two layers on them, and what they are to predict."""

    attentional: Tensor  # (B, J, H)
    output: torch.nn.Linear
    spm: SourcePrediction
    pairs: Pairs
    grad_output: (
        Tensor  # (B, J): incoming gradient of each step's loss; the first column, of each pair's
    )

    def losses(self, mode: dispatch.KernelMode) -> tuple[Tensor, Tensor]:
        with dispatch.kernel_mode(mode):
            return (
                token_losses(self.attentional, self.output, self.pairs.targets),
                source_losses(self.attentional, self.spm.output, self.pairs, self.spm.c),
            )

    @property
    def leaves(self) -> dict[str, Tensor]:
        named = (*self.output.named_parameters("output"), *self.spm.named_parameters("spm"))
        return {"attentional": self.attentional, **dict(named)}

    def values_and_gradients(self, mode: dispatch.KernelMode) -> Tensors:
        """Both losses and all gradients; those of the attentional for each head."""
        target, source = self.losses(mode)
        answers = {"target": target, "source": source}
        for name, losses, grad_output, layer in (
            ("target", target, self.grad_output, self.output),
            ("source", source, self.grad_output[:, 0], self.spm.output),
        ):
            leaves = {"attentional": self.attentional, "weight": layer.weight, "bias": layer.bias}
            gradients = torch.autograd.grad((losses * grad_output).sum(), list(leaves.values()))
            answers |= {f"{name} {leaf}": one for leaf, one in zip(leaves, gradients, strict=True)}
        return answers


def values(*shape: int, number: int = 9) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(number))


def case(
    *,
    vocabulary: int = 37,
    batch: int = 3,
    length: int = 6,
    steps: int = 5,
    size: int = 8,
    masked: bool = True,
    scale: float = 1.0,
    c: float = 10.0,
) -> Case:
    """Random in all; with a mask, pairs have 1, 2, ... steps and source words, and masked words."""
    spm = SourcePrediction(SourcePredictionConfig(c=c), Sizes(vocabulary, size, size)).to(DEVICE)
    output = torch.nn.Linear(size, vocabulary, device=DEVICE)
    for number, parameter in enumerate((*output.parameters(), *spm.parameters())):
        parameter.data.copy_(scale * values(*parameter.shape, number=number))
    generator = torch.Generator().manual_seed(1)

    def words(width: int) -> Tensor:
        return torch.randint(vocabulary, (batch, width), generator=generator).to(DEVICE)

    def mask(width: int) -> Tensor:
        return (torch.arange(width) < 1 + torch.arange(batch).unsqueeze(1) % width).to(DEVICE)

    pairs = Pairs(
        sources=words(length),
        source_lengths=None,
        source_mask=mask(length) if masked else None,
        targets=words(steps),
        target_mask=mask(steps) if masked else None,
        headline_mask=mask(steps),
    )
    attentional = values(batch, steps, size, number=7).to(DEVICE).requires_grad_()
    grad_output = values(batch, steps, number=8).to(DEVICE)
    return Case(attentional, output, spm, pairs, grad_output)


def paper(steps: int = 44, batch: int = 256) -> Case:
    """The paper's sizes, with logits as after some training."""
    one = case(
        vocabulary=5131, batch=batch, length=44, steps=steps, size=400, masked=False, scale=0.1
    )
    return one._replace(grad_output=torch.full_like(one.grad_output, 1 / batch))


def same(found: Tensors, expected: Tensors, tolerance: float = 1e-5) -> None:
    """All alike, each within the tolerance times its own largest value."""
    assert found.keys() == expected.keys()
    for name, one in expected.items():
        assert found[name].shape == one.shape, name
        assert found[name].dtype == torch.float32, name
        error = (found[name].double() - one.double()).abs().max().item()
        assert error <= tolerance * one.double().abs().max().item(), name


def close_in_low_precision(one: Case) -> None:
    """Products in 16 bits lose digits, but hardly more than they do in plain PyTorch."""
    exact = one.values_and_gradients("plain")
    with torch.autocast(DEVICE, LOW):
        found, plain = one.values_and_gradients(FAST), one.values_and_gradients("plain")
    for name, value in exact.items():
        assert found[name].dtype == torch.float32, name
        allowed = max(0.002, 1.5 * (plain[name] - value).norm() / value.norm())
        assert allowed < 0.1, name
        assert (found[name] - value).norm() / value.norm() < allowed, name


class Largest(TorchDispatchMode):
    """Notes the most values that any tensor of a type had."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: dict[torch.dtype, int] = {}

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        for one in made if isinstance(made, tuple | list) else (made,):
            if isinstance(one, Tensor):
                self.sizes[one.dtype] = max(self.sizes.get(one.dtype, 0), one.numel())
        return made


class TestFloat32:
    @pytest.mark.parametrize("vocabulary", [37, 64, 70, WIDE])
    @pytest.mark.parametrize("masked", [True, False])
    def test_as_plain(self, vocabulary, masked):
        one = case(vocabulary=vocabulary, masked=masked)
        same(one.values_and_gradients(FAST), one.values_and_gradients("plain"))

    @settings(max_examples=8)
    @given(
        vocabulary=st.integers(1, 140),
        batch=st.integers(1, 5),
        steps=st.integers(1, 10),
        size=st.integers(1, 17),
        masked=st.booleans(),
        c=st.sampled_from([1.0, 10.0]),
    )
    @example(vocabulary=2, batch=1, steps=1, size=1, masked=False, c=1.0)
    @example(vocabulary=65, batch=2, steps=9, size=7, masked=True, c=10.0)
    def test_in_any_size(self, vocabulary, batch, steps, size, masked, c):
        one = case(vocabulary=vocabulary, batch=batch, steps=steps, size=size, masked=masked, c=c)
        found, expected = one.values_and_gradients(FAST), one.values_and_gradients("plain")
        for name, value in expected.items():  # some are nothing but what rounding left, so: 1
            torch.testing.assert_close(found[name], value, rtol=3e-5, atol=3e-5, msg=name)

    def test_words_that_lie_apart(self):
        """Targets and masks may be a part of something wider."""
        one = case(masked=True)
        wide = torch.cat([one.pairs.targets, one.pairs.targets], 1)
        apart = Pairs(**{**vars(one.pairs), "targets": wide[:, :5]})
        assert not apart.targets.is_contiguous()
        same(
            one._replace(pairs=apart).values_and_gradients(FAST), one.values_and_gradients("plain")
        )

    def test_feeds_that_lie_apart(self):
        one = case()
        attentional = (
            one.attentional.detach().transpose(0, 1).contiguous().transpose(0, 1).requires_grad_()
        )
        assert not attentional.is_contiguous()
        same(
            one._replace(attentional=attentional).values_and_gradients(FAST),
            one.values_and_gradients("plain"),
        )

    def test_nothing_owed(self):
        one = case()
        answers = one._replace(grad_output=torch.zeros_like(one.grad_output)).values_and_gradients(
            FAST
        )
        assert not any(one.any() for name, one in answers.items() if " " in name)

    def test_a_step_that_does_not_count(self):
        one = case(masked=True)
        mask = one.pairs.target_mask
        other = torch.where(mask.unsqueeze(-1), one.attentional, -3 * one.attentional).detach()
        changed = one._replace(
            attentional=other.requires_grad_(), grad_output=one.grad_output * mask
        )
        first, second = (
            one._replace(grad_output=one.grad_output * mask).values_and_gradients(FAST),
            changed.values_and_gradients(FAST),
        )
        assert not torch.equal(first.pop("target"), second.pop("target"))
        assert all(torch.equal(second[name], one) for name, one in first.items())
        assert not first["source attentional"][~mask].any()
        assert not first["target attentional"][~mask].any()
        assert first["source attentional"][mask].any()


class TestExtremes:
    @pytest.mark.parametrize("shift", [-1e4, 0.0, 1e4])
    @pytest.mark.parametrize("scale", [1.0, 100.0])
    def test_large_logits(self, scale, shift):
        """Whole numbers, so that no product rounds and all that differs is what comes after."""
        one = case(vocabulary=70, scale=scale)
        for leaf in one.leaves.values():
            leaf.data.round_()
        for layer in (one.output, one.spm.output):
            layer.bias.data += shift
        found, expected = one.values_and_gradients(FAST), one.values_and_gradients("plain")
        assert expected["target"].max() > 5 * scale
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, rtol=1e-5, atol=1e-5 * scale, msg=name)

    @pytest.mark.parametrize("vocabulary", [37, WIDE])
    def test_all_alike(self, vocabulary):
        one = case(vocabulary=vocabulary, scale=0.0, c=2.0)
        target, source = one.losses(FAST)
        expected = torch.tensor(float(vocabulary), device=DEVICE).log()
        torch.testing.assert_close(target, expected.expand_as(target))
        same(one.values_and_gradients(FAST) | {"target": target}, one.values_and_gradients("plain"))
        assert source.min() > 0

    @pytest.mark.parametrize("place", [0, WIDE - 1])
    def test_one_type_has_it_all(self, place):
        """Its logit is far above, in the first block or the last; for the others nothing is left."""
        one = case(vocabulary=WIDE, scale=0.0, masked=False)
        one.pairs.targets.fill_(place)
        one.pairs.sources.fill_(place)
        for layer in (one.output, one.spm.output):
            layer.bias.data[place] = 300.0
        answers = one.values_and_gradients(FAST)
        assert not answers["target"].any()
        assert not answers["target bias"].any()
        torch.testing.assert_close(answers["source"], torch.full_like(answers["source"], 0.1))
        assert not answers["source bias"].any()


class TestLowPrecision:
    @pytest.mark.parametrize(("vocabulary", "masked"), [(70, True), (70, False), (WIDE, True)])
    def test_close(self, vocabulary, masked):
        close_in_low_precision(
            case(vocabulary=vocabulary, batch=8, steps=9, size=32, masked=masked, scale=0.3)
        )

    def test_feeds_in_low_precision(self):
        """As the decoder gives them under autocast: their gradient has their type."""
        one = case(scale=0.3)
        low = one._replace(attentional=one.attentional.detach().to(LOW).requires_grad_())
        with torch.autocast(DEVICE, LOW):
            found, expected = low.values_and_gradients(FAST), one.values_and_gradients(FAST)
        assert found["target attentional"].dtype == found["source attentional"].dtype == LOW
        assert all(torch.equal(found[name].float(), value) for name, value in expected.items())

    def test_the_way_back_may_start_outside_or_inside_autocast(self):
        one = case(scale=0.3)
        with torch.autocast(DEVICE, LOW):
            inside = one.values_and_gradients(FAST)
            target, _ = one.losses(FAST)
        outside = torch.autograd.grad((target * one.grad_output).sum(), one.output.weight)[0]
        assert torch.equal(outside, inside["target weight"])

    @pytest.mark.parametrize("mode", [FAST, "plain"])
    def test_logits_are_never_in_float32(self, mode):
        one = case(vocabulary=WIDE, batch=4, steps=7, masked=True)
        logits = one.grad_output.numel() * WIDE
        with Largest() as largest, torch.autocast(DEVICE, LOW):
            one.values_and_gradients(mode)
        assert largest.sizes[LOW] >= logits
        assert (largest.sizes[torch.float32] >= logits) == (mode == "plain")


class TestWhatIsKept:
    def test_logits_once_and_in_low_precision(self):
        one = case(vocabulary=WIDE, batch=4, steps=7)
        with torch.autocast(DEVICE, LOW):
            losses = one.losses(FAST)
        for loss in (losses[0], losses[1]._base if losses[1]._base is not None else losses[1]):
            saved = loss.grad_fn.saved_tensors
            assert {each.dtype for each in saved} == {LOW}
            assert sum(each.numel() >= one.grad_output.numel() * WIDE for each in saved) == 1

    def test_it_goes_with_the_gradients(self):
        target, _ = case().losses(FAST)
        saved = target.grad_fn.saved_tensors
        buffers = [weakref.ref(one) for one in saved if not one.requires_grad]
        del saved
        assert len(buffers) == 2  # the filled weight, the logits' gradient
        target.sum().backward()
        gc.collect()
        assert all(one() is None for one in buffers)

    @pytest.mark.parametrize("guard", [torch.no_grad, torch.inference_mode])
    def test_nothing_without_gradients(self, guard):
        one = case()
        expected = one.losses(FAST)
        with guard():
            found = one.losses(FAST)
        for loss, other in zip(found, expected, strict=True):
            assert not loss.requires_grad
            assert torch.equal(loss, other)

    @pytest.mark.parametrize("wanted", ["attentional", "output.weight", "output.bias"])
    def test_a_gradient_for_one_alone(self, wanted):
        one = case()
        expected = one.values_and_gradients(FAST)["target " + wanted.split(".")[-1]]
        for name, leaf in one.leaves.items():
            leaf.requires_grad_(name == wanted)
        target, _ = one.losses(FAST)
        found = torch.autograd.grad((target * one.grad_output).sum(), one.leaves[wanted])[0]
        assert torch.equal(found, expected)

    def test_the_way_back_may_be_gone_twice(self):
        one = case()
        leaves = list(one.leaves.values())
        loss = torch.cat([each.flatten() for each in one.losses(FAST)]).square().sum()
        first = torch.autograd.grad(loss, leaves, retain_graph=True)
        second = torch.autograd.grad(loss, leaves)
        assert all(map(torch.equal, first, second))

    def test_a_gradient_of_the_gradient_is_refused(self):
        one = case()
        loss = one.losses(FAST)[0].square().sum()
        first = torch.autograd.grad(loss, one.attentional, create_graph=True)
        with pytest.raises(RuntimeError, match="once_differentiable"):
            first[0].sum().backward()

    def test_what_it_is_given_stays_as_it_is(self):
        one = case()
        given = [*one.leaves.values(), one.pairs.targets, one.pairs.sources, one.pairs.target_mask]
        before = [each.detach().clone() for each in given]
        one.values_and_gradients(FAST)
        assert all(map(torch.equal, given, before))


class TestChoice:
    def test_plain_where_kernels_do_not_fit(self, monkeypatch):

        def fail(*_):
            raise AssertionError("the kernels ran")

        monkeypatch.setattr(fused, "_linear_losses", fail)
        one = case()
        for mode in ("plain", FAST):
            double = one._replace(
                attentional=one.attentional.double(),
                output=one.output.double(),
                spm=one.spm.double(),
            )
            assert double.losses(mode)[0].dtype == torch.float64
        single = case()
        single.losses("plain")
        with pytest.raises(AssertionError, match="the kernels ran"):
            single.losses(FAST)
        with pytest.raises(AssertionError, match="the kernels ran"), dispatch.kernel_mode(FAST):
            source_losses(single.attentional, single.spm.output, single.pairs, single.spm.c)


@needs_gpu
class TestCuda:
    @pytest.mark.parametrize("steps", [14, 44])
    def test_cuda_at_paper_size(self, steps):
        one = paper(steps)
        same(one.values_and_gradients("fused"), one.values_and_gradients("plain"), 3e-5)

    @pytest.mark.parametrize("steps", [14, 44])
    def test_cuda_at_paper_size_in_bfloat16(self, steps):
        close_in_low_precision(paper(steps))

    def test_cuda_bit_for_bit_each_time(self):
        one = paper()
        with torch.autocast("cuda", torch.bfloat16):
            first, second = one.values_and_gradients("fused"), one.values_and_gradients("fused")
        assert all(torch.equal(first[name], second[name]) for name in first)

    def test_cuda_in_a_graph(self):
        """Captured with other attentional and words than those it is replayed with."""
        one, stream = paper(14), torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(stream), torch.autocast("cuda", torch.bfloat16):
            expected = one.values_and_gradients("fused")
            right = [one.attentional.detach().clone(), one.pairs.targets.clone()]
            one.attentional.data.mul_(-2)
            one.pairs.targets.fill_(7)
            with torch.cuda.graph(graph, stream=stream):
                found = one.values_and_gradients("fused")
        torch.cuda.synchronize()
        one.attentional.data.copy_(right[0])
        one.pairs.targets.copy_(right[1])
        for _ in range(2):
            graph.replay()
        torch.cuda.synchronize()
        assert all(torch.equal(found[name], value) for name, value in expected.items())

    def test_cuda_no_length_compiles_again(self):
        from ledeline.model.gpu import loss_kernels as kernels

        every = (kernels.target_row, kernels.source_row, kernels.source_sum)
        every = (*every, kernels.source_gradient)

        def compiled() -> list[int]:
            return [len(one.device_caches[torch.cuda.current_device()][0]) for one in every]

        case(steps=3, batch=5).values_and_gradients("fused")
        before = compiled()
        assert min(before) > 0
        for batch, steps in ((1, 1), (16, 16), (2, 17), (7, 32)):
            case(steps=steps, batch=batch).values_and_gradients("fused")
        assert compiled() == before

    def test_cuda_memory(self):
        """Of both heads together two logits in bfloat16, and little else; also of a large batch."""
        for batch, steps in ((256, 44), (1024, 64)):
            one = paper(steps, batch)
            logits = 2 * one.grad_output.numel() * 5184
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            with torch.autocast("cuda", torch.bfloat16):
                target, source = one.losses("fused")
            (target.mean() + source.mean()).backward()
            assert torch.cuda.max_memory_allocated() - before < 2.8 * logits


class TestSmoothing:
    @staticmethod
    def run(one: Case, mode: dispatch.KernelMode, smoothing: float) -> Tensors:
        with dispatch.kernel_mode(mode):
            inputs = one.attentional, one.output, one.pairs.targets, smoothing
            losses, plain = smoothed_token_losses(*inputs)
        leaves = [one.attentional, *one.output.parameters()]
        gradients = torch.autograd.grad((losses * one.grad_output).sum(), leaves)
        return {"losses": losses, "plain": plain} | dict(zip("zWb", gradients, strict=True))

    @pytest.mark.parametrize("vocabulary", [5, 37, 64, WIDE])
    @pytest.mark.parametrize("smoothing", [0.1, 0.9])
    def test_as_plain(self, vocabulary: int, smoothing: float) -> None:
        one = case(vocabulary=vocabulary)
        same(self.run(one, FAST, smoothing), self.run(one, "plain", smoothing))

    def test_what_is_reported_is_without_it(self) -> None:
        one = case()
        found = self.run(one, FAST, 0.3)
        torch.testing.assert_close(found["plain"], one.losses("plain")[0])
        assert not torch.allclose(found["losses"], found["plain"])

    def test_without_a_gradient(self) -> None:
        one = case()
        with torch.no_grad(), dispatch.kernel_mode(FAST):
            inputs = one.attentional, one.output, one.pairs.targets, 0.2
            losses, plain = smoothed_token_losses(*inputs)
        expected = self.run(one, "plain", 0.2)
        torch.testing.assert_close(losses, expected["losses"])
        torch.testing.assert_close(plain, expected["plain"])
