"""The loops in C do what torch does, for every shape, and the same to each row in every batch."""

import math
import shutil
from functools import partial
from importlib import metadata

import numpy as np
import pytest
import torch

from ledeline.model.format.int8 import quantize
from ledeline.runtime import cpu, kernels
from ledeline.runtime.cpu import has_int8
from ledeline.runtime.linear import Int8Linear

needs_library = pytest.mark.skipif(kernels.library is None, reason="pip found no C compiler")
SIZES = [1, 7, 16, 33, 48, 400]


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


@pytest.fixture(autouse=True, params=cpu.KINDS[:-1])  # VNNI is for whole layers alone
def _kind(request):
    """Each kind of processor that the machine at hand can be."""
    if kernels.library is None:
        yield
        return
    wanted = cpu.KINDS.index(request.param)
    used = kernels.library.ledeline_limit(wanted)
    try:
        if used != wanted:
            pytest.skip(f"needs a CPU with {request.param}, and may use it")
        yield
    finally:
        kernels.library.ledeline_limit(cpu.limit())


@pytest.fixture
def without(monkeypatch):
    """Calls a function as if nothing had been built."""

    def called(function, *arguments):
        with monkeypatch.context() as patch:
            patch.setattr(kernels, "library", None)
            return function(*arguments)

    return called


def test_it_is_built_where_there_is_a_compiler():
    """Looks whether an installation with a compiler has lost its kernels."""
    try:
        metadata.version("ledeline")
    except metadata.PackageNotFoundError:
        pytest.skip("the package is not installed")
    if not (shutil.which("cc") or shutil.which("gcc")):
        pytest.skip("there is no C compiler")
    assert kernels.library is not None, "run pip install -e . again"


@needs_library
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("addend", ["nothing", "rows", "words"])
def test_an_lstm_cell(generator, without, size, addend):
    gates, cells = (
        torch.randn(3, 5, 4 * size, generator=generator),
        torch.randn(3, 5, size, generator=generator),
    )
    gates[0, 0, 0], gates[0, 0, -1] = 200.0, -200.0  # far beyond where gates are open or closed
    words = torch.randint(0, 9, (3, 5), generator=generator)
    arguments = {
        "nothing": (),
        "rows": (torch.randn(3, 5, 4 * size, generator=generator),),
        "words": (torch.randn(9, 4 * size, generator=generator), words),
    }[addend]
    expected = without(kernels.lstm_cell, gates.clone(), cells, *arguments)
    for one, other in zip(
        kernels.lstm_cell(gates.clone(), cells, *arguments), expected, strict=True
    ):
        assert torch.allclose(one, other, atol=2e-6)


@needs_library
def test_a_cell_takes_tensors_that_lie_apart(generator, without):
    gates, cells = (
        torch.randn(4, 2, 64, generator=generator),
        torch.randn(4, 2, 16, generator=generator),
    )
    words = torch.randint(0, 9, (2, 1), generator=generator).expand(2, 4).t()
    table = torch.randn(9, 64, generator=generator)
    given = gates.transpose(0, 1), cells.transpose(0, 1), table, words.t()
    expected = without(kernels.lstm_cell, given[0].clone(), *given[1:])
    for one, other in zip(kernels.lstm_cell(*given), expected, strict=True):
        assert torch.allclose(one, other, atol=2e-6)


@needs_library
@pytest.mark.parametrize("size", SIZES)
def test_tanh(generator, size):
    values = torch.randn(3, size, generator=generator) * 5
    values[0, 0] = -100.0
    expected = values.double().tanh()
    assert (kernels.tanh_(values) - expected).abs().max() < 5e-7


@needs_library
@pytest.mark.parametrize("types", [1, 15, 16, 100, 5136])
def test_log_softmax(generator, types):
    logits = torch.randn(6, types, generator=generator) * 10
    logits[1] += 1000
    if types > 15:
        logits[2, 3:9] = -math.inf
    logs = torch.empty_like(logits)
    kernels.log_softmax(logits, logs)
    expected = logits.double().log_softmax(-1)
    assert torch.allclose(logs.double(), expected, atol=1e-4, rtol=1e-5)
    assert torch.equal(logs.isinf(), expected.isinf())


@pytest.mark.parametrize("built", [True, False])
@pytest.mark.parametrize("size", SIZES)
def test_levels(generator, without, size, built):
    if built and kernels.library is None:
        pytest.skip("pip found no C compiler")
    values = torch.rand(4, 3, size, generator=generator) * 2 - 1
    values[0, 0, 0], values[-1, -1, -1] = 1.0, -1.0
    places = torch.zeros(4, 3, 2 * size, dtype=torch.uint8)
    quantize_into = kernels.quantize_into
    if not built:
        quantize_into = partial(without, kernels.quantize_into)
    quantize_into(values, places[..., size:], 127.0)
    assert torch.equal(places[..., size:].double(), (values.double() * 127 + 128.5).floor())
    assert not places[..., :size].any()
    uneven = torch.zeros(4, 5, size, dtype=torch.uint8)
    quantize_into(values, uneven[:, 1:4], 127.0)
    assert torch.equal(uneven[:, 1:4], places[..., size:])
    assert not uneven[:, [0, 4]].any()


