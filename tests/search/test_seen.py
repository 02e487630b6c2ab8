"""What a search keeps for the verifier is what the engine makes of the same headlines."""

from unittest.mock import patch

import numpy as np
import pytest
import torch

from cpu_facts import same_bits_in_any_batch
from ledeline.config import SearchConfig
from ledeline.data.dataset import padded
from ledeline.runtime.cpu import has_int8
from ledeline.runtime.engine import Engine
from ledeline.search import BeamSearch
from ledeline.search.beam import COMPACTIONS, Compaction
from ledeline.text.subwords import BOS, EOS, PAD
from systems import random_system

VOCABULARY = 300
LENGTHS = [31, 1, 16, 17, 5]
CONFIG = SearchConfig(beam=11, n_best=11, min_length=1, max_length=12, block_ngrams=2)
PRECISIONS = [
    "float32",
    pytest.param("int8", marks=pytest.mark.skipif(not has_int8(), reason="no VNNI")),
]
COMPACT = [Compaction(1, 1.0), Compaction(3, 0.75)]

pytestmark = pytest.mark.usefixtures("one_thread")


def sources_of(lengths):
    rng = np.random.default_rng(4)
    return [rng.integers(EOS + 1, VOCABULARY, length).tolist() for length in lengths]


SOURCES = sources_of(LENGTHS)


@pytest.fixture(scope="module")
def model(make):
    """One that ends headlines sooner or later, so that they differ in length."""
    sizes = {"embedding": 24, "hidden": 48, "vocabulary": VOCABULARY, "spread": 0.25}
    made = make("EncDec+sGate+SPM", **sizes)
    with torch.no_grad():
        made.output.bias[EOS] += 1.5
    return made


def run(engine, sources, config=CONFIG, *, forbidden=None, keep_states=True, given_up=()):
    """A search, given up for some sources after some steps."""
    running = BeamSearch(
        engine, *padded(sources), config, forbidden=forbidden, keep_states=keep_states
    )
    while running.running:
        if len(running._history) == 2:
            running.give_up(given_up)
        if running.running:
            running.step()
    return running


def followed(engine, sources, found):
    """What the engine makes of hypotheses of each source, when it is told what to write."""
    number = max(map(len, found))
    width = max(len(one.ids) for some in found for one in some) + 1
    targets = torch.full((len(sources), number, width), PAD)
    for row, some in enumerate(found):
        for slot, one in enumerate(some):
            targets[row, slot, : len(one.ids) + 1] = torch.tensor((*one.ids, EOS))
    previous = torch.cat([torch.full_like(targets[..., :1], BOS), targets[..., :-1]], -1)
    inputs = [torch.from_numpy(one) for one in padded(sources)]
    steps = engine.follow(*inputs, previous.masked_fill(previous == EOS, PAD), targets)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def assert_seen(running, engine, sources, rows):
    """That what was seen of these sources is what the engine makes of them."""
    found = running.hypotheses
    expected = followed(engine, sources, found)
    for row in rows:
        values, states = running.seen(row, found[row])
        length = len(sources[row])
        assert torch.equal(values[:length], expected.values[row, :length])
        for n, one in enumerate(found[row]):
            steps = len(one.path.slots)
            assert steps == len(one.ids) + (not one.truncated)
            assert torch.equal(states[n, :steps], expected.states[row, n, :steps])
            logs = expected.logs[row, n, :steps].tolist()
            assert one.path.logs == pytest.approx(logs, abs=1e-4)


@same_bits_in_any_batch
@pytest.mark.parametrize("compaction", COMPACT)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_it_is_what_the_engine_makes_of_the_same_headlines(model, precision, compaction):
    engine = Engine(model, precision)
    with patch.dict(COMPACTIONS, cpu=compaction):
        running = run(engine, SOURCES)
    found = running.hypotheses
    assert max(map(len, found)) == CONFIG.beam
    assert len({len(one.ids) for some in found for one in some}) >= 3
    assert_seen(running, engine, SOURCES, range(len(SOURCES)))


@same_bits_in_any_batch
@pytest.mark.parametrize("precision", PRECISIONS)
def test_also_where_other_sources_were_given_up(model, precision):
    engine = Engine(model, precision)
    running = run(engine, SOURCES, given_up=[0, 3])
    whole = run(engine, SOURCES).hypotheses
    assert len(running.hypotheses[0]) < len(whole[0])
    assert [running.hypotheses[row] for row in (1, 2, 4)] == [whole[row] for row in (1, 2, 4)]
    assert_seen(running, engine, SOURCES, (1, 2, 4))
    for row in (0, 3):  # what had ended by then
        if running.hypotheses[row]:
            assert_seen(running, engine, SOURCES, [row])


@same_bits_in_any_batch
def test_also_of_a_headline_that_did_not_end(model):
    engine = Engine(model)
    endless = [[EOS]] * 2
    config = SearchConfig(beam=3)
    running = run(engine, SOURCES[3:], config, forbidden=endless)
    for row, (one,) in enumerate(running.hypotheses):
        assert one.truncated
        assert len(one.path.slots) == len(one.ids) == 2 * len(SOURCES[3 + row])
    assert_seen(running, engine, SOURCES[3:], (0, 1))


def test_some_hypotheses_alone_are_those_among_all(model):
    running = run(Engine(model), SOURCES)
    found = running.hypotheses[2]
    values, states = running.seen(2, found)
    for n in (0, len(found) - 1):
        alone, own = running.seen(2, [found[n]])
        assert torch.equal(alone, values)
        assert torch.equal(own[0], states[n, : own.shape[1]])


@pytest.mark.parametrize("compaction", COMPACT)
def test_the_logs_of_a_path_add_up_to_its_cost(model, compaction):
    with patch.dict(COMPACTIONS, cpu=compaction):
        found = run(Engine(model), SOURCES).hypotheses
    for one in (one for some in found for one in some):
        assert sum(one.path.logs) == pytest.approx(-one.cost, rel=1e-9)
        assert all(log <= 0 for log in one.path.logs)


def test_without_states_the_hypotheses_are_the_same_and_have_no_path(model):
    engine = Engine(model)
    kept, plain = run(engine, SOURCES), run(engine, SOURCES, keep_states=False)
    assert [
        [one._replace(path=None) for one in some] for some in kept.hypotheses
    ] == plain.hypotheses
    assert all(one.path is None for some in plain.hypotheses for one in some)
    assert plain.seen(0, plain.hypotheses[0]) is None
    assert kept.seen(0, []) is None


def test_a_model_that_shows_nothing_is_searched_all_the_same():
    model = random_system()
    rows = [[5, 6, 7], [8]]
    running = run(model, rows, SearchConfig(beam=3))
    assert all(running.hypotheses)
    assert running.seen(0, running.hypotheses[0]) is None
