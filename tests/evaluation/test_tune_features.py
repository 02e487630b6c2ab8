"""Weights of features, tuned on n-best lists; test 10 of ABS."""

import itertools
from dataclasses import asdict

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ledeline import rouge
from ledeline.config import SearchConfig
from ledeline.config.extractive import ExtractiveWeights
from ledeline.core.errors import CorpusError
from ledeline.evaluation.line_search import (
    LARGEST,
    Bounds,
    NBestLists,
    best_on_line,
    tuned_weights,
)
from ledeline.evaluation.tune_features import TuningConfig, tune_features
from ledeline.inference.headliner import Headliner, Options, system_name
from ledeline.model.format.model_folder import load_model
from ledeline.synth.newsroom import generate

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    # The engine has no such features, see tests/inference/test_engines.py.
    pytest.mark.filterwarnings("ignore::ledeline.core.errors.EngineWarning"),
]

PAIRS = [(story.lede, story.headline) for story in generate(10, 5)]
SMALL = TuningConfig(beam=6, rounds=2, restarts=3)
START = ExtractiveWeights(unigram=-2.0)
BOUNDS = Bounds(np.full(3, -LARGEST), np.array([LARGEST, LARGEST, 0.0]))


def random_lists(seed, num_lists=6, longest=7, num_levels=4):
    """Lists of different lengths, with many equal counts, so that lines are parallel."""
    rng = np.random.default_rng(seed)
    shape = num_lists, longest
    logs = -rng.uniform(1, 20, shape)
    logs[np.arange(longest) >= rng.integers(1, longest + 1, num_lists)[:, None]] = -np.inf
    counts = rng.integers(0, num_levels, (*shape, 3)).astype(float)
    steps = rng.integers(2, 6, shape).astype(float)
    return NBestLists(logs, steps, counts, rng.integers(0, 5, shape) / 4)


def slow_best(lists, weights, feature, bounds):
    """The highest metric on a line, by trying a point between any two crossings of any two lines."""
    others = weights.copy()
    others[feature] = 0
    crossings = []
    for logs, intercepts, slopes in zip(
        lists.logs, lists.scores(others), lists.counts[..., feature] / lists.steps, strict=True
    ):
        there = np.flatnonzero(logs > -np.inf)
        for one, other in itertools.combinations(there, 2):
            if slopes[one] != slopes[other]:
                gap = slopes[one] - slopes[other]
                crossings.append((intercepts[other] - intercepts[one]) / gap)
    low, high = bounds.low[feature], bounds.high[feature]
    edges = sorted([low, *(one for one in crossings if low < one < high), high])
    points = [(a + b) / 2 for a, b in itertools.pairwise(edges) if b - a > 1e-6]
    return max(at(lists, weights, feature, point) for point in points)


def at(lists, weights, feature, value):
    moved = weights.copy()
    moved[feature] = value
    return lists.value(moved)


# --- the search on lists ------------------------------------------------------------------------


@settings(max_examples=150)
@given(st.integers(0, 10**6), st.integers(0, 2))
def test_a_line_search_finds_the_best_of_the_whole_line(seed, feature):
    lists = random_lists(seed)
    weights = np.random.default_rng(seed + 1).normal(size=3).clip(BOUNDS.low, BOUNDS.high)
    found = best_on_line(lists, weights, feature, BOUNDS)
    assert BOUNDS.low[feature] <= found <= BOUNDS.high[feature]
    expected = slow_best(lists, weights, feature, BOUNDS)
    assert at(lists, weights, feature, found) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(0, 3))
def test_tuning_never_lowers_the_metric_of_its_lists(seed, num_restarts):
    """Test 10, from any start."""
    lists, rng = random_lists(seed), np.random.default_rng(seed)
    starts = [rng.normal(size=3).clip(BOUNDS.low, BOUNDS.high) for _ in range(2)]
    found = tuned_weights(lists, starts, BOUNDS, num_restarts=num_restarts, rng=rng)
    assert lists.value(found) >= max(map(lists.value, starts))
    for feature in range(3):  # and no single weight gains any more
        assert slow_best(lists, found, feature, BOUNDS) <= lists.value(found) + 1e-9
    assert found[2] <= 0


def test_it_gains_where_there_is_something_to_gain():
    lists = random_lists(3, num_lists=30)
    start = np.zeros(3)
    rng = np.random.default_rng(1)
    alone = tuned_weights(lists, [start], BOUNDS, num_restarts=0, rng=rng)
    more = tuned_weights(lists, [start], BOUNDS, num_restarts=20, rng=rng)
    assert lists.value(start) < lists.value(alone) <= lists.value(more)


def test_of_equal_intervals_the_nearest_to_nothing_is_taken():
    lists = NBestLists(
        np.array([[-1.0, -2.0]]), np.ones((1, 2)), np.zeros((1, 2, 3)), np.array([[0.5, 0.9]])
    )
    assert best_on_line(lists, np.ones(3), 0, BOUNDS) == 0  # no weight changes anything
    lists.counts[0, 1, 0] = 1  # from 1 on, the second is chosen
    assert best_on_line(lists, np.ones(3), 0, BOUNDS) == 1.5


