"""Of hypotheses that end in the same words, only the best is kept; tests 5 to 7 of ABS."""

import itertools
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ledeline.config import SearchConfig
from ledeline.data.dataset import padded
from ledeline.model.gpu import dispatch
from ledeline.search import BeamSearch, search
from ledeline.search.beam import COMPACTIONS, Compaction
from ledeline.search.recombination import _is_worse, recombine_
from ledeline.search.top_k import BannedWords, select_top_k
from ledeline.text.subwords import BOS, EOS, PAD, UNK
from slow_search import TableModel, assert_alike, search_options, slow_search
from systems import random_system

V = 9
WORDS = 4  # of the toy: with the four special ones and <unk>, V_t = 5
SOURCES = [[4, 5, 6], [5], [6, 7, 8, 4, 4], [7, 7], [8, 5, 5, 6]]
COMPACT = [Compaction(1, 1.0), Compaction(3, 0.75)]


options = search_options(block_ngrams=st.integers(0, 2), recombine=st.integers(0, 4))


@settings(max_examples=80)
@given(st.integers(0, 10**6), options, st.sampled_from(COMPACT), st.sampled_from([None, 1, 2, 4]))
def test_the_batched_search_is_the_plain_one(seed, config, compaction, num_levels):
    """Also with many equal costs, of which the first slot's is kept."""
    model = TableModel(seed, V, num_levels)
    with patch.dict(COMPACTIONS, cpu=compaction):
        found = search(model, *padded(SOURCES), config)
    for source, one in zip(SOURCES, found, strict=True):
        assert_alike(one, slow_search(model, source, config))


@pytest.mark.parametrize("context", [1, 2, 3])
def test_also_with_a_model_that_looks_further_back(context):
    model = random_system(vocabulary=V, std=1.0).double()
    config = SearchConfig(beam=5, n_best=5, recombine=context)
    found = search(model, *padded(SOURCES), config)
    for source, one in zip(SOURCES, found, strict=True):
        assert_alike(one, slow_search(model, source, config))
    assert found != search(model, *padded(SOURCES), replace(config, recombine=0))


@pytest.mark.parametrize("context", [1, 2, 3])
def test_an_answer_does_not_depend_on_the_batch(context):
    model = random_system(vocabulary=V, std=1.0).double()
    config = SearchConfig(beam=4, n_best=4, recombine=context)
    alone = [search(model, *padded([source]), config)[0] for source in SOURCES]
    for order in ([0, 1, 2, 3, 4], [4, 2, 1, 0, 3], [2, 2, 0]):
        ids, lengths = padded([SOURCES[place] for place in order])
        for sources in (ids, np.pad(ids, ((0, 0), (0, 5)))):
            for place, found in zip(order, search(model, sources, lengths, config), strict=True):
                assert_alike(found, alone[place])


# --- tests 5 and 6 of the specification -----------------------------------------------------------


def best_of_all(model, source, length):
    """The likeliest headline of this length, of all there are."""
    every = itertools.product([UNK, *range(EOS + 1, EOS + 1 + WORDS)], repeat=length)
    return max(every, key=lambda words: total_of(model, source, words))


def total_of(model, source, words):
    table = model.logs[source[0]].tolist()
    return sum(table[a][b] for a, b in itertools.pairwise((BOS, *words, EOS)))


def toy(seed):
    return TableModel(seed, EOS + 1 + WORDS)


def test_a_beam_of_all_contexts_is_viterbi():
    """Test 5: V_t = 5, C = 1, N = 4. Without recombination the same beam misses some."""
    missed = 0
    for seed in range(40):
        model, source = toy(seed), [EOS + 1 + seed % WORDS]
        config = SearchConfig(beam=5, min_length=4, max_length=4, recombine=1)
        ((found,),) = search(model, *padded([source]), config)
        assert found.ids == best_of_all(model, source, 4)
        assert -found.cost == pytest.approx(total_of(model, source, found.ids))
        ((other,),) = search(model, *padded([source]), replace(config, recombine=0))
        missed += other.ids != found.ids
        assert found.cost <= other.cost + 1e-12  # test 6: never a lower best score
    assert missed > 0


def test_a_context_of_two_is_viterbi_of_pairs():
    for seed in range(10):
        model, source = toy(seed), [EOS + 1]
        config = SearchConfig(beam=25, min_length=4, max_length=4, recombine=2)
        ((found,),) = search(model, *padded([source]), config)
        assert found.ids == best_of_all(model, source, 4)


@pytest.mark.parametrize("context", [1, 2, 3])
def test_no_two_kept_ones_share_their_last_words(context):
    """Test 6, at every step, <bos> counted where there are fewer words."""
    for seed in range(8):
        config = SearchConfig(beam=6, min_length=6, recombine=context)
        running = BeamSearch(TableModel(seed, V), *padded(SOURCES), config)
        prefixes = [[()] for _ in SOURCES]
        shared = 0
        for _ in range(5):
            running.step()
            step = running._history[-1]
            for row, source in enumerate(step.sources):
                totals, parents, words = (one[row].tolist() for one in step.selected)
                prefixes[source] = [
                    (*prefixes[source][parent], word)
                    for total, parent, word in zip(totals, parents, words, strict=True)
                    if total > -np.inf
                ]
                last = [((BOS,) * context + one)[-context:] for one in prefixes[source]]
                assert len(set(last)) == len(last)
                shared += len({one[1:] for one in last}) < len(last)
        assert shared or context == 1


