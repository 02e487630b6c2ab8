"""Headlines a step at a time: put aside, interleaved, given up."""

import gc
import time
import weakref
from pathlib import Path

import numpy as np
import pytest

from ledeline.config import SearchConfig
from ledeline.inference.attribution import spm_weights
from ledeline.inference.checks.checker import MAX_HEADLINE
from ledeline.inference.headliner import Headliner
from ledeline.inference.options import Options
from ledeline.search import Hypothesis
from ledeline.search.engine_search import EngineSearch
from ledeline.synth.newsroom import generate
from ledeline.text.subwords import UNK

pytestmark = pytest.mark.usefixtures("one_thread")
LEDES = [story.lede for story in generate(4, 7)]
OPTIONS = Options(search=SearchConfig(beam=3, n_best=2, max_length=8), explain=True)


@pytest.fixture(scope="module")
def headliner(model_folder: Path) -> Headliner:
    return Headliner.load(model_folder, device="cpu")


def test_interleaved_generations_do_not_disturb_each_other(headliner: Headliner) -> None:
    alone = headliner.generate_batch(LEDES, OPTIONS)
    running = [headliner.begin(headliner.read([text]), OPTIONS) for text in LEDES]
    while not all(one.done for one in running):
        for one in running:
            if not one.done:
                one.advance()
    assert [one.headlines[0] for one in running] == alone


def test_the_numbers_of_texts_are_those_of_reading(headliner: Headliner) -> None:
    (first, second) = headliner.read(["Rain fell.", ""], first=7)
    generation = headliner.begin([second, first], OPTIONS)
    while not generation.done:
        generation.advance()
    assert generation.headlines[0] is not None
    assert generation.headlines[0].warnings[0].message == "text 8 has no words"
    assert generation.headlines[1]


@pytest.mark.parametrize("steps", [0, 1, 2, 5, 9, 12])
def test_those_that_are_given_up_have_none_and_the_others_theirs(
    headliner: Headliner, steps: int
) -> None:
    alone = headliner.generate_batch(LEDES, OPTIONS)
    generation = headliner.begin(headliner.read([*LEDES, ""]), OPTIONS)
    for _ in range(steps):
        generation.advance()
    generation.give_up([1, 3])
    while not generation.done:
        generation.advance()
    found = generation.headlines
    assert [found[1], found[3]] == [None, None]
    assert [found[0], found[2]] == [alone[0], alone[2]]


def test_giving_up_all_ends_it_and_releases_its_memory(headliner: Headliner) -> None:
    generation = headliner.begin(headliner.read(LEDES), OPTIONS)
    generation.advance()
    generation.advance()
    search = generation._search
    assert isinstance(search, EngineSearch)
    memory = weakref.ref(search)
    del search
    generation.give_up([0, 1])
    assert not generation.done
    generation.give_up([2, 3])
    assert generation.done
    gc.collect()
    assert memory() is None
    assert generation.headlines == [None] * 4


def test_an_explanation_is_made_in_steps(headliner: Headliner) -> None:
    """One for each word, so that a long one can be given up."""

    def steps(*, explain: bool) -> int:
        options = Options(search=SearchConfig(beam=1, min_length=8, max_length=8), explain=explain)
        generation, number = headliner.begin(headliner.read(LEDES[:1]), options), 0
        while not generation.done:
            generation.advance()
            number += 1
        return number

    assert steps(explain=True) >= steps(explain=False) + 8


def test_a_repeated_type_belongs_to_the_place_with_most_attention() -> None:
    """As it was defined: by comparing all places with all others."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        source = rng.integers(0, 6, rng.integers(1, 12))
        attention = rng.integers(0, 3, (4, len(source))).astype(np.float32)  # with equals
        q = rng.random((4, 6)).astype(np.float32)
        same = source[:, None] == source
        best = np.where(same, attention[:, None, :], -1).argmax(-1)
        expected = np.where(best == np.arange(len(source)), q[:, source], 0)
        assert (spm_weights(q[:, source], source.tolist(), attention) == expected).all()


def test_of_those_with_unknown_words_as_many_are_ranked_as_asked_for(headliner: Headliner) -> None:
    """Each of them takes a second pass, and nobody pays for more."""
    generation = headliner.begin(headliner.read(["Rain fell."]), OPTIONS)  # n_best is 2
    plain, odd = Hypothesis((7, 8), -1.0), Hypothesis((7, UNK), -1.0)
    found = [odd, plain, odd, odd, plain, odd]
    assert generation._ranked_ones(found) == [odd, plain, odd, plain]


def test_checks_take_short_steps_and_little_memory() -> None:
    """Whatever the text: here many numbers, in it and in long headlines."""
    headliner = Headliner.load(device="cpu")
    headliner.checker()  # loads it, as the server does beforehand
    text = " ".join(map(str, range(3000)))[:5000]
    search = SearchConfig(beam=20, min_length=100, max_length=100)
    generation = headliner.begin(headliner.read([text]), Options(search=search))
    longest, kept = 0.0, 0
    while not generation.done:
        began = time.thread_time()
        generation.advance()
        longest = max(longest, time.thread_time() - began)
        if generation._search is not None:
            assert isinstance(generation._search, EngineSearch)
            kept = max(kept, generation._search._native.num_seen)
    assert longest < 0.5  # it takes a tenth of that; all at once would take seconds
    assert kept == MAX_HEADLINE + 1
    assert generation.headlines[0] is not None
