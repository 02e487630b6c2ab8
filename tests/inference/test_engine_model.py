"""The engine explains headlines as the system in PyTorch does."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from ledeline.core.steps import run_steps
from ledeline.inference import engine_model
from ledeline.inference.engine_model import EngineModel
from ledeline.inference.engine_weights import engine_of
from ledeline.inference.traces import teacher_force
from systems import random_system

# Words that occur twice, a headline longer than its source, none, and the same source twice.
PAIRS = [
    ([9, 5, 7, 9, 10, 3, 8], [9, 8]),
    ([4, 6, 4], [5, 7]),
    ([10, 9], [6, 7, 8, 9]),
    ([5, 6, 7, 5, 8], []),
    ([4, 6, 4], [6]),
]

pytestmark = pytest.mark.usefixtures("one_thread")


def attributions(system: Any, precision: Any, pairs: Any = PAIRS) -> list[Any]:
    return run_steps(EngineModel([engine_of(system, precision)]).attribution_steps(pairs))


@pytest.mark.parametrize("addons", [(), ("sgate",), ("spm",), ("sgate", "spm")])
@pytest.mark.parametrize(("precision", "most"), [("float32", 2e-5), ("int8", 0.05)])
def test_attributions_are_those_of_the_system(
    addons: tuple[str, ...], precision: Any, most: float
) -> None:
    system = random_system(*addons)
    found = attributions(system, precision)
    for (source, headline), own, seen in zip(
        PAIRS, found, teacher_force(system, PAIRS), strict=True
    ):
        expected = seen.weights(source)
        assert len(own.attention) == len(headline)
        assert (own.spm is None) == (expected.spm is None) == ("spm" not in addons)
        for ours, theirs in zip(own, expected, strict=True):
            if theirs:
                np.testing.assert_allclose(ours, theirs, atol=most)


@pytest.mark.parametrize("most", [1, 6, 12])
def test_batches_change_nothing(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    system = random_system("sgate", "spm")
    together = attributions(system, "int8")
    monkeypatch.setattr(engine_model, "_MAX_READ", most)
    assert attributions(system, "int8") == together
    monkeypatch.setattr(engine_model, "_MAX_POSITIONS", most)
    assert attributions(system, "int8") == together
    assert [attributions(system, "int8", [pair])[0] for pair in PAIRS] == together
    assert attributions(system, "int8", []) == []


def test_batches_are_small_where_sources_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_model, "_MAX_READ", 10)
    batches = list(engine_model._batches(PAIRS))
    assert [pair for batch in batches for pair in batch] == PAIRS
    assert [len(batch) for batch in batches] == [1, 2, 2]
    for batch, after in pairwise(batches):  # none could have had one more
        sources = {tuple(source) for source, _ in (*batch, after[0])}
        assert len(sources) * max(map(len, sources)) > 10
    same = [(PAIRS[0][0], [5])] * 7  # it is read once
    assert [len(batch) for batch in engine_model._batches(same)] == [7]
    monkeypatch.setattr(engine_model, "_MAX_POSITIONS", 21)
    assert [len(batch) for batch in engine_model._batches(same)] == [3, 3, 1]