def test_the_beginning_counts_as_filled_up():
    """[5] and [5 5] end in different words: one has <bos> before it."""

    class Scripted(TableModel):
        def step(self, words, state, memory):
            logs = torch.full((*words.shape, V), -9.0, dtype=torch.float64)
            logs[..., 5], logs[..., EOS] = -0.1, -0.5
            return logs, state

    config = SearchConfig(beam=3, n_best=3, max_length=3, recombine=2)
    (found,) = search(Scripted(0, V), *padded([[5, 5]]), config)
    assert (5,) in [one.ids for one in found]
    assert (5, 5) in [one.ids for one in found]


def test_endings_are_recombined_too():
    """[4] and [5] end in the same one word, <eos>; of two, the first of their last two differ."""
    model = toy(3)
    kept = search(model, *padded([[4]]), SearchConfig(beam=9, n_best=9, max_length=1, recombine=1))
    both = search(model, *padded([[4]]), SearchConfig(beam=9, n_best=9, max_length=1, recombine=2))
    assert [len(found) for found in (*kept, *both)] == [1, 5]
    assert kept[0][0] == both[0][0]


# --- test 7: what ABS does beside it --------------------------------------------------------------


def test_a_fixed_length_has_no_unknown_and_no_repeated_word():
    for seed in range(10):
        config = SearchConfig(
            beam=4, n_best=4, min_length=4, max_length=4, forbid_unknown=True, block_ngrams=1,
            recombine=2,
        )  # fmt: skip
        for found in search(TableModel(seed, V), *padded(SOURCES), config):
            assert found
            for one in found:
                assert len(one.ids) == len(set(one.ids)) == 4
                assert UNK not in one.ids
                assert not one.truncated


# --- parts ----------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.sampled_from([1, 3, 1000]))
def test_of_a_group_the_best_and_of_equals_the_first_can_be_selected(seed, num_levels):
    rng = np.random.default_rng(seed)
    logs = torch.from_numpy(np.round(rng.normal(size=(3, 5, 7)) * num_levels))
    totals = torch.from_numpy(np.round(rng.normal(size=(3, 5)) * num_levels))
    totals[rng.random((3, 5)) < 0.2] = -np.inf
    names = rng.integers(0, 3, (3, 5))
    groups = torch.tensor([[row.tolist().index(name) for name in row] for row in names])
    expected = logs.clone()
    for row, word in itertools.product(range(3), range(7)):
        for group in set(groups[row].tolist()):
            slots = [slot for slot in range(5) if groups[row, slot] == group]
            best = max(slots, key=lambda slot: float(totals[row, slot] + logs[row, slot, word]))
            for slot in slots:
                if slot != best:
                    expected[row, slot, word] = -np.inf
    everywhere = logs.masked_fill(_is_worse(logs, totals, groups), -np.inf)  # as on a GPU
    recombine_(logs, totals, groups)
    assert torch.equal(totals.unsqueeze(-1) + logs, totals.unsqueeze(-1) + everywhere)
    assert torch.equal(totals.unsqueeze(-1) + logs, totals.unsqueeze(-1) + expected)


@pytest.mark.parametrize("with_bias", [False, True])
def test_the_fused_selection_gets_what_is_left(with_bias):
    """On a GPU, and in Triton's interpreter, as without it."""
    if not dispatch.has_triton():
        pytest.skip("no Triton")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    generator = torch.Generator().manual_seed(1)
    scores = torch.randn(2, 4, 40, generator=generator).to(device)
    bias = torch.randn(40, generator=generator).to(device) if with_bias else None
    scores = scores if with_bias else scores.log_softmax(-1)
    totals = torch.randn(2, 4, generator=generator).to(device)
    groups = torch.tensor([[0, 0, 2, 0], [0, 1, 1, 3]], device=device)
    banned = BannedWords.of((PAD, BOS), 40, device)
    sizes = torch.tensor([20, 20], device=device)
    found = []
    for mode in ("plain", "fused" if device.type == "cuda" else "interpreted"):
        with dispatch.kernel_mode(mode):
            inputs = scores.clone(), totals, sizes, 20, banned, bias, groups
            found.append(select_top_k(*inputs))
    plain, fused = found
    assert torch.equal(plain.words, fused.words)
    assert torch.equal(plain.parents, fused.parents)
    assert torch.equal(plain.totals, fused.totals)
    free = select_top_k(scores.clone(), totals, sizes, 20, banned, bias)
    assert not torch.equal(free.words, plain.words)
