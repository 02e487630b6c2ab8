"""The engine is the same system: close to `EncDec` in float32, near it in int8, and each source
has the same bits in whatever batch it is.
"""

import numpy as np
import pytest
import torch

from ledeline.config import SearchConfig
from ledeline.data.dataset import padded
from ledeline.model.pairs import Sources
from ledeline.runtime import kernels
from ledeline.runtime.cpu import has_int8
from ledeline.runtime.engine import Engine
from ledeline.runtime.linear import Float32Linear, Int8Linear
from ledeline.search import search
from ledeline.text.subwords import BOS

SIZES = {"embedding": 24, "hidden": 48, "vocabulary": 300, "spread": 0.25}
KINDS = [
    "float32",
    pytest.param("int8", marks=pytest.mark.skipif(not has_int8(), reason="no VNNI")),
]
needs_onednn = pytest.mark.skipif(not torch._C._has_mkldnn, reason="no oneDNN")


@pytest.fixture(params=["as built", "torch alone"])
def built(request, monkeypatch):
    """With the loops in C, where there are any, and without."""
    if request.param == "torch alone":
        monkeypatch.setattr(kernels, "library", None)
    elif kernels.library is None:
        pytest.skip("pip found no C compiler")


def rows_of(lengths, vocabulary=300, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(4, vocabulary, length).tolist() for length in lengths]


def steps(writer, rows, num_steps=4, num_hypotheses=3):
    """Log-probabilities of some steps, with several hypotheses of each source from step two."""
    words = torch.full((len(rows), 1), BOS)
    with torch.inference_mode():
        state, memory = writer.encode(*Sources.of(*padded(rows)))
        found = []
        for step in range(num_steps):
            logs, state = writer.step(words, state, memory)
            found.append(logs[..., :300].float())
            if not step:
                state = _spread(state, num_hypotheses)
            words = torch.arange(num_hypotheses).expand(len(rows), -1) + 5 + step
    return found


def _spread(state, number):
    if isinstance(state, torch.Tensor):
        return state.expand(-1, number, -1).contiguous()
    if not isinstance(state, tuple):
        return state
    leaves = [_spread(leaf, number) for leaf in state]
    return type(state)(*leaves) if hasattr(state, "_fields") else tuple(leaves)


@pytest.mark.parametrize("lengths", [[9, 9, 9], [1, 17, 4, 30]], ids=["equal", "mixed"])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.usefixtures("built")
def test_float32_is_the_system(make, system, layers, lengths):
    model, rows = make(system, layers=layers, **SIZES), rows_of(lengths)
    expected, found = steps(model, rows), steps(Engine(model), rows)
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one, other, atol=2e-5)
    assert expected[-1].exp().max() > 0.02  # far from uniform


@pytest.mark.skipif(not has_int8(), reason="no VNNI")
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.usefixtures("built")
def test_int8_is_near_the_system(make, system, layers):
    model, rows = make(system, layers=layers, **SIZES), rows_of([1, 17, 4, 30])
    for one, other in zip(steps(Engine(model, "int8"), rows), steps(model, rows), strict=True):
        assert (one - other).abs().mean() < 0.03
        assert torch.corrcoef(torch.stack([one.flatten(), other.flatten()]))[0, 1] > 0.999


@needs_onednn
@pytest.mark.parametrize("precision", KINDS)
@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.usefixtures("built")
def test_a_source_has_the_same_bits_in_every_batch(make, precision, num_threads):
    torch.set_num_threads(num_threads)
    model = make("EncDec+sGate+SPM", **SIZES)
    engine, rows = Engine(model, precision), rows_of([31, 1, 16, 17, 8, 31, 40, 2, 5])
    config = SearchConfig(beam=11, n_best=11, min_length=3, max_length=12)
    alone = [search(engine, *padded([row]), config)[0] for row in rows]
    assert len({one[0].ids for one in alone}) > 3
    for order in (range(9), [8, 3, 1, 6], [4, 4, 2], [7, 0]):
        together = search(engine, *padded([rows[place] for place in order]), config)
        assert together == [alone[place] for place in order]  # to the last bit of the cost
    torch.set_num_threads(1)


@needs_onednn
@pytest.mark.parametrize("linear_type", [Float32Linear, Int8Linear])
def test_a_row_of_a_product_has_the_same_bits_in_every_batch(linear_type):
    if linear_type is Int8Linear and not has_int8():
        pytest.skip("no VNNI")
    generator = torch.Generator().manual_seed(0)
    weight, bias = torch.randn(144, 96, generator=generator), torch.randn(144, generator=generator)
    linear, values = linear_type(weight, bias), torch.rand(70, 96, generator=generator) * 2 - 1
    together = linear(linear.quantize(values))
    for start, stop in [(0, 1), (5, 7), (3, 6), (0, 13), (60, 70), (1, 70)]:
        alone = linear(linear.quantize(values[start:stop]))
        assert torch.equal(alone, together[start:stop])


@pytest.mark.skipif(not has_int8(), reason="no VNNI")
@pytest.mark.parametrize("bound", [0.3, 1.0, 2.0])
def test_int8_is_the_product_of_what_the_levels_stand_for(bound):
    generator = torch.Generator().manual_seed(1)
    weight, bias = torch.randn(40, 64, generator=generator), torch.randn(40, generator=generator)
    values = (torch.rand(9, 64, generator=generator) * 2 - 1) * bound
    values[0, 0], values[0, 1] = bound, -bound  # the ends of the range are levels, too
    linear = Int8Linear(weight, bias)
    scales = weight.abs().amax(1, keepdim=True) / 127
    levels = torch.floor(values * 127 / bound + 0.5)
    assert levels.abs().max() == 127
    expected = (levels * bound / 127) @ ((weight / scales).round() * scales).T + bias
    assert torch.allclose(linear(linear.quantize(values, bound), bound), expected, atol=1e-4)


@pytest.mark.skipif(not has_int8(), reason="no VNNI")
def test_a_weight_need_not_be_laid_out_in_rows():
    weight = torch.randn(64, 40, generator=torch.Generator().manual_seed(2))
    values = torch.ones(1, 64) / 2
    for linear_type in (Float32Linear, Int8Linear):
        laid_out, turned = linear_type(weight.t().contiguous()), linear_type(weight.t())
        one, other = (linear(linear.quantize(values)) for linear in (laid_out, turned))
        assert torch.equal(one, other)
