"""The shrinking beam, property by property, and beside a plain search written from its rules."""

import itertools
import math
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ledeline.config import SearchConfig
from ledeline.core.errors import ConfigError
from ledeline.data.dataset import Batch, padded
from ledeline.model.build import build
from ledeline.search import Ensemble, Hypothesis, greedy, search
from ledeline.search.beam import COMPACTIONS, Compaction
from ledeline.search.top_k import _top_k_of_blocks, top_k
from ledeline.text.subwords import BOS, EOS, PAD, UNK
from slow_search import assert_alike, is_possible, search_options
from systems import encdec

V = 9


def tiny(seed=0, vocabulary=V, spread=1.0, *, add_ons=False):
    """A system in float64 whose distributions are far from uniform."""
    sizes = {"embedding_size": 3, "hidden_size": 4, "layers": 2, "dropout": 0.0}
    model = build(encdec(sgate=add_ons, spm=add_ons, **sizes), vocabulary).double().eval()
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=spread, generator=generator)
    return model


def sources_of(seed, lengths, vocabulary=V):
    rng = np.random.default_rng(seed)
    return [rng.integers(EOS + 1, vocabulary, length).tolist() for length in lengths]


# --- the reference: one source, one hypothesis at a time, from the list of rules ---------------


@torch.inference_mode()
def plain_search(model, source, config):
    state, memory = model.encode(torch.tensor([source]), None, None)
    live, finished, k = [((), 0.0, state)], [], config.beam
    limit = max(2 * len(source), config.min_length + 1)
    for step in range(limit):
        if not k or not live:
            break
        candidates = []
        for place, (words, cost, state) in enumerate(live):
            last = words[-1] if words else BOS
            logs, after = model.step(torch.tensor([[last]]), state, memory)
            for word, log in enumerate(logs.flatten().tolist()):
                if is_possible(words, word, config):
                    candidates.append((cost - log, place, word, (*words, word), after))
        candidates.sort(key=lambda one: one[:3])
        live = []
        for cost, _, word, words, after in candidates[:k]:
            if word == EOS:
                finished.append(Hypothesis(words[:-1], cost))
                k -= 1
            else:
                live.append((words, cost, after))
        if step == limit - 1 and live and not finished:
            return [Hypothesis(live[0][0], live[0][1], truncated=True)]
    return sorted(finished, key=lambda one: one.cost / (len(one.ids) + 1))[: config.n_best]


options = search_options(block_ngrams=st.integers(0, 3), forbid_unknown=st.booleans())


compactions = st.sampled_from(
    [Compaction(1, 1.0), Compaction(8, 0.75), Compaction(2, 0.5), Compaction(3, 1.0)]
)


@settings(max_examples=120)
@given(
    st.integers(0, 10**6), st.lists(st.integers(1, 6), min_size=1, max_size=5), options, compactions
)
def test_the_batched_search_is_the_plain_one(seed, lengths, config, compaction):
    """However seldom the host looks, as it does beside a GPU."""
    model, rows = tiny(seed), sources_of(seed, lengths)
    with patch.dict(COMPACTIONS, cpu=compaction):
        found = search(model, *padded(rows), config)
        early = search(model, *padded(rows), replace(config, stop_early=True))
    for row, one, other in zip(rows, found, early, strict=True):
        assert_alike(one, plain_search(model, row, config))
        assert_alike(other, one)


@settings(max_examples=60)
@given(
    st.integers(0, 10**6),
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    options,
    compactions,
    st.sampled_from([1, 2, 4]),
)
def test_it_is_the_plain_one_where_many_costs_are_equal(
    seed, lengths, config, compaction, num_levels
):
    rng = np.random.default_rng(seed)
    scores = [
        [
            {word: -int(rng.integers(1, num_levels + 1)) / 4 for word in range(V)}
            for _ in range(2 * length + config.min_length)
        ]
        for length in lengths
    ]
    sources = np.full((len(lengths), max(lengths)), 5)
    with patch.dict(COMPACTIONS, cpu=compaction):
        found = search(Scripted(scores), sources, np.array(lengths), config)
    for row, one in enumerate(found):
        assert one == plain_search(Scripted(scores[row : row + 1]), [5] * lengths[row], config)


