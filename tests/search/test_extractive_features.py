"""The features of ABS+ around any model; tests 8 and 9 of ABS."""

from dataclasses import fields

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ledeline.config import SearchConfig
from ledeline.config.extractive import ExtractiveWeights
from ledeline.core.errors import ConfigError
from ledeline.data.dataset import padded
from ledeline.search import Ensemble, ExtractiveModel, feature_counts, search
from ledeline.search.beam import BeamSearch
from ledeline.search.step_model import Scorer
from ledeline.text.subwords import BOS, EOS, PAD, UNK
from slow_search import TableModel, slow_search
from systems import random_system

V = 9
SOURCES = [[4, 5, 6], [5], [6, 7, 8, 4, 4, 7], [7, 7], [8, 5, UNK, 5, 6]]
WEIGHTS = ExtractiveWeights(unigram=0.7, bigram=1.1, trigram=-0.4, order=-0.9, length=0.3)
CONFIG = SearchConfig(beam=4, n_best=4)


def slow_counts(source, headline):
    """The features as the equations say them, place by place."""
    words = range(EOS + 1, V)
    unigram = bigram = trigram = order = 0
    for i, word in enumerate(headline):
        at = [j for j, one in enumerate(source) if one == word and word in words]
        unigram += bool(at)
        if i == 0:
            continue
        before = headline[i - 1]
        bigram += any(j >= 1 and source[j - 1] == before and before in words for j in at)
        order += any(
            j < k and source[k] == before and before in words
            for j in at
            for k in range(len(source))
        )
        if i >= 2:
            two = headline[i - 2]
            trigram += any(
                j >= 2 and (source[j - 2], source[j - 1]) == (two, before)
                and two in words and before in words
                for j in at
            )  # fmt: skip
    return unigram, bigram, trigram, order, len(headline)


ids = st.lists(st.sampled_from([UNK, 4, 5, 6, 7]), min_size=1, max_size=8)


@settings(max_examples=300)
@given(ids, ids)
def test_counts_are_those_of_the_equations(source, headline):
    assert tuple(feature_counts(source, headline)) == slow_counts(source, headline)


def test_the_order_counts_where_it_is_another():
    """Test 9."""
    assert feature_counts([4, 5], [5, 4]).order == 1
    assert feature_counts([4, 5], [4, 5]).order == 0
    assert feature_counts([4, 5, 4], [4, 5]).order == 1  # 5 is also before a 4
    assert feature_counts([4], [4, 4]).order == 0
    assert feature_counts([4, 4], [4, 4]) == (2, 1, 0, 1, 2)


def test_ngrams_are_neighbours_of_the_source():
    assert feature_counts([4, 5, 6, 7], [4, 5, 6]) == (3, 2, 1, 0, 3)
    assert feature_counts([4, 8, 5, 8, 6], [4, 5, 6]) == (3, 0, 0, 0, 3)
    assert feature_counts([4, UNK, 5], [4, UNK, 5]) == (2, 0, 0, 0, 3)  # <unk> is no known word


# --- the model ------------------------------------------------------------------------------------


def total_of(counts, weights=WEIGHTS):
    names = [field.name for field in fields(weights) if field.name != "lm"]
    return sum(getattr(weights, name) * getattr(counts, name) for name in names)


@torch.inference_mode()
def forced(model, source, headline, width=None):
    """The log-probability of a headline and its end, step by step."""
    sources, lengths = padded([source])
    inputs = torch.from_numpy(sources), None, None
    if width is not None:
        sources = np.pad(sources, ((0, 0), (0, width - len(source))))
        mask = torch.arange(width)[None] < len(source)
        inputs = torch.from_numpy(sources), torch.from_numpy(lengths), mask
    state, memory = model.encode(*inputs)
    total, last = 0.0, BOS
    for word in (*headline, EOS):
        logs, state = model.step(torch.tensor([[last]]), state, memory)
        total, last = total + float(logs[0, 0, word]), word
    return total


@settings(max_examples=100)
@given(ids, ids, st.booleans())
def test_the_score_is_log_p_and_the_weighted_counts(source, headline, is_padded):
    model = TableModel(1, V)
    width = len(source) + 3 if is_padded else None
    score = forced(ExtractiveModel(model, WEIGHTS), source, headline, width)
    expected = forced(model, source, headline) + total_of(feature_counts(source, headline))
    assert score == pytest.approx(expected, abs=1e-9)


def test_the_log_probability_has_its_own_factor():
    model, weights = TableModel(1, V), ExtractiveWeights(lm=0.25, unigram=2.0)
    score = forced(ExtractiveModel(model, weights), [4, 5], [5, 8])
    assert score == pytest.approx(0.25 * forced(model, [4, 5], [5, 8]) + 2.0)


