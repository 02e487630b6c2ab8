"""Ids that the headlines of a source must not have."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledeline.config import SearchConfig
from ledeline.data.dataset import padded
from ledeline.search import BeamSearch
from ledeline.search.beam import COMPACTIONS, Compaction
from ledeline.text.subwords import EOS
from systems import random_system

VOCABULARY = 11
SOURCES = [[5, 6, 7, 8, 9], [9, 8], [6, 6, 7], [5]]
CONFIG = SearchConfig(beam=4, n_best=4, min_length=3, max_length=6)


@pytest.fixture(scope="module")
def model():
    return random_system(vocabulary=VOCABULARY).double()


def found_by(model, sources, forbidden, config=CONFIG):
    running = BeamSearch(model, *padded(sources), config, forbidden)
    while running.running:
        running.step()
    return running.hypotheses


def written(found):
    return {word for one in found for word in one.ids}


def unused(one):
    """A word that a hypothesis does not have."""
    return next(word for word in range(EOS + 1, VOCABULARY) if word not in one.ids)


some_ids = st.lists(st.integers(EOS + 1, VOCABULARY - 1), max_size=5)
configs = st.sampled_from([CONFIG, SearchConfig(beam=4, n_best=4, min_length=3, block_ngrams=2)])


@settings(max_examples=60)
@given(
    st.lists(some_ids, min_size=4, max_size=4),
    configs,
    st.sampled_from([Compaction(1, 1.0), Compaction(3, 0.75)]),
)
def test_they_are_never_written_and_others_are_not_touched(model, forbidden, config, compaction):
    with patch.dict(COMPACTIONS, cpu=compaction):
        together = found_by(model, SOURCES, forbidden, config)
    for source, own, found in zip(SOURCES, forbidden, together, strict=True):
        assert found
        assert written(found).isdisjoint(own)
        (alone,) = found_by(model, [source], [own], config)
        assert_alike(found, alone)


def assert_alike(found, expected):
    assert [one.ids for one in found] == [one.ids for one in expected]
    assert [one.cost for one in found] == pytest.approx([one.cost for one in expected], rel=1e-9)


def test_what_is_forbidden_would_have_been_written(model):
    """Else the test above would pass by itself."""
    plain = found_by(model, SOURCES, None)
    for row, found in enumerate(plain):
        forbidden = [[] for _ in SOURCES]
        forbidden[row] = [found[0].ids[0]]
        constrained = found_by(model, SOURCES, forbidden)
        assert constrained[row] != found
        assert [one for n, one in enumerate(constrained) if n != row] == [
            one for n, one in enumerate(plain) if n != row
        ]


@pytest.mark.parametrize("forbidden", [None, [[], [], [], []]])
def test_an_empty_list_forbids_nothing(model, forbidden):
    assert found_by(model, SOURCES, forbidden) == found_by(model, SOURCES, None)


def test_the_others_keep_their_probabilities(model):
    """What is forbidden is left out; its probability goes to nobody."""
    plain = found_by(model, SOURCES, None)
    for row, (best, *others) in enumerate(plain):
        forbidden = [[] for _ in SOURCES]
        forbidden[row] = sorted(written(others) - set(best.ids)) or [unused(best)]
        (again, *_) = found_by(model, SOURCES, forbidden)[row]
        assert again.ids == best.ids
        assert again.cost == pytest.approx(best.cost, rel=1e-12)


def test_where_nothing_but_the_end_is_left_there_is_no_headline(model):
    everything = list(np.arange(EOS + 1, VOCABULARY))
    config = SearchConfig(beam=3, min_length=2, forbid_unknown=True)
    found = found_by(model, SOURCES[:2], [everything, []], config)
    assert found[0] == []
    assert found[1] == found_by(model, SOURCES[:2], None, config)[1]


def test_they_stay_forbidden_after_others_were_given_up(model):
    plain = found_by(model, SOURCES, None)
    forbidden = [[one[0].ids[-1]] for one in plain]
    whole = found_by(model, SOURCES, forbidden)
    running = BeamSearch(model, *padded(SOURCES), CONFIG, forbidden)
    running.step()
    running.give_up([0, 2])
    while running.running:
        running.step()
    for row in (1, 3):
        assert_alike(running.hypotheses[row], whole[row])