def test_a_host_that_looks_seldom_takes_few_steps_too_many():
    steps = []

    class Counting(Scripted):
        def step(self, words, state, memory):
            steps.append(words.shape)
            return super().step(words, state, memory)

    ends, goes_on = [{5: -1.0}, {EOS: -1.0}], [{5: -1.0}]
    scores = [*[ends] * 3, *[goes_on] * 1]
    sources = np.full((4, 10), 5)
    for compaction, expected in (
        (Compaction(1, 1.0), [4] * 2 + [1] * 18),
        (Compaction(8, 0.75), [4] * 8 + [1] * 12),
        (Compaction(8, 0.2), [4] * 20),
    ):
        steps.clear()
        with patch.dict(COMPACTIONS, cpu=compaction):
            found = search(Counting(scores), sources, np.array([10] * 4), SearchConfig(beam=1))
        assert [shape[0] for shape in steps] == expected
        assert [len(one[0].ids) for one in found] == [1, 1, 1, 20]


@settings(max_examples=20)
@given(st.integers(0, 10**6), options)
def test_it_is_the_plain_one_with_a_vocabulary_of_many_blocks(seed, config):
    model, rows = tiny(seed, 301), sources_of(seed, [3, 1, 5], 301)
    found = search(model, *padded(rows), config)
    for row, one in zip(rows, found, strict=True):
        assert_alike(one, plain_search(model, row, config))


# --- properties ---------------------------------------------------------------------------------


@torch.inference_mode()
def likeliest_words(model, source):
    """Greedy search as one would write it."""
    state, memory = model.encode(torch.tensor([source]), None, None)
    words = [BOS]
    while len(words) <= 2 * len(source):
        logs, state = model.step(torch.tensor([[words[-1]]]), state, memory)
        logs = logs.flatten()
        logs[[PAD, BOS] if len(words) > 1 else [PAD, BOS, EOS]] = -math.inf
        words.append(int(logs.argmax()))
        if words[-1] == EOS:
            return words[1:-1]
    return words[1:]


@pytest.mark.parametrize("seed", range(5))
def test_a_beam_of_one_is_greedy(seed):
    model, rows = tiny(seed), sources_of(seed, [3, 8, 5, 8, 1])
    expected = [likeliest_words(model, row) for row in rows]
    assert greedy(model, *padded(rows)) == expected
    assert [list(one[0].ids) for one in search(model, *padded(rows), SearchConfig(beam=1))] == (
        expected
    )
    assert len({tuple(one) for one in expected}) > 1


@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_a_beam_that_holds_everything_finds_the_best_of_all(seed, length):
    model = tiny(seed, vocabulary=7)
    (row,) = sources_of(seed, [length], 7)
    every = [
        ids
        for num_words in range(1, 2 * length)
        for ids in itertools.product([UNK, 4, 5, 6], repeat=num_words)
    ]
    scores = {ids: forced_score(model, row, ids) for ids in every}
    config = SearchConfig(beam=4 ** (2 * length) * 3, n_best=len(every))
    (found,) = search(model, *padded([row]), config)
    assert [one.ids for one in found] == sorted(scores, key=lambda ids: -scores[ids])


@torch.inference_mode()
def forced_score(model, source, headline):
    forced = model.trace(model.pairs(Batch.of([(source, list(headline))])))
    return float(forced.log_probabilities[0, : len(headline) + 1].sum()) / (len(headline) + 1)


@pytest.mark.parametrize("add_ons", [False, True])
def test_the_score_is_the_forced_score(add_ons):
    model, rows = tiny(3, add_ons=add_ons), sources_of(3, [5, 9, 2, 7])
    found = search(model, *padded(rows), SearchConfig(beam=5, n_best=5))
    num_ended = 0
    for row, headlines in zip(rows, found, strict=True):
        for one in headlines:
            if not one.truncated:
                num_ended += 1
                assert one.score == pytest.approx(forced_score(model, row, one.ids), rel=1e-12)
    assert num_ended > 10


