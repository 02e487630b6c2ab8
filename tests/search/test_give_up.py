"""A search that is given up for some of its sources, between any two steps."""

import weakref
from unittest.mock import patch

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ledeline.config import SearchConfig
from ledeline.data.dataset import padded
from ledeline.search import BeamSearch, search
from ledeline.search.beam import COMPACTIONS, Compaction
from systems import random_system

SOURCES = [[5, 6, 7, 8, 9], [9, 8], [6, 6, 7], [5]]
LONG = SearchConfig(beam=4, n_best=2, min_length=4, block_ngrams=2)


@pytest.fixture(scope="module")
def model():
    return random_system().eval()


@settings(max_examples=60, deadline=None)
@given(
    given_up=st.dictionaries(st.integers(0, 3), st.integers(0, 12), max_size=4),
    compaction=st.sampled_from([Compaction(1, 1.0), Compaction(3, 0.75)]),
)
def test_the_others_find_what_they_would_find(model, given_up, compaction) -> None:
    expected = search(model, *padded(SOURCES), LONG)
    with patch.dict(COMPACTIONS, cpu=compaction):
        running = BeamSearch(model, *padded(SOURCES), LONG)
        step = 0
        while running.running:
            running.give_up([row for row, when in given_up.items() if when == step])
            if running.running:
                running.step()
            step += 1
    for row, found in enumerate(running.hypotheses):
        if row not in given_up:
            assert found == expected[row]


def test_all_at_once_ends_it_and_releases_its_memory(model) -> None:
    running = BeamSearch(model, *padded(SOURCES), LONG)
    running.step()
    tensors = [weakref.ref(one) for one in _tensors((running._state, running._memory))]
    assert tensors
    running.give_up(range(4))
    assert not running.running
    assert [one() for one in tensors] == [None] * len(tensors)
    running.give_up([0])


def test_before_the_first_step(model) -> None:
    running = BeamSearch(model, *padded(SOURCES), LONG)
    running.give_up(range(4))
    assert running.hypotheses == [[], [], [], []]


def test_some_make_the_memory_smaller(model) -> None:
    running = BeamSearch(model, *padded(SOURCES), LONG)
    running.step()

    def size() -> int:
        return sum(one.numel() for one in _tensors((running._state, running._memory)))

    before = size()
    running.give_up([0, 2, 3])
    assert size() <= before / 3


def _tensors(tree: object) -> list[torch.Tensor]:
    if isinstance(tree, torch.Tensor):
        return [tree]
    return [leaf for one in tree for leaf in _tensors(one)] if isinstance(tree, tuple) else []
