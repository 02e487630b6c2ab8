"""The golden file: every kind of kernels finds it, to the last bit, however it is asked.

`python bench/golden.py write` writes it, and `check` compares more of it than there is time for here.
"""

import sys

import pytest

from pages import ROOT

_runtime = pytest.importorskip("ledeline.runtime._runtime")
sys.path.append(str(ROOT / "bench"))
import golden  # noqa: E402

SLOW = "portable"  # one in 125 ledes takes as long as one in 5 of the fastest


@pytest.fixture(scope="module")
def fastest() -> golden.Models:
    return golden.load(_runtime.kinds()[-1])


def test_it_has_all_ledes_and_is_small() -> None:
    assert len(golden.read()) == len(golden.ledes()) == golden.NUM_LEDES
    assert golden.FILE.stat().st_size <= 200_000


def test_ledes_that_are_not_the_same_have_not_the_same_bits() -> None:
    found = golden.read()
    sources = set(map(tuple, golden.encoded(golden.ledes())))
    assert len({one.seen for one in found}) == len(sources)


@pytest.mark.parametrize(
    ("every", "batch", "threads"), [(7, 32, 1), (20, 1, 1), (13, 32, 3), (25, 1, 3)]
)
def test_the_fastest_kernels_find_it(
    fastest: golden.Models, every: int, batch: int, threads: int
) -> None:
    assert not golden.differences("", every=every, batch=batch, threads=threads, models=fastest)


@pytest.mark.parametrize("kind", _runtime.kinds())
def test_every_kind_of_kernels_finds_it(kind: str) -> None:
    every = 125 if kind == SLOW else 40
    assert not golden.differences(kind, every=every, batch=5)


def test_another_beam_is_noticed(fastest: golden.Models, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(golden.OPTIONS, "beam", 1)
    assert golden.differences("", every=100, models=fastest)
