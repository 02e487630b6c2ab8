"""The fused choice of candidates is the plain one: in Triton's interpreter, or on a GPU."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ledeline.model.gpu import dispatch
from ledeline.search.top_k import BannedWords, select_top_k

needs_triton = pytest.mark.skipif(not dispatch.has_triton(), reason="no Triton")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def both(scores, totals, beam_sizes, k, banned, bias=None):
    """Fused and plain."""
    with dispatch.kernel_mode("interpreted"):
        fused = select_top_k(scores.clone(), totals, beam_sizes, k, banned, bias)
    with dispatch.kernel_mode("plain"):
        return fused, select_top_k(scores.clone(), totals, beam_sizes, k, banned, bias)


def put(array, dtype=None):
    return torch.from_numpy(np.asarray(array)).to(DEVICE, dtype)


def assert_same(fused, plain, exact=True):
    """What is kept, in its order; after it the totals say that a slot is empty."""
    number = plain.totals.shape[1]  # the plain one has no more than there are candidates
    assert (fused.totals[:, number:] == -torch.inf).all()
    fused = type(fused)(*(one[:, :number] for one in fused))
    there = plain.totals > -torch.inf
    assert torch.equal(fused.totals > -torch.inf, there)
    if exact:
        assert torch.equal(fused.totals, plain.totals)
    else:
        assert torch.allclose(fused.totals, plain.totals, atol=1e-5)
    assert torch.equal(fused.parents[there], plain.parents[there])
    assert torch.equal(fused.words[there], plain.words[there])


@needs_triton
@settings(max_examples=60)
@given(
    st.integers(0, 10**6),
    st.tuples(st.integers(1, 3), st.integers(1, 4), st.sampled_from([5, 16, 100, 129])),
    st.integers(1, 25),
    st.sampled_from([1, 3, 10, None]),
    st.sampled_from([0.0, 0.5, 0.99]),
)
def test_of_log_probabilities_the_same_are_kept(seed, shape, k, num_levels, impossible):
    """Bit for bit, also with few different values, so that many are equal."""
    rng = np.random.default_rng(seed)
    logs, totals = rng.normal(size=shape), rng.normal(size=shape[:2])
    if num_levels is not None:
        logs, totals = np.round(logs * num_levels), np.round(totals * num_levels)
    logs[rng.random(shape) < impossible] = -np.inf
    totals[rng.random(shape[:2]) < impossible / 2] = -np.inf
    repeats = put(rng.integers(0, shape[-1], (*shape[:2], 2))) if seed % 2 else None
    banned = BannedWords.of([0, 2], shape[-1], torch.device(DEVICE))._replace(repeats=repeats)
    beam_sizes = put(rng.integers(0, k + 1, shape[0]))
    given = put(logs, torch.float32), put(totals, torch.float32), beam_sizes, k, banned
    assert_same(*both(*given))


@needs_triton
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("types", [11, 300, 2048, 5000])  # one block of words, or several
def test_of_scores_the_softmax_is_worked_out(dtype, types):
    rng = np.random.default_rng(types)
    scores = put(rng.normal(size=(3, 4, types)) * 3, dtype)
    totals = put(-rng.random((3, 4)), torch.float32)
    totals[1, 2:] = -torch.inf
    totals[2] = -torch.inf
    bias = put(rng.normal(size=types), torch.float32)
    bias[-1] = -torch.inf
    banned = BannedWords.of([0, 3], types, torch.device(DEVICE))
    beam_sizes = torch.tensor([6, 5, 6], device=DEVICE)
    fused, plain = both(scores, totals, beam_sizes, 6, banned, bias)
    assert_same(fused, plain, exact=False)
    expected = (scores.float() + bias).log_softmax(-1)[0, fused.parents[0, 0], fused.words[0, 0]]
    assert torch.allclose(fused.totals[0, 0], expected + totals[0, fused.parents[0, 0]], atol=1e-5)
    assert (fused.totals[2] == -torch.inf).all()
    assert not torch.isin(fused.words[0], torch.tensor([0, 3, types - 1], device=DEVICE)).any()


@needs_triton
def test_many_places_of_a_large_vocabulary():
    rng = np.random.default_rng(5)
    scores = put(rng.normal(size=(2, 3, 5136)), torch.float32)
    totals = put(-rng.random((2, 3)), torch.float32)
    banned = BannedWords.of([0], 5136, torch.device(DEVICE))
    beam_sizes = torch.tensor([64, 40], device=DEVICE)
    fused, plain = both(scores, totals, beam_sizes, 64, banned)
    assert_same(fused, plain)
    assert (fused.totals[0] > -torch.inf).all()


@needs_triton
def test_more_places_than_fit_are_left_to_pytorch(monkeypatch):
    from ledeline.model.gpu import top_k as fused

    monkeypatch.setattr(fused, "select_top_k", None)
    scores, totals = torch.zeros(1, 1, 300, device=DEVICE), torch.zeros(1, 1, device=DEVICE)
    banned = BannedWords.of([0], 300, torch.device(DEVICE))
    with dispatch.kernel_mode("interpreted"):
        kept = select_top_k(scores.clone(), totals, torch.tensor([129], device=DEVICE), 129, banned)
        assert kept.words.tolist() == [[*range(1, 130)]]
        with pytest.raises(TypeError):
            select_top_k(scores, totals, torch.tensor([128], device=DEVICE), 128, banned)