def test_an_answer_does_not_depend_on_the_batch():
    model, rows = tiny(8), sources_of(8, [4, 1, 9, 9, 3, 6])
    config = SearchConfig(beam=4, n_best=4)
    alone = [search(model, *padded([row]), config)[0] for row in rows]
    assert len({one[0].ids for one in alone}) > 2
    for order in ([0, 1, 2, 3, 4, 5], [5, 3, 1, 0, 2, 4], [2, 2, 0], [4, 1]):
        ids, lengths = padded([rows[place] for place in order])
        wider = np.pad(ids, ((0, 0), (0, 7)))
        for sources in (ids, wider):
            for place, found in zip(order, search(model, sources, lengths, config), strict=True):
                assert_alike(found, alone[place])


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 3), st.none() | st.integers(1, 8))
def test_stopping_early_changes_nothing(seed, n_best, most):
    model, rows = tiny(seed), sources_of(seed, [5, 2, 8])
    config = SearchConfig(beam=6, n_best=n_best, max_length=most)
    full = search(model, *padded(rows), config)
    early = search(model, *padded(rows), replace(config, stop_early=True))
    for one, other in zip(early, full, strict=True):
        assert_alike(one, other)


def test_stopping_early_waits_for_a_headline_of_the_most_words():
    # [5] scores -0.8; [5 6], of cost 2 before its end, may still come to nearly -2 / 3.
    scores = [[{5: -1.0}, {EOS: -0.6, 6: -1.0}, {EOS: -0.1}]]
    for early in (False, True):
        found = written(scores, [9], beam=2, max_length=2, stop_early=early)
        assert ids_of(found) == [[[5, 6]]]


def test_stopping_early_saves_steps():
    steps = []

    class Counting(Scripted):
        def step(self, words, state, memory):
            steps.append(len(words))
            return super().step(words, state, memory)

    scores = [[{5: -0.1, 6: -9.0}, {EOS: -0.1, 7: -9.0}, {7: -5.0}]]
    for early, most in ((False, 20), (True, 4)):
        steps.clear()
        config = SearchConfig(beam=3, stop_early=early)
        ((found,),) = search(Counting(scores), *padded([[5] * 10]), config)
        assert found.ids == (5,)
        assert len(steps) <= most
        assert early or len(steps) == 20


# --- rules, on models whose scores are given ----------------------------------------------------


class Scripted:
    """A model whose scores are given: at step n, source b, by `scores[b][n]`."""

    device = torch.device("cpu")

    def __init__(self, scores: list[list[dict[int, float]]], vocabulary: int = V) -> None:
        self._scores, self._vocabulary = scores, vocabulary

    def encode(self, sources, lengths, mask):
        rows = torch.arange(len(sources), dtype=torch.float64)[:, None]
        return (rows, torch.zeros_like(rows)), None

    def step(self, words, state, memory):
        rows, steps = state
        table = torch.full((*words.shape, self._vocabulary), -100.0, dtype=torch.float64)
        for place in itertools.product(*map(range, words.shape)):
            script = self._scores[int(rows[place])]
            for word, score in script[min(int(steps[place]), len(script) - 1)].items():
                table[(*place, word)] = score
        return table, (rows, steps + 1)


def written(scores, lengths, **config):
    sources = np.full((len(lengths), max(lengths)), 5)
    return search(Scripted(scores), sources, np.array(lengths), SearchConfig(**config))


def ids_of(found):
    return [[list(one.ids) for one in headlines] for headlines in found]


def test_the_likeliest_word_is_taken_until_the_end():
    one = [{5: -1, 6: -2}, {7: -1}, {EOS: -1, 8: -3}]
    other = [{8: -1}, {EOS: -1}, {5: 0}, {5: 0}]
    assert ids_of(written([one, other], [4, 4], beam=1)) == [[[5, 7]], [[8]]]


def test_pad_and_bos_are_impossible_and_no_headline_is_empty():
    assert ids_of(written([[{PAD: 0, BOS: 0, 6: -9}, {PAD: 0, EOS: -9}]], [3], beam=1)) == [[[6]]]
    assert ids_of(written([[{EOS: 0, 6: -9}, {EOS: 0}]], [3], beam=1)) == [[[6]]]


def test_what_is_ruled_out_is_not_made_up_for():
    ((found,),) = written([[{EOS: -0.1, 6: -2.5}, {EOS: -0.5}]], [3], beam=1)
    assert found.cost == 3.0
    assert found.score == -1.5


def test_an_unknown_word_is_possible_unless_forbidden():
    scores = [[{UNK: -1, 6: -2}, {EOS: -0.1}]]
    assert ids_of(written(scores, [3], beam=1)) == [[[UNK]]]
    assert ids_of(written(scores, [3], beam=1, forbid_unknown=True)) == [[[6]]]


