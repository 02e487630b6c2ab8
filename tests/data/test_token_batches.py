"""Batches of so many source tokens, and of headlines of similar lengths: each pair once."""

from collections import Counter
from itertools import islice, pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledeline.config import LoopConfig
from ledeline.config.section import BadValue
from ledeline.data.batches import Batches, PlannedBatch


class Lengths:
    """A split of which only the lengths are known."""

    def __init__(self, sources: list[int], headlines: list[int]) -> None:
        self.sources = SimpleNamespace(lengths=lambda: np.array(sources, np.int64))
        self.headlines = SimpleNamespace(lengths=lambda: np.array(headlines, np.int64))
        self.pairs = list(zip(sources, headlines, strict=True))

    def __len__(self) -> int:
        return len(self.pairs)


def split(number: int = 3000, seed: int = 1) -> Any:
    random = np.random.default_rng(seed)
    sources = random.integers(5, 40, number)
    return Lengths(sources.tolist(), random.integers(1, sources, number).tolist())


def batches(one: Any, size: int = 400, seed: int = 1, **more: Any) -> Batches:
    return Batches(one, size=size, seed=seed, unit="source_tokens", **more)


def rows_of(drawn: Batches, epoch: int = 0) -> list[list[int]]:
    plan = drawn.plan(epoch)
    return [PlannedBatch(plan, number).rows.tolist() for number in range(len(drawn))]


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=200),
    st.integers(1, 100),
    st.integers(0, 2),
    st.booleans(),
)
def test_each_pair_once_within_the_budget(
    sources: list[int], size: int, epoch: int, similar: bool
) -> None:
    one: Any = Lengths(sources, [1 + length // 2 for length in sources])
    rows = rows_of(batches(one, size, similar_headlines=similar), epoch)
    assert Counter(row for batch in rows for row in batch) == Counter(range(len(sources)))
    for batch in rows:
        assert len({sources[row] for row in batch}) == 1
        assert len(batch) == 1 or sum(sources[row] for row in batch) <= size


def test_batches_are_as_full_as_can_be() -> None:
    one = split()
    full = [batch for batch in rows_of(batches(one)) if len(batch) == 400 // one.pairs[batch[0]][0]]
    assert len(full) > 0.7 * len(batches(one))


def test_headlines_of_a_batch_are_alike() -> None:
    """Padding is far less than with batches of any headlines."""
    one = split()

    def padded(drawn: Batches) -> float:
        plan, widths = drawn.plan(0), [length for _, length in one.pairs]
        rows = (PlannedBatch(plan, number).rows for number in range(len(drawn)))
        return sum(max(widths[row] for row in batch) * len(batch) for batch in rows) / sum(widths)

    similar = {"similar_headlines": True}
    assert padded(batches(one, **similar)) < 1.2 < 1.5 < padded(batches(one))
    assert padded(Batches(one, size=20, seed=1, **similar)) < 1.25


def test_pairs_of_one_shape_change_places() -> None:
    one: Any = Lengths([10] * 100, [4] * 50 + [5] * 50)
    similar = {"similar_headlines": True}
    orders = [
        rows_of(batches(one, 100, seed, **similar), epoch)
        for seed, epoch in ((1, 0), (1, 1), (2, 0))
    ]
    for order, other in pairwise(orders):
        assert order != other
    assert orders[0] == rows_of(batches(one, 100, 1, **similar), 0)
    for batch in orders[0]:
        assert len({one.pairs[row] for row in batch}) == 1


def test_a_position_goes_on_with_the_same_batches() -> None:
    drawn = batches(split())
    everything = list(islice(drawn.planned_from(), 40))
    for planned, expected in zip(
        (one for one, _ in drawn.planned_from(everything[9][1])),
        (one for one, _ in everything[10:]),
        strict=False,
    ):
        assert planned.rows.tolist() == expected.rows.tolist()


def test_max_height_holds_every_batch() -> None:
    drawn = batches(split())
    assert drawn.max_height >= max(map(len, rows_of(drawn)))
    assert drawn.max_height == drawn.plan(0).heights.max()
    assert batches(Lengths([], [])).max_height == 0


def test_mixed_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="equal lengths"):
        batches(split(), equal_lengths=False)
    with pytest.raises(BadValue, match=r"equal_lengths"):
        LoopConfig(batch_unit="source_tokens", equal_lengths=False)


def test_similar_headlines_need_whole_pairs_of_equal_lengths() -> None:
    for wrong in ({"equal_lengths": False}, {"batch_unit": "words"}):
        with pytest.raises(BadValue, match="similar_headlines"):
            LoopConfig(similar_headlines=True, **wrong)
    for wrong in ({"equal_lengths": False}, {"unit": "words"}):
        with pytest.raises(ValueError, match="lengths"):
            Batches(split(), size=4, seed=1, similar_headlines=True, **wrong)
