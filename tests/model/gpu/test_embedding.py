"""The gradient of an embedding as kernels against torch's own: runs of all kinds, types, order."""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from ledeline.model.gpu import dispatch
from ledeline.model.layers.attention import Attention
from ledeline.model.layers.decoder import Decoder
from ledeline.model.layers.dropout import Dropout
from ledeline.model.layers.encoder import Encoder, embed

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
FAST: dispatch.KernelMode = "fused" if DEVICE == "cuda" else "interpreted"
C = 32  # a chunk

pytestmark = [
    pytest.mark.skipif(not dispatch.has_triton(), reason="needs Triton"),
    pytest.mark.usefixtures("nothing_is_a_number_before_it_is_written"),
]
needs_gpu = pytest.mark.skipif(DEVICE != "cuda", reason="needs a GPU")


def kernels(ids: Tensor, weight: Tensor) -> Tensor:
    from ledeline.model.gpu import embedding

    assert embedding.CHUNK == C
    with dispatch.kernel_mode(FAST):
        return embedding.embed(ids, weight)


def gradient(run: Callable[[Tensor, Tensor], Tensor], ids: Tensor, grad_output: Tensor, types: int):
    """The gradient of a weight of so many types, in the type of the incoming gradient."""
    weight = torch.zeros(types, grad_output.shape[-1], dtype=grad_output.dtype, device=DEVICE)
    return torch.autograd.grad(run(ids, weight.requires_grad_()), weight, grad_output)[0]


def whole(*shape: int) -> Tensor:
    """Whole numbers, none of them 0: their sums are exact in any order."""
    generator = torch.Generator().manual_seed(3)
    return (torch.randint(1, 9, shape, generator=generator) * 2 - 9).float().to(DEVICE)


def numbers(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(3)).to(DEVICE)


def shuffled(runs: Sequence[int], rows: int = 1) -> Tensor:
    """Ids 1, 3, 5 ..., each so many times: others lie before, between and after. (B, J)."""
    ids = [2 * number + 1 for number, run in enumerate(runs) for _ in range(run)]
    random.Random(4).shuffle(ids)
    return torch.tensor(ids, dtype=torch.int64, device=DEVICE).view(rows, -1)


def exactly_as_torch(ids: Tensor, types: int, size: int = 2) -> None:
    grad_output = whole(*ids.shape, size)
    found = gradient(kernels, ids, grad_output, types)
    assert found.shape == (types, size)
    assert found.dtype == torch.float32
    assert torch.equal(found, gradient(functional.embedding, ids, grad_output, types))
    assert found[ids.unique()].any()


