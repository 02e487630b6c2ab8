"""Finished headlines keep their places in the beam: section 3.3 and test 6 of SEASS."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ledeline.config import SearchConfig
from ledeline.core.errors import ConfigError
from ledeline.data.dataset import padded
from ledeline.inference.engine_weights import engine_of
from ledeline.search import BeamSearch, greedy, search
from ledeline.search.beam import COMPACTIONS, Compaction
from ledeline.search.engine_search import EngineSearch
from ledeline.text.subwords import EOS
from slow_search import TableModel, assert_alike, search_options, slow_search
from systems import random_system

V = 9
SOURCES = [[4, 5, 6], [5], [6, 7, 8, 4, 4], [7, 7], [8, 5, 5, 6]]
COMPACT = [Compaction(1, 1.0), Compaction(3, 0.75), Compaction(8, 0.2)]
KEEP = SearchConfig(beam=4, n_best=4, keep_finished=True)


options = search_options(
    block_ngrams=st.integers(0, 2), recombine=st.integers(0, 2), keep_finished=st.just(True)
)


@settings(max_examples=100)
@given(st.integers(0, 10**6), options, st.sampled_from(COMPACT), st.sampled_from([None, 1, 2, 4]))
def test_the_batched_search_is_the_plain_one(seed, config, compaction, num_levels):
    """However seldom the host looks, and where many scores are equal."""
    model = TableModel(seed, V, num_levels)
    with patch.dict(COMPACTIONS, cpu=compaction):
        found = search(model, *padded(SOURCES), config)
    for source, one in zip(SOURCES, found, strict=True):
        assert_alike(one, slow_search(model, source, config))


def test_an_answer_does_not_depend_on_the_batch():
    model = random_system(vocabulary=V, std=1.0).double()
    alone = [search(model, *padded([source]), KEEP)[0] for source in SOURCES]
    for order in ([0, 1, 2, 3, 4], [4, 2, 1, 0, 3], [2, 2, 0]):
        ids, lengths = padded([SOURCES[place] for place in order])
        for sources in (ids, np.pad(ids, ((0, 0), (0, 5)))):
            for place, found in zip(order, search(model, sources, lengths, KEEP), strict=True):
                assert_alike(found, alone[place])
    shrinking = search(model, *padded(SOURCES), replace(KEEP, keep_finished=False))
    assert shrinking != alone  # else it is not much of a test


# --- test 6 of the specification ------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_a_beam_of_one_is_greedy(seed):
    model = TableModel(seed, V)
    found = search(model, *padded(SOURCES), SearchConfig(beam=1, keep_finished=True))
    assert [list(one[0].ids) for one in found] == greedy(model, *padded(SOURCES))


@pytest.mark.parametrize("seed", range(6))
def test_scores_fall_from_rank_to_rank(seed):
    for found in search(TableModel(seed, V), *padded(SOURCES), KEEP):
        scores = [one.score for one in found]
        assert scores == sorted(scores, reverse=True)


def test_the_score_of_a_finished_one_does_not_change_later():
    at_several_steps = 0
    for seed in range(20):
        running = BeamSearch(TableModel(seed, V), *padded(SOURCES[:1]), KEEP)
        known = {}
        while running.running:
            running.step()
            scores, steps, slots = (one[0].tolist() for one in running._kept_history[-1])
            kept = {
                (step, slot): score
                for score, step, slot in zip(scores, steps, slots, strict=True)
                if score > -np.inf
            }
            at_several_steps += len(kept.keys() & known.keys())
            assert all(known.get(place, score) == score for place, score in kept.items())
            known |= kept
        found = [one.score for one in running.hypotheses[0] if not one.truncated]
        assert found == pytest.approx(sorted(kept.values(), reverse=True), rel=1e-12)
    assert at_several_steps > 5


# --- rules, on models whose scores are given ------------------------------------------------------


class Scripted:
    """A model whose scores are given for each prefix; -100 where they are not."""

    device = torch.device("cpu")

    def __init__(self, scores):
        self._scores = scores

    def encode(self, sources, lengths, mask):
        number = len(sources)
        empty = torch.zeros(number, 1, 20, dtype=torch.long)
        return (empty, torch.zeros(number, 1, dtype=torch.float64)), None

    def step(self, words, state, memory):
        prefixes, steps = state
        prefixes, j = prefixes.clone(), int(steps.max())
        prefixes[:, :, j] = words
        logs = torch.full((*words.shape, V), -100.0, dtype=torch.float64)
        for b in range(words.shape[0]):
            for k in range(words.shape[1]):
                own = tuple(prefixes[b, k, 1 : j + 1].tolist())
                for word, score in self._scores.get(own, {}).items():
                    logs[b, k, word] = score
        return logs, (prefixes, steps + 1)


def written(scores, length=9, **config):
    sources, lengths = np.full((1, length), 5), np.array([length])
    config = SearchConfig(keep_finished=True, **config)
    return search(Scripted(scores), sources, lengths, config)[0]


def test_what_falls_out_of_the_beam_is_gone():
    # [4] ends with a mean of -2. Both places then go to likelier ones, which end badly.
    scores = {
        (): {4: -1.0, 5: -3.0},
        (4,): {EOS: -3.0, 6: -1.1},
        (5,): {7: -0.1},
        (4, 6): {6: -0.2},
        (5, 7): {6: -0.1},
        (4, 6, 6): {EOS: -9.0},
        (5, 7, 6): {EOS: -9.0},
    }
    full = {**scores, (5,): {7: -2.9}, (5, 7): {6: -0.1}}
    found = written(scores, beam=2, n_best=2)
    assert [one.ids for one in found] == [(4, 6, 6), (5, 7, 6)]
    assert all(one.score < -2 for one in found)
    assert (4,) in [one.ids for one in written(full, beam=3, n_best=3)]


def test_a_finished_one_keeps_its_place_from_others():
    # [4] has a mean of -0.5 and one of two places, so only the best of the two others goes on.
    scores = {
        (): {4: -0.5, 5: -0.6},
        (4,): {EOS: -0.5, 6: -2.0},
        (5,): {7: -0.7},
        (5, 7): {EOS: -0.1, 8: -0.3},
        (5, 7, 8): {EOS: -0.1},
    }
    found = written(scores, beam=2, n_best=2)
    assert [one.ids for one in found] == [(5, 7), (4,)]
    assert [one.score for one in found] == pytest.approx([-1.4 / 3, -0.5])


def test_it_ends_when_all_have_finished():
    scores = {(): {4: -0.1, 5: -0.1}, (4,): {EOS: -0.1, 6: -2.0}, (5,): {EOS: -0.1, 6: -2.0}}
    running = BeamSearch(
        Scripted(scores),
        np.full((1, 9), 5),
        np.array([9]),
        SearchConfig(beam=2, keep_finished=True),
    )
    steps = 0
    while running.running:
        running.step()
        steps += 1
    assert steps == 2


def test_unfinished_ones_are_dropped_at_the_limit_unless_there_are_no_others():
    scores = {(): {4: -0.1}, (4,): {4: -0.1, EOS: -9.0}, (4, 4): {4: -0.1}, (4, 4, 4): {4: -0.1}}
    assert [one.ids for one in written(scores, 2, beam=2, n_best=2)] == [(4,)]
    (found,) = written({**scores, (4,): {4: -0.1}}, 2, beam=1)
    assert (found.ids, found.truncated) == ((4, 4, 4, 4), True)


def test_of_one_that_was_given_up_there_is_what_was_in_the_beam():
    model = TableModel(1, V)
    whole = search(model, *padded(SOURCES), KEEP)
    running = BeamSearch(model, *padded(SOURCES), KEEP)
    step = 0
    while running.running:
        if step == 3:
            running.give_up([0, 2])
        if running.running:
            running.step()
        step += 1
    for row in (1, 3, 4):
        assert_alike(running.hypotheses[row], whole[row])
    assert all(len(one.ids) < 3 for row in (0, 2) for one in running.hypotheses[row])


def test_what_was_seen_is_kept_with_the_headlines(make):
    model = make("EncDec", embedding=8, hidden=16, vocabulary=40).float()
    running = EngineSearch([engine_of(model, "float32")], SOURCES, KEEP, keep_states=9)
    while running.running:
        running.step()
    for row, found in enumerate(running.hypotheses):
        assert found
        for one in found:
            assert sum(one.path.logs) == pytest.approx(-one.cost, rel=1e-5)
            assert len(one.path.slots) == len(one.ids) + (not one.truncated)
        seen = running.seen(row, found)
        assert seen.steps == min(9, max(len(one.path.slots) for one in found))
        assert len(seen.states) == len(found) * seen.steps * 16 * 4


def test_it_cannot_stop_early():
    with pytest.raises(ConfigError, match="stop_early = true: does not go with keep_finished"):
        SearchConfig(keep_finished=True, stop_early=True)
