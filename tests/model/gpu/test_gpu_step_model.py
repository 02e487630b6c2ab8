"""The writer of a GPU is the same system: on a CPU, in the interpreter, and on a GPU."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from ledeline.config import SearchConfig
from ledeline.data.dataset import padded
from ledeline.model.gpu import dispatch
from ledeline.model.gpu.gpu_step_model import GpuStepModel, plain_lstm_cell
from ledeline.model.pairs import Sources
from ledeline.search import Ensemble, greedy, search
from ledeline.text.subwords import BOS, EOS

V = 300
SIZES = {"embedding": 24, "hidden": 48, "vocabulary": V, "spread": 0.25}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
FAST: dispatch.KernelMode = "fused" if DEVICE == "cuda" else "interpreted"
needs_triton = pytest.mark.skipif(not dispatch.has_triton(), reason="no Triton")
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


def rows_of(lengths, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(4, V, length).tolist() for length in lengths]


@torch.inference_mode()
def steps(writer, rows, num_steps=4, places=3):
    """Log-probabilities of some steps, with several hypotheses of each source from step two."""
    device = writer.device
    words = torch.full((len(rows), 1), BOS, device=device)
    state, memory = writer.encode(*Sources.of(*padded(rows), device))
    found = []
    for step in range(num_steps):
        logs, state = writer.step(words, state, memory)
        found.append(logs[..., :V].float().cpu())
        if not step:
            state = spread(state, places)
        words = (torch.arange(places).expand(len(rows), -1) + 5 + step).to(device)
    return found


def spread(tree, number):
    if isinstance(tree, torch.Tensor):
        return tree.expand(-1, number, -1).contiguous()
    leaves = [spread(leaf, number) for leaf in tree]
    return type(tree)(*leaves) if hasattr(tree, "_fields") else tuple(leaves)


def assert_close(found, expected, atol):
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one, other, atol=atol)
    assert expected[-1].exp().max() > 0.02  # far from uniform


@pytest.mark.parametrize("lengths", [[9, 9, 9], [1, 17, 4, 30]], ids=["equal", "mixed"])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_float32_is_the_system(make, system, layers, lengths):
    model, rows = make(system, layers=layers, **SIZES).float(), rows_of(lengths)
    assert_close(steps(GpuStepModel(model), rows), steps(model, rows), 2e-5)


def test_float16_is_near_the_system(make, system):
    model, rows = make(system, **SIZES).float(), rows_of([1, 17, 4, 30])
    found, expected = steps(GpuStepModel(model, "float16"), rows), steps(model, rows)
    assert_close(found, expected, 0.02)
    assert not torch.allclose(found[-1], expected[-1], atol=1e-5)


def test_a_word_that_is_no_type_is_impossible(make):
    model = make("EncDec", **SIZES).float()
    words = torch.full((1, 1), BOS)
    with torch.inference_mode():
        logs, _ = GpuStepModel(model).step(
            words, *GpuStepModel(model).encode(torch.tensor([[5, 6]]))
        )
    assert logs.shape[-1] == 304
    assert (logs[..., V:] == -torch.inf).all()


@needs_triton
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("with_words", [True, False])
def test_the_cell_in_one_pass(dtype, with_words):
    from ledeline.model.gpu import step_kernels

    size, device = 300, DEVICE
    generator = torch.Generator().manual_seed(1)
    sums, cells, table = (
        torch.randn(shape, generator=generator).to(device)
        for shape in ((5, 4 * size), (5, size), (7, 4 * size))
    )
    words = torch.tensor([3, 0, 6, 3, 1], device=device) if with_words else None
    results = []
    for cell in (step_kernels.lstm_cell, plain_lstm_cell):
        wide = torch.zeros(2, 5, 2 * size, dtype=dtype, device=device)
        after = cell(
            sums,
            table if with_words else table[2],
            words,
            cells,
            wide[0, :, size:],
            wide[1, :, :size],
        )
        assert not wide[0, :, :size].any()
        assert not wide[1, :, size:].any()
        results.append((after, wide.float()))
    for one, other in zip(*results, strict=True):
        assert torch.allclose(one, other, atol=1e-6 if dtype == torch.float32 else 1e-3)


# --- search -------------------------------------------------------------------------------------

CONFIGS = [
    SearchConfig(beam=5, n_best=5),
    SearchConfig(beam=1),
    SearchConfig(beam=4, n_best=2, stop_early=True, block_ngrams=2, forbid_unknown=True),
    SearchConfig(beam=3, n_best=3, min_length=3, max_length=6),
]


def ending(make, system, **options):
    """A system whose headlines come to an end."""
    model = make(system, **SIZES, **options).float()
    model.output.bias.data[EOS] += 3
    return model


def assert_alike(found, expected, fewest=3):
    for one, other in zip(found, expected, strict=True):
        assert [each.ids for each in one] == [each.ids for each in other]
        assert [each.truncated for each in one] == [each.truncated for each in other]
        assert [each.cost for each in one] == pytest.approx([each.cost for each in other], abs=1e-3)
    assert len({each.ids for one in expected for each in one}) >= fewest
    assert not all(each.truncated for one in expected for each in one)


@pytest.mark.parametrize("config", CONFIGS, ids=range(len(CONFIGS)))
def test_it_is_searched_like_the_system(make, config):
    model, rows = ending(make, "EncDec+sGate"), rows_of([3, 8, 5, 8, 1, 12, 9])
    sources = padded(rows)
    assert_alike(search(GpuStepModel(model), *sources, config), search(model, *sources, config))


@needs_triton
def test_it_is_searched_like_the_system_by_kernels(make):
    model, sources = ending(make, "EncDec", seed=2), padded(rows_of([5, 3, 8]))
    config = replace(CONFIGS[2], n_best=4)
    expected = search(model, *sources, config)
    with dispatch.kernel_mode(FAST):
        assert_alike(search(GpuStepModel(model.to(DEVICE)), *sources, config), expected)


def test_several_are_an_ensemble(make):
    models = [ending(make, "EncDec", seed=seed) for seed in (1, 2)]
    sources = padded(rows_of([3, 8, 5]))
    found = search(Ensemble([GpuStepModel(one) for one in models]), *sources, CONFIGS[0])
    assert_alike(found, search(Ensemble(models), *sources, CONFIGS[0]))


# --- on a GPU -----------------------------------------------------------------------------------


@needs_cuda
@pytest.mark.parametrize("lengths", [[9, 9, 9], [1, 17, 4, 30]], ids=["equal", "mixed"])
def test_cuda_float32_is_the_system(make, system, lengths):
    model, rows = make(system, **SIZES).float(), rows_of(lengths)
    expected = steps(model, rows)
    assert_close(steps(GpuStepModel(model.cuda()), rows), expected, 1e-4)


@needs_cuda
def test_cuda_float16_is_near_the_system(make, system):
    model, rows = make(system, **SIZES).float(), rows_of([1, 17, 4, 30])
    expected = steps(model, rows)
    assert_close(steps(GpuStepModel(model.cuda(), "float16"), rows), expected, 0.02)


@needs_cuda
@pytest.mark.parametrize("config", CONFIGS, ids=range(len(CONFIGS)))
def test_cuda_finds_what_a_cpu_finds(make, config):
    model = ending(make, "EncDec+sGate+SPM")
    sources = padded(rows_of([*range(1, 40), 40, 40, 7, 7], seed=3))
    expected = search(model, *sources, config)
    model = model.cuda()
    assert_alike(search(GpuStepModel(model), *sources, config), expected)
    assert_alike(search(Ensemble([GpuStepModel(model)] * 2), *sources, config), expected)
    with dispatch.kernel_mode("plain"):
        assert_alike(search(GpuStepModel(model), *sources, config), expected)


@needs_cuda
def test_cuda_greedy_is_that_of_a_cpu(make):
    model, sources = ending(make, "EncDec"), padded(rows_of(range(1, 60), seed=4))
    expected = greedy(model, *sources)
    assert greedy(model.cuda(), *sources) == expected