class TestRuns:
    @pytest.mark.parametrize(
        "runs",
        [
            pytest.param([1], id="one id"),
            pytest.param([1] * (2 * C + 3), id="all different"),
            pytest.param([5, 1, 9, 2], id="inside a chunk"),
            pytest.param([C], id="a chunk"),
            pytest.param([C, C, C], id="chunks"),
            pytest.param([C - 1, 1, C - 1, 1], id="up to the border"),
            pytest.param([C + 1], id="over the border by one"),
            pytest.param([C - 1, 2, 4], id="over the border from the last place"),
            pytest.param([20, 20, 20, 20], id="over each border"),
            pytest.param([3, C, C, C, 3], id="always from one chunk to the next"),
            pytest.param([10, 3 * C, 5], id="over many borders"),
            pytest.param([10, 4 * C - 10, 5], id="over many borders, up to one"),
            pytest.param([C, 3 * C, 2 * C], id="many chunks"),
            pytest.param([5 * C + 7], id="all the same"),
            pytest.param([C - 1, 32 * C + 1, 1], id="all chunks of a turn"),
            pytest.param([C - 1, 32 * C + 2, 1], id="one chunk of a second turn"),
            pytest.param([7, 70 * C, 7], id="three turns"),
        ],
    )
    def test_each_kind(self, runs):
        exactly_as_torch(shuffled(runs), 2 * len(runs) + 2)

    @settings(max_examples=25)
    @given(
        runs=st.lists(st.integers(1, 2 * C + 2), min_size=1, max_size=6),
        size=st.integers(1, 5),
        more=st.integers(0, 9),
    )
    @example(runs=[1], size=1, more=0)
    @example(runs=[C + 1, C - 1, 2 * C + 1], size=3, more=1)
    def test_any(self, runs, size, more):
        exactly_as_torch(shuffled(runs), 2 * len(runs) + more, size)

    @pytest.mark.parametrize("types", [1, 3, 20, 1000])
    def test_values_that_round(self, types):
        generator = torch.Generator().manual_seed(5)
        ids = torch.randint(types, (5, 41), generator=generator).to(DEVICE)
        grad_output = numbers(5, 41, 3)
        found = gradient(kernels, ids, grad_output, types)
        expected = gradient(functional.embedding, ids, grad_output.double(), types)
        assert (found - expected).abs().max() <= 1e-6 * expected.abs().max()

    def test_the_order_of_a_sum_hangs_on_the_places_alone(self):
        """Values far apart in size: a sum is 0 or 1, as the order goes, and the same each time.

        The interpreter adds one after the other; a GPU adds in pairs.
        """
        ids = torch.tensor([[3, 1, 3, 1, 3, 1]], device=DEVICE)
        grad_output = torch.tensor([1e8, 1.0, 1.0, 1e8, -1e8, -1e8], device=DEVICE).view(1, 6, 1)
        for values, in_turn in (
            (grad_output, [0, 0]),
            (grad_output[:, [0, 1, 4, 3, 2, 5]], [0, 1]),
        ):
            first = gradient(kernels, ids, values, 4)
            sums = first[[1, 3]].flatten().tolist()
            assert sums == in_turn or (DEVICE == "cuda" and set(sums) <= {0.0, 1.0})
            assert all(torch.equal(gradient(kernels, ids, values, 4), first) for _ in range(10))

    @pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
    @pytest.mark.parametrize("place", [0, 3, C - 1, C, 2 * C + 4])
    def test_what_is_not_finite_stays_in_its_row(self, value, place):
        ids = torch.arange(3 * C, device=DEVICE).div(6, rounding_mode="floor").view(1, -1)
        grad_output = whole(1, 3 * C, 2)
        expected = gradient(kernels, ids, grad_output, 16)
        grad_output[0, place, 1] = value
        found = gradient(kernels, ids, grad_output, 16)
        expected[place // 6, 1] = value
        assert torch.equal(found.nan_to_num(1e9), expected.nan_to_num(1e9))

    @pytest.mark.parametrize("length", [1, 5, C - 1, C, C + 1, 2 * C])
    def test_nothing_behind_the_ids_counts(self, length, monkeypatch):
        """There, more of the last one; and after the partial sums, nothing that is a number."""
        real, real_empty = Tensor.sort, Tensor.new_empty

        def with_more(ids: Tensor, **options: bool) -> tuple[Tensor, Tensor]:
            values, places = real(ids, **options)
            more = values[-1:].expand(3 * C)
            return torch.cat([values, more])[:length], torch.cat([places, more * 0])[:length]

        def nothing(one: Tensor, *shape: int, **options: Any) -> Tensor:
            if len(shape) < 2:  # Triton's interpreter
                return real_empty(one, *shape, **options)
            return one.new_full((shape[0] + 3 * C, *shape[1:]), math.nan, **options)[: shape[0]]

        monkeypatch.setattr(Tensor, "sort", with_more)
        monkeypatch.setattr(Tensor, "new_empty", nothing)
        ids, grad_output = torch.full((1, length), 2, device=DEVICE), whole(1, length, 2)
        found = gradient(kernels, ids, grad_output, 4)
        assert torch.equal(found[2], grad_output.sum((0, 1)))
        assert not found[[0, 1, 3]].any()


class TestSizes:
    @pytest.mark.parametrize("types", [32767, 32768, 32769, 70000])
    def test_types_beyond_16_bits(self, types):
        generator = torch.Generator().manual_seed(5)
        ids = torch.randint(types, (2, 20), generator=generator).to(DEVICE)
        ids[:, ::5] = types - 1
        ids[:, 1::5] = 0
        exactly_as_torch(ids, types, 1)

    @pytest.mark.parametrize(
        ("types", "dtype"), [(32767, torch.int16), (32768, torch.int32), (70000, torch.int32)]
    )
    def test_ids_are_sorted_in_as_few_bits_as_hold_them(self, types, dtype):
        from ledeline.model.gpu import embedding

        ids = torch.tensor([0, types - 1])
        narrow = embedding._narrow(ids, types)
        assert narrow.dtype == dtype
        assert torch.equal(narrow.long(), ids)

    @pytest.mark.parametrize("size", [1, 31, 32, 33, 127, 129, 200])
    def test_columns(self, size):
        """More than the blocks of either launch, and no multiple of them."""
        exactly_as_torch(shuffled([2, C, 3]), 8, size)

    @pytest.mark.parametrize("rows", [1, 5, 50])
    def test_a_batch(self, rows):
        exactly_as_torch(shuffled([7, 40, 3], rows), 8)

    @pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
    def test_nothing_to_look_up(self, shape):
        ids = torch.zeros(shape, dtype=torch.int64, device=DEVICE)
        assert torch.equal(
            gradient(kernels, ids, whole(*shape, 3), 4), torch.zeros(4, 3, device=DEVICE)
        )


class TestWhatIsOwed:
    def test_the_same_to_all(self):
        """As a sum hands it down: one number, stretched."""
        ids = shuffled([7, 40, 3], 5)
        grad_output = torch.full((), 0.5, device=DEVICE).expand(5, 10, 3)
        found = gradient(kernels, ids, grad_output, 7)
        assert torch.equal(found, 0.5 * ids.flatten().bincount(minlength=7)[:, None].expand(7, 3))

    @pytest.mark.parametrize("dimensions", [(0, 1), (1, 2), (0, 2)])
    def test_lying_apart(self, dimensions):
        ids, grad_output = shuffled([7, 40, 3], 5), whole(5, 10, 3)
        apart = grad_output.transpose(*dimensions).contiguous().transpose(*dimensions)
        assert not apart.is_contiguous()
        expected = gradient(functional.embedding, ids, grad_output, 7)
        assert torch.equal(gradient(kernels, ids, apart, 7), expected)

    @pytest.mark.parametrize("cut", [(slice(None), slice(3, 9)), (slice(1, None, 2), slice(4, 5))])
    def test_ids_lying_apart(self, cut):
        ids = shuffled([7, 40, 3], 5)[cut]
        assert not ids.is_contiguous()
        exactly_as_torch(ids, 7)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_in_16_bits(self, dtype):
        """They are still added up in 32: in 16, the sum would not get beyond 2048 or 256."""
        ids = torch.full((1, 3072), 2, device=DEVICE)
        grad_output = torch.ones(1, 3072, 1, dtype=dtype, device=DEVICE)
        found = gradient(kernels, ids, grad_output, 4)
        assert found.dtype == dtype
        assert found.flatten().tolist() == [0, 0, 3072, 0]

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_in_16_bits_as_in_32(self, dtype):
        ids, grad_output = shuffled([7, 40, 3], 5), numbers(5, 10, 9).to(dtype)
        found = gradient(kernels, ids, grad_output, 7)
        assert torch.equal(found, gradient(kernels, ids, grad_output.float(), 7).to(dtype))


class TestWhatIsKept:
    def test_nothing_but_the_ids(self):
        ids, weight = shuffled([7, 40, 3]), numbers(7, 3).requires_grad_()
        rows = kernels(ids, weight)  # must live on: with it goes what was saved
        saved = rows.grad_fn.saved_tensors
        assert [one.data_ptr() for one in saved] == [ids.data_ptr()]

    @pytest.mark.parametrize("guard", [torch.no_grad, torch.inference_mode])
    def test_rows_of_the_weight(self, guard):
        ids, weight = shuffled([7, 40, 3], 5), numbers(7, 3).requires_grad_()
        found = kernels(ids, weight)
        assert found.requires_grad
        assert torch.equal(found, weight[ids])
        with guard():
            again = kernels(ids, weight)
        assert not again.requires_grad
        assert torch.equal(again, found)

    def test_the_way_back_may_be_gone_twice(self):
        weight = numbers(7, 3).requires_grad_()
        loss = kernels(shuffled([7, 40, 3]), weight).square().sum()
        first = torch.autograd.grad(loss, weight, retain_graph=True)[0]
        assert torch.equal(first, torch.autograd.grad(loss, weight)[0])

    def test_a_gradient_of_the_gradient_is_refused(self):
        weight = numbers(7, 3).requires_grad_()
        loss = kernels(shuffled([7, 40, 3]), weight).square().sum()
        first = torch.autograd.grad(loss, weight, create_graph=True)[0]
        with pytest.raises(RuntimeError, match="once_differentiable"):
            first.sum().backward()

    def test_what_it_is_given_stays_as_it_is(self):
        ids, grad_output = shuffled([7, 40, 3]), numbers(1, 50, 3)
        before = ids.clone(), grad_output.clone()
        gradient(kernels, ids, grad_output, 7)
        assert all(map(torch.equal, (ids, grad_output), before))


class TestChoice:
    @pytest.fixture
    def seen(self, monkeypatch) -> list[Tensor]:
        """The weights that the kernels were asked for."""
        from ledeline.model.gpu import embedding

        seen = []
        real = embedding.embed
        monkeypatch.setattr(
            embedding, "embed", lambda ids, weight: seen.append(weight) or real(ids, weight)
        )
        return seen

    def test_plain_where_kernels_do_not_fit(self, seen):
        table, ids = nn.Embedding(7, 3).to(DEVICE), shuffled([7, 4, 3])
        with dispatch.kernel_mode("plain"):
            plain = embed(ids, table.weight)
        with dispatch.kernel_mode(FAST), torch.no_grad():
            without = embed(ids, table.weight)
        with dispatch.kernel_mode(FAST):
            double = embed(ids, nn.Embedding(7, 3).to(DEVICE).double().weight)
        assert not seen
        with dispatch.kernel_mode(FAST):
            found = embed(ids, table.weight)
        assert len(seen) == 1
        assert seen[0] is table.weight
        assert torch.equal(found, plain)
        assert torch.equal(found, without)
        assert double.dtype == torch.float64

    def test_both_sides_take_them(self, seen):
        encoder = Encoder(9, 3, 4, 1, Dropout(0.0)).to(DEVICE)
        decoder = Decoder(9, 3, 4, 1, Attention(4), Dropout(0.0)).to(DEVICE)
        ids = torch.tensor([[1, 2, 1], [5, 5, 8]], device=DEVICE)
        with dispatch.kernel_mode(FAST):
            encoder(ids)
            decoder._embedded(ids)
        assert [id(one) for one in seen] == [
            id(encoder.embedding.weight),
            id(decoder.embedding.weight),
        ]
        assert "embedding.weight" in encoder.state_dict()
        assert "embedding.weight" in decoder.state_dict()


def drawn(kind: str, batch: int = 256, length: int = 44, types: int = 5131) -> Tensor:
    """Ids as in a batch of the paper's size."""
    generator = torch.Generator().manual_seed(6)
    if kind == "one type":
        return torch.full((batch, length), 5, device=DEVICE)
    ids = torch.randint(7 if kind == "7 types" else types, (batch, length), generator=generator)
    if kind == "padded":  # as the SPM's targets
        ids[torch.rand(batch, length, generator=generator) < 0.6] = 0
    return ids.to(DEVICE)


KINDS = ("uniform", "padded", "7 types", "one type")


@needs_gpu
class TestCuda:
    @pytest.mark.parametrize("kind", KINDS)
    def test_cuda_at_paper_size(self, kind):
        ids, grad_output = drawn(kind), numbers(256, 44, 200)
        found = gradient(kernels, ids, grad_output, 5131)
        expected = torch.zeros(5131, 200, dtype=torch.float64, device=DEVICE)
        expected.index_add_(0, ids.flatten(), grad_output.flatten(0, 1).double())
        assert (found - expected).abs().max() <= 1e-6 * expected.abs().max()
        absent = torch.ones(5131, dtype=torch.bool, device=DEVICE)
        absent[ids.flatten()] = False
        assert not found[absent].any()

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize(("batch", "length"), [(256, 44), (1024, 64), (3, 17), (1, 1)])
    def test_cuda_bit_for_bit_each_time(self, kind, batch, length):
        ids, grad_output = drawn(kind, batch, length), numbers(batch, length, 200)
        first = gradient(kernels, ids, grad_output, 5131)
        for _ in range(5):
            assert torch.equal(gradient(kernels, ids, grad_output, 5131), first)

    @pytest.mark.parametrize("kind", KINDS)
    def test_cuda_whole_numbers(self, kind):
        exactly_as_torch(drawn(kind), 5131, 200)

    def test_cuda_in_a_graph(self):
        """Captured with other ids than those it is replayed with."""
        ids, grad_output, stream = drawn("uniform"), numbers(256, 44, 200), torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(stream):
            gradient(kernels, ids, grad_output, 5131)
            with torch.cuda.graph(graph, stream=stream):
                found = gradient(kernels, ids, grad_output, 5131)
        torch.cuda.synchronize()
        for kind in KINDS:
            ids.copy_(drawn(kind))
            expected = gradient(kernels, ids, grad_output, 5131)
            graph.replay()
            torch.cuda.synchronize()
            assert torch.equal(found, expected)

    def test_cuda_no_length_compiles_again(self):
        from ledeline.model.gpu import embedding

        def compiled() -> list[int]:
            device = torch.cuda.current_device()
            every = (embedding._add_chunk, embedding._add_partial_sums)
            return [len(one.device_caches[device][0]) for one in every]

        gradient(kernels, drawn("7 types", 5, 3), numbers(5, 3, 24), 5131)
        before = compiled()
        assert min(before) > 0
        for batch, length in ((1, 1), (16, 16), (2, 17), (256, 44)):
            ids, grad_output = drawn("7 types", batch, length), numbers(batch, length, 24)
            gradient(kernels, ids, grad_output, 5131)
        assert compiled() == before