def test_neither_the_end_nor_padding_has_a_bonus():
    model = TableModel(1, V)
    wrapped = ExtractiveModel(model, WEIGHTS)
    sources = torch.tensor([[4, 5, PAD], [4, 5, 6]])
    inputs = sources, torch.tensor([2, 3]), sources != PAD
    state, memory = wrapped.encode(*inputs)
    words = torch.tensor([[BOS], [BOS]])
    logs, _ = wrapped.step(words, state, memory)
    plain, _ = model.step(words, *model.encode(*inputs))
    added = (logs - plain).squeeze(1)
    assert added[:, EOS].tolist() == [0, 0]
    assert added[0].tolist() == pytest.approx([0.3, 0.3, 0.3, 0, 1.0, 1.0, 0.3, 0.3, 0.3])
    assert added[1, 6] == pytest.approx(1.0)


@pytest.mark.parametrize("make_model", [lambda: TableModel(2, V), lambda: double(3)])
def test_without_weights_it_is_the_model(make_model):
    """Test 8: item by item, bit for bit."""
    model = make_model()
    neutral = ExtractiveModel(model, ExtractiveWeights())
    for config in (CONFIG, SearchConfig(beam=5, n_best=5, recombine=2, keep_finished=True)):
        found = search(neutral, *padded(SOURCES), config)
        assert found == search(model, *padded(SOURCES), config)


def double(seed):
    return random_system(vocabulary=V, std=1.0, seed=seed).double()


def test_a_great_weight_gives_only_words_of_the_source():
    """Test 8."""
    model = ExtractiveModel(TableModel(2, V), ExtractiveWeights(unigram=1e4))
    config = SearchConfig(beam=4, min_length=4, max_length=4, n_best=1)
    for source, (best,) in zip(SOURCES, search(model, *padded(SOURCES), config), strict=True):
        assert set(best.ids) <= set(source) - {UNK}
    plain = search(TableModel(2, V), *padded(SOURCES), config)
    assert any(set(one.ids) - set(source) for source, (one,) in zip(SOURCES, plain, strict=True))


@pytest.mark.parametrize("keep_finished", [False, True])
@pytest.mark.parametrize("recombine", [0, 2])
def test_it_is_searched_like_a_model(keep_finished, recombine):
    model = ExtractiveModel(double(4), WEIGHTS)
    config = SearchConfig(beam=4, n_best=4, recombine=recombine, keep_finished=keep_finished)
    alone = [search(model, *padded([source]), config)[0] for source in SOURCES]
    for source, found in zip(SOURCES, alone, strict=True):
        expected = slow_search(model, source, config)
        assert [one.ids for one in found] == [one.ids for one in expected]
        assert [one.cost for one in found] == pytest.approx([one.cost for one in expected])
    for order in ([0, 1, 2, 3, 4], [4, 2, 1, 0, 3], [2, 2, 0]):
        ids, lengths = padded([SOURCES[place] for place in order])
        for sources in (ids, np.pad(ids, ((0, 0), (0, 5)))):
            for place, found in zip(order, search(model, sources, lengths, config), strict=True):
                assert [one.ids for one in found] == [one.ids for one in alone[place]]
                costs = [one.cost for one in alone[place]]
                assert [one.cost for one in found] == pytest.approx(costs, rel=1e-12)


def test_a_hypothesis_costs_what_its_features_say():
    model = double(5)
    for source, found in zip(
        SOURCES, search(ExtractiveModel(model, WEIGHTS), *padded(SOURCES), CONFIG), strict=True
    ):
        for one in found:
            if not one.truncated:
                expected = forced(model, source, one.ids) + total_of(
                    feature_counts(source, one.ids)
                )
                assert -one.cost == pytest.approx(expected, abs=1e-9)


def test_systems_and_ensembles_can_have_features(make):
    model = make("EncDec", embedding=8, hidden=16, vocabulary=40).float()
    for inner in (model, Ensemble([model, model])):
        wrapped = ExtractiveModel(inner, WEIGHTS)
        assert not isinstance(wrapped, Scorer)
        found = search(wrapped, *padded(SOURCES), CONFIG)
        assert found != search(inner, *padded(SOURCES), CONFIG)
        for source, (best, *_) in zip(SOURCES, found, strict=True):
            expected = forced(inner, source, best.ids)
            if not best.truncated:
                expected += total_of(feature_counts(source, best.ids))
                assert -best.cost == pytest.approx(expected, abs=1e-4)


def test_it_cannot_stop_early():
    model = ExtractiveModel(TableModel(1, V), WEIGHTS)
    with pytest.raises(ConfigError, match="stop_early = true: does not go with a model whose"):
        BeamSearch(model, *padded(SOURCES), SearchConfig(stop_early=True))


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"lm": 0.0}, "lm = 0.0: must be above 0"),
        ({"unigram": float("nan")}, "unigram = nan: must be finite"),
        ({"order": float("inf")}, "order = inf: must be finite"),
        ({"length": "1"}, 'length = "1": must be a number'),
    ],
)
def test_weights_check_themselves(values, sentence):
    with pytest.raises(ConfigError, match=sentence):
        ExtractiveWeights(**values)