@pytest.mark.parametrize("built", [True, False])
def test_a_value_between_two_levels_has_one_of_them_wherever_it_lies(without, built):
    if built and kernels.library is None:
        pytest.skip("pip found no C compiler")
    quantize_into = kernels.quantize_into
    if not built:
        quantize_into = partial(without, kernels.quantize_into)
    halves = (torch.arange(-126, 127) - 0.5) / 127
    values = torch.stack([halves, halves.nextafter(torch.tensor(2.0)), halves * 0.9, halves * 0.7])
    expected, found = (torch.empty(values.shape, dtype=torch.uint8) for _ in range(2))
    quantize_into(values, expected, 127.0)
    quantize_into(values.t().contiguous().t(), found, 127.0)
    assert torch.equal(found, expected)
    apart = torch.zeros(4, 2, values.shape[1], dtype=torch.uint8)
    quantize_into(values, apart[:, 1], 127.0)
    uneven = torch.zeros(values.shape[1], 4, dtype=torch.uint8).t()
    quantize_into(values, uneven, 127.0)
    alone = torch.empty(values.shape[1], dtype=torch.uint8)
    quantize_into(values[2], alone, 127.0)
    assert torch.equal(apart[:, 1], expected)
    assert torch.equal(uneven, expected)
    assert torch.equal(alone, expected[2])


@needs_library
@pytest.mark.parametrize("seed", range(20))
def test_the_best_are_those_of_a_stable_sort(seed):
    rng = np.random.default_rng(seed)
    sources, beam, types, k = rng.integers(1, [4, 6, 300, 30])
    logs, totals = rng.normal(size=(sources, beam, types)), rng.normal(size=(sources, beam))
    if seed % 2:  # many equal ones
        logs, totals = np.round(logs), np.round(totals)
    logs[rng.random(logs.shape) < 0.3 * (seed % 4)] = -np.inf
    logs, totals = torch.from_numpy(logs).float(), torch.from_numpy(totals).float()
    k = min(int(k), int(beam * types))
    found = kernels.top_k(logs, totals, k)
    assert found is not None
    ranked = (totals[..., None] + logs).flatten(1).sort(dim=1, descending=True, stable=True)
    assert torch.equal(found[0], ranked.values[:, :k])
    possible = found[0] > -math.inf
    assert torch.equal(found[1][possible], ranked.indices[:, :k][possible])


def test_the_best_of_what_c_does_not_take_are_left_to_torch():
    logs, totals = torch.zeros(2, 3, 40), torch.zeros(2, 3)
    assert kernels.top_k(logs.double(), totals.double(), 3) is None
    assert kernels.top_k(logs.transpose(0, 1), totals.t(), 3) is None


@pytest.fixture
def _vnni():
    """A processor with VNNI, as the machine at hand is one."""
    if kernels.library is not None:
        kernels.library.ledeline_limit(cpu.limit())
    if not (has_int8() and kernels.has_lstm(48)):
        pytest.skip("needs a CPU with VNNI and the loops in C")


@pytest.mark.usefixtures("_vnni")
@pytest.mark.parametrize("_kind", ["portable"], indirect=True)
@pytest.mark.parametrize("batch", [1, 2, 3, 5, 8, 13])
def test_a_layer_of_lstms_is_its_steps(generator, batch):
    size, steps = 48, 7
    weights = [torch.randn(4 * size, size, generator=generator) * 0.3 for _ in range(2)]
    inputs = torch.randn(steps, 2, batch, 4 * size, generator=generator)
    packed = kernels.packed_lstm([quantize(weight) for weight in weights])
    hidden, cells = kernels.lstm(inputs, packed)
    products = [Int8Linear(weight) for weight in weights]
    h, c = torch.zeros(2, batch, size), torch.zeros(2, batch, size)
    for step in range(steps):
        own = torch.stack([p(p.quantize(h[side])) for side, p in enumerate(products)])
        h, c = kernels.lstm_cell(
            own if step else torch.zeros_like(own), c, inputs[step].contiguous()
        )
        # A level may fall to the other side, which is worth no addend than this.
        assert torch.allclose(hidden[step], h, atol=2e-3)
        assert torch.allclose(cells[step], c, atol=2e-3)
    alone, _ = kernels.lstm(inputs[:, :, -1:].contiguous(), packed)
    assert torch.equal(alone[:, :, 0], hidden[:, :, -1])


def test_sizes_that_c_has_no_layer_for(monkeypatch):
    assert not kernels.has_lstm(40)
    monkeypatch.setattr(kernels, "library", None)
    assert not kernels.has_lstm(48)