def test_each_headline_that_ends_takes_its_place_in_the_beam_with_it():
    # Of two places one is left after [5] ends: [6 8], which a full beam would keep, is not found.
    first, second = {5: -1.0, 6: -1.1}, {EOS: -0.1, 7: -0.2, 8: -0.3}
    found = written([[first, second, {EOS: -0.1}]], [9], beam=2, n_best=2)
    assert ids_of(found) == [[[5, 7], [5]]]


def test_a_place_that_is_gone_is_gone_beside_a_source_that_has_it():
    shrunk = [{5: -1.0, 6: -1.1}, {EOS: -0.1, 7: -0.2}, {EOS: -0.5, 8: -0.6}, {EOS: -0.01}]
    full = [{5: -1.0, 6: -1.1}, {5: -1.0, 6: -1.1}, {5: -1.0, 6: -1.1}, {EOS: -0.1}]
    found = written([shrunk, full], [9, 9], beam=2, n_best=2)
    assert ids_of(found)[0] == [[5], [5, 7]]
    assert ids_of(found)[0] == ids_of(written([shrunk], [9], beam=2, n_best=2))[0]


def test_lengths_count_only_after_the_search():
    scores = [[{5: -1.0}, {EOS: -2.0, 6: -2.5}, {EOS: -0.1}]]
    (found,) = written(scores, [9], beam=2, n_best=2)
    assert [one.ids for one in found] == [(5, 6), (5,)]
    assert [one.score for one in found] == pytest.approx([-3.6 / 3, -3.0 / 2])


def test_a_headline_without_end_is_cut_at_two_steps_a_source_token():
    found = written([[{6: -0.5}], [{7: -0.5}]], [2, 3], beam=1)
    assert ids_of(found) == [[[6] * 4], [[7] * 6]]
    assert all(headlines[0].truncated for headlines in found)
    assert found[0][0].score == -0.5  # over its words alone


def test_unfinished_ones_are_dropped_where_any_came_to_an_end():
    scores = [[{6: -0.1}, {6: -0.1, EOS: -8}, {6: -0.1}]]
    assert ids_of(written(scores, [2], beam=2, n_best=2)) == [[[6]]]


def test_equal_costs_are_ranked_by_parent_then_word():
    level = dict.fromkeys(range(4, 9), -1.0)
    (found,) = written([[level, {EOS: -1.0} | level]], [3], beam=9, n_best=9, max_length=2)
    # At step two EOS (id 3) of the first parents comes first, then equal words of the first parent.
    assert [one.ids for one in found if len(one.ids) == 1] == [(4,), (5,)]
    assert [one.ids for one in found if len(one.ids) == 2][:3] == [(4, 4), (4, 5), (4, 6)]


def test_equal_scores_stay_as_they_finished():
    scores = [[{5: -1.0, 6: -1.0}, {EOS: -1.0, 7: -1.0}, {EOS: -1.0}]]
    (found,) = written(scores, [9], beam=4, n_best=4)
    assert [one.score for one in found] == [-1.0] * 4
    assert [one.ids for one in found] == [(5,), (6,), (5, 7), (6, 7)]


def test_lengths_can_be_limited():
    scores = [[{5: -1.0, EOS: -0.1}]]
    assert ids_of(written(scores, [9], beam=1)) == [[[5]]]
    assert ids_of(written(scores, [9], beam=1, min_length=3)) == [[[5, 5, 5]]]
    long = [[{5: -0.1, EOS: -1.0}]]
    assert ids_of(written(long, [9], beam=1, max_length=4)) == [[[5] * 4]]
    assert not written(long, [9], beam=1, max_length=4)[0][0].truncated


def test_a_least_length_beyond_the_limit_moves_the_limit():
    assert ids_of(written([[{5: -0.1, EOS: -1.0}]], [2], beam=1, min_length=7, max_length=7)) == [
        [[5] * 7]
    ]


def test_ngrams_can_be_blocked():
    scores = [[{5: -0.1, 6: -1.0, EOS: -3.0}]]
    assert ids_of(written(scores, [4], beam=1)) == [[[5] * 8]]
    assert ids_of(written(scores, [4], beam=1, block_ngrams=1)) == [[[5, 6]]]
    assert ids_of(written(scores, [4], beam=1, block_ngrams=2)) == [[[5, 5, 6, 5]]]


def test_where_no_word_is_possible_nothing_is_found():
    never = [[dict.fromkeys(range(V), -math.inf)]]
    assert written(never, [3], beam=2) == [[]]