# --- with a model -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plain(make_model):
    """It knows whole words, and is not far from uniform."""
    made = load_model(make_model(merges=2500))
    with torch.no_grad():
        made.model.output.weight.mul_(0.2)
        made.model.output.bias.mul_(0.2)
    return made


@pytest.fixture(scope="module")
def model():
    """The bundled one, which shuns the words of its ledes."""
    return load_model("shipped")._replace(check=False, extractive=START)


@pytest.fixture(scope="module")
def tuned(model):
    return tune_features(model, PAIRS, SMALL, precision="float32")


def test_headlines_become_more_like_the_given_ones(tuned):
    assert tuned.num_pairs == len(PAIRS)
    assert tuned.after > tuned.before + 0.02
    assert tuned.weights.unigram > START.unigram
    assert tuned.weights.length == 0
    assert tuned.weights.order <= 0
    assert tuned.weights.lm == 1


def test_the_metric_is_that_of_what_the_model_then_writes(model, tuned):
    wanted = [headline for _, headline in PAIRS]
    for weights, value in ((START, tuned.before), (tuned.weights, tuned.after)):
        headliner = Headliner([model._replace(extractive=weights)], precision="float32")
        options = Options(search=SearchConfig(beam=SMALL.beam), replace_unknown=False)
        texts = [one.text for one in headliner.generate_batch([lede for lede, _ in PAIRS], options)]
        scores = rouge.mean(rouge.score_all(texts, wanted))
        assert (scores.rouge1.f1 + scores.rouge2.f1) / 2 == pytest.approx(value, abs=0.01)


def test_it_is_the_same_each_time_and_begins_with_what_the_model_has(model, tuned):
    assert tune_features(model, PAIRS, SMALL, precision="float32") == tuned
    again = tune_features(
        model._replace(extractive=tuned.weights), PAIRS, SMALL, precision="float32"
    )
    assert again.before == pytest.approx(tuned.after, abs=1e-9)
    assert again.after >= again.before


def test_without_a_lede_that_the_model_can_read_there_is_nothing_to_tune_on(model):
    with pytest.raises(CorpusError, match="no pair has a lede that the model can read"):
        tune_features(model, [("", "A headline")], SMALL, precision="float32")


# --- a headliner with weights ---------------------------------------------------------------------


class TestHeadliner:
    WEIGHTS = ExtractiveWeights(unigram=3.0, order=-1.0)

    @pytest.fixture
    def headliner(self, plain):
        return Headliner([plain._replace(extractive=self.WEIGHTS)], precision="float32")

    def test_the_name_has_a_plus(self, plain, headliner):
        assert system_name(headliner) == system_name(Headliner([plain], "float32")) + "+"
        both = Headliner([plain._replace(extractive=self.WEIGHTS), plain], "float32")
        assert system_name(both) == f"{plain.model.config.name}+ x 2"

    def test_more_words_come_from_the_lede(self, plain, headliner):
        def share(one):
            words = [
                (word in headline.source.split())
                for headline in one.generate_batch([lede for lede, _ in PAIRS], options)
                for word in headline.tokens
            ]
            return sum(words) / len(words)

        options = Options(search=SearchConfig(beam=4, max_length=10))
        assert share(headliner) > share(Headliner([plain], "float32")) + 0.1

    def test_an_answer_does_not_depend_on_the_batch(self, headliner):
        options = Options(search=SearchConfig(beam=4, max_length=10))
        together = headliner.generate_batch([lede for lede, _ in PAIRS[:6]], options)
        for (lede, _), one in zip(PAIRS, together, strict=False):
            alone = headliner.generate_batch([lede], options)[0]
            assert alone.text == one.text

    def test_explanations_and_checks_work(self, headliner):
        options = Options(search=SearchConfig(beam=3, max_length=8), explain=True, check=True)
        found = headliner.generate_batch([PAIRS[0][0]], options)[0]
        assert found.alignment is not None
        assert found.support is not None
        assert not headliner.is_known_to_verifier

    def test_the_search_of_an_ensemble_has_the_weights_of_the_first(self, plain):
        weighted = plain._replace(extractive=self.WEIGHTS)
        options = Options(search=SearchConfig(beam=3, max_length=8))
        texts = [lede for lede, _ in PAIRS[:4]]
        one, other, plain = (
            [found.text for found in Headliner(models, "float32").generate_batch(texts, options)]
            for models in ([weighted, plain], [weighted], [plain, weighted])
        )
        assert one == other != plain


@pytest.mark.parametrize(
    ("sizes", "given", "expected"),
    [((5,), None, 5), ((5,), 0, 0), ((5,), 2, 2), ((None,), None, 0), ((5, 3), None, 5), ((5, None), None, 0)],
)  # fmt: skip
def test_the_model_says_on_how_many_words_it_depends(plain, sizes, given, expected):
    class OfSize:
        def __init__(self, size):
            self.context_size = size

    headliner = Headliner([plain], "float32")
    headliner.models = tuple(plain._replace(model=OfSize(size)) for size in sizes)
    resolved = headliner.resolve_search(SearchConfig(recombine=given))
    assert resolved.recombine == expected
    own = SearchConfig(beam=plain.beam, block_ngrams=0, recombine=expected)
    assert asdict(resolved) == asdict(own)
