"""What a search keeps for the verifier is what the engine makes of the same headlines."""

import numpy as np
import pytest
import torch

from ledeline.config import SearchConfig
from ledeline.core.steps import run_steps
from ledeline.inference.engine_weights import engine_of
from ledeline.search.engine_search import EngineSearch
from ledeline.text.subwords import EOS

VOCABULARY, HIDDEN = 300, 48
LENGTHS = [31, 1, 16, 17, 5]
CONFIG = SearchConfig(beam=11, n_best=11, min_length=1, max_length=12, block_ngrams=2)
PRECISIONS = ["float32", "int8"]
ALL = 99  # more steps than there are

pytestmark = pytest.mark.usefixtures("one_thread")


def sources_of(lengths):
    rng = np.random.default_rng(4)
    return [rng.integers(EOS + 1, VOCABULARY, length).tolist() for length in lengths]


SOURCES = sources_of(LENGTHS)


@pytest.fixture(scope="module")
def engines(make):
    """Of one that ends headlines sooner or later, so that they differ in length."""
    sizes = {"embedding": 24, "hidden": HIDDEN, "vocabulary": VOCABULARY, "spread": 0.25}
    made = make("EncDec+sGate+SPM", **sizes).float()
    with torch.no_grad():
        made.output.bias[EOS] += 1.5
    return {precision: engine_of(made, precision) for precision in PRECISIONS}


def run(engine, sources, config=CONFIG, *, forbidden=None, keep_states=ALL, given_up=()):
    """A search, given up for some sources after some steps."""
    running = EngineSearch([engine], sources, config, forbidden, keep_states=keep_states)
    step = 0
    while running.running:
        if step == 2:
            running.give_up(given_up)
        if running.running:
            running.step()
        step += 1
    return running


def states_of(seen, number):
    """The kept states, (N, steps, H)."""
    return np.frombuffer(seen.states, np.float32).reshape(number, seen.steps, HIDDEN)


def assert_seen(running, engine, sources, rows):
    """That what was seen of these sources is what the engine makes of them, to the last bit."""
    found = running.hypotheses
    asked = [(row, one) for row in rows for one in found[row]]
    expected = run_steps(engine.follow(sources, [(row, one.ids) for row, one in asked]))
    number = 0
    for row in rows:
        seen = running.seen(row, found[row])
        assert seen.values == expected.values(row)
        for n, one in enumerate(found[row]):
            steps = len(one.path.slots)
            assert steps == len(one.ids) + (not one.truncated)
            followed = expected.headline(number)
            number += 1
            own = states_of(seen, len(found[row]))[n]
            theirs = np.array(followed.states).reshape(-1, HIDDEN)
            assert np.array_equal(own[:steps], theirs[:steps][: seen.steps])
            assert not own[steps:].any()
            assert one.path.logs == pytest.approx(list(followed.logs)[:steps], abs=1e-5)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_it_is_what_the_engine_makes_of_the_same_headlines(engines, precision):
    engine = engines[precision]
    running = run(engine, SOURCES)
    found = running.hypotheses
    assert max(map(len, found)) == CONFIG.beam
    assert len({len(one.ids) for some in found for one in some}) >= 3
    assert_seen(running, engine, SOURCES, range(len(SOURCES)))


@pytest.mark.parametrize(
    "changes", [{"keep_finished": True}, {"recombine": 2}, {"stop_early": True}], ids=str
)
def test_also_of_other_searches(engines, changes):
    config = SearchConfig(beam=6, n_best=6, max_length=12, **changes)
    assert_seen(run(engines["int8"], SOURCES, config), engines["int8"], SOURCES, range(5))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_also_where_other_sources_were_given_up(engines, precision):
    engine = engines[precision]
    running = run(engine, SOURCES, given_up=[0, 3])
    whole = run(engine, SOURCES).hypotheses
    assert len(running.hypotheses[0]) < len(whole[0])
    assert [running.hypotheses[row] for row in (1, 2, 4)] == [whole[row] for row in (1, 2, 4)]
    assert_seen(running, engine, SOURCES, (1, 2, 4))
    for row in (0, 3):  # what had ended by then
        if running.hypotheses[row]:
            assert_seen(running, engine, SOURCES, [row])


def test_also_of_a_headline_that_did_not_end(engines):
    running = run(engines["int8"], SOURCES[3:], SearchConfig(beam=3), forbidden=[[EOS]] * 2)
    for row, (one,) in enumerate(running.hypotheses):
        assert one.truncated
        assert len(one.path.slots) == len(one.ids) == 2 * len(SOURCES[3 + row])
    assert_seen(running, engines["int8"], SOURCES[3:], (0, 1))


@pytest.mark.parametrize("most", [1, 3, 6])
def test_no_more_steps_are_kept_than_are_asked_for(engines, most):
    running = run(engines["int8"], SOURCES, keep_states=most)
    assert max(len(one.path.slots) for one in running.hypotheses[0]) > most
    assert running.seen(0, running.hypotheses[0]).steps == most
    assert_seen(running, engines["int8"], SOURCES, range(5))


def test_some_hypotheses_alone_are_those_among_all(engines):
    running = run(engines["float32"], SOURCES)
    found = running.hypotheses[2]
    seen = running.seen(2, found)
    for n in (0, len(found) - 1):
        alone = running.seen(2, [found[n]])
        assert alone.values == seen.values
        assert alone.steps == len(found[n].path.slots)
        states = states_of(seen, len(found))[n]
        assert np.array_equal(states_of(alone, 1)[0], states[: alone.steps])


def test_the_logs_of_a_path_add_up_to_its_cost(engines):
    for one in (one for some in run(engines["float32"], SOURCES).hypotheses for one in some):
        assert sum(one.path.logs) == pytest.approx(-one.cost, rel=1e-5)
        assert all(log <= 0 for log in one.path.logs)


def test_without_states_the_hypotheses_are_the_same(engines):
    kept = run(engines["int8"], SOURCES)
    assert run(engines["int8"], SOURCES, keep_states=0).hypotheses == kept.hypotheses
    assert kept.seen(0, []).steps == 0
    assert kept.seen(0, []).states == b""