def test_no_sources_no_headlines():
    assert search(tiny(), *padded([])) == []


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"beam": 0}, "beam"),
        ({"beam": 2, "n_best": 3}, "n_best"),
        ({"min_length": 0}, "min_length"),
        ({"min_length": 3, "max_length": 2}, "max_length"),
        ({"max_length": 0}, "max_length"),
        ({"block_ngrams": -1}, "block_ngrams"),
    ],
)
def test_options_check_themselves(values, key):
    with pytest.raises(ConfigError, match=f"^{key} = "):
        SearchConfig(**values)


# --- parts --------------------------------------------------------------------------------------


@settings(max_examples=300)
@given(
    st.integers(0, 10**6),
    st.tuples(st.integers(1, 3), st.integers(1, 4), st.sampled_from([1, 9, 255, 256, 271, 300])),
    st.integers(1, 25),
    st.sampled_from([0, 1, 3, 10, 1000, None]),
    st.sampled_from([0.0, 0.5, 0.99]),
)
def test_the_best_are_those_of_a_stable_sort(seed, shape, k, num_levels, impossible):
    """Also with few different values, so that many are equal, and with many that cannot be."""
    rng = np.random.default_rng(seed)
    logs, totals = rng.normal(size=shape), rng.normal(size=shape[:2])
    if num_levels is not None:
        logs, totals = np.round(logs * num_levels), np.round(totals * num_levels)
    logs[rng.random(shape) < impossible] = -np.inf
    totals[rng.random(shape[:2]) < impossible / 2] = -np.inf
    values, places = top_k(torch.from_numpy(logs), torch.from_numpy(totals), k)
    for row in range(shape[0]):
        every = (totals[row, :, None] + logs[row]).ravel().tolist()
        ranked = sorted(range(len(every)), key=lambda place: (-every[place], place))[:k]
        possible = [place for place in ranked if every[place] > -math.inf]
        assert values[row].tolist() == [every[place] for place in ranked]
        assert places[row, : len(possible)].tolist() == possible
    for kept in (values, places):  # of all steps: it must not hold on to all that was not chosen
        assert kept.untyped_storage().nbytes() == kept.numel() * kept.element_size()


def test_of_equal_values_in_different_blocks_the_first_is_among_the_best():
    # Two blocks are looked into: the one of the highest value, whose second is at column 300 and no
    # higher than the one at column 1, and that of column 1.
    logs = torch.full((1, 1, 320), -9.0, dtype=torch.float64)
    logs[0, 0, 0], logs[0, 0, 300], logs[0, 0, 1] = -1.0, -3.0, -3.0
    assert top_k(logs, torch.zeros(1, 1, dtype=torch.float64), 2)[1].tolist() == [[0, 1]]


def test_the_quick_way_is_taken_where_all_values_differ():
    logs = torch.from_numpy(
        np.random.default_rng(0).permutation(np.arange(1800.0)).reshape(2, 3, 300)
    )
    assert _top_k_of_blocks(logs, torch.zeros(2, 3, dtype=torch.float64), 20) is not None


class TestEnsemble:
    def test_the_mean_of_the_probabilities(self):
        models, (row,) = [tiny(1), tiny(2), tiny(3)], sources_of(1, [4])
        together = Ensemble(models)
        sources, words = torch.tensor([row]), torch.tensor([[BOS]])
        state, memory = together.encode(sources, None, None)
        logs, _ = together.step(words, state, memory)
        each = [model.step(words, *model.encode(sources))[0].exp() for model in models]
        assert torch.allclose(logs.exp(), sum(each) / 3)

    def test_it_is_searched_like_a_model(self):
        models, rows = [tiny(4), tiny(5)], sources_of(4, [4, 7, 2])
        config = SearchConfig(beam=4, n_best=3)
        found = search(Ensemble(models), *padded(rows), config)
        for row, one in zip(rows, found, strict=True):
            assert_alike(one, plain_search(Ensemble(models), row, config))
        assert found != search(models[0], *padded(rows), config)

    def test_a_model_with_itself_is_the_model(self):
        model, rows = tiny(6), sources_of(6, [4, 7])
        config = SearchConfig(beam=4, n_best=3)
        found = search(Ensemble([model, model]), *padded(rows), config)
        for one, other in zip(found, search(model, *padded(rows), config), strict=True):
            assert_alike(one, other)
