"""What no caller should do with the types in C: it gets a sentence, never a crash or other memory."""

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ledeline.config import SearchConfig
from native_models import begun, extreme_tensors, model

_runtime = pytest.importorskip("ledeline.runtime._runtime")

SIZES = {"vocabulary": 4000, "embedding": 8, "hidden": 512, "layers": 1}
SOURCES = [[7, 8, 9], list(range(5, 65))]
FAILED = "failed for lack of memory"


@pytest.fixture(scope="module")
def of() -> Any:
    """A model whose rows of states are large."""
    kind, tensors = _runtime.kinds()[-1], extreme_tensors(4000, 8, 512)
    return model(kind, int8=True, tensors=tensors, **SIZES, gate=False, spm=False)


@contextmanager
def no_more_memory() -> Iterator[None]:
    """The process gets no more than it has."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def carry_on(running: Any) -> None:
    while running.running:
        running.step()


def fail(running: Any) -> None:
    """Carry on without memory, until a step fails."""
    with no_more_memory(), pytest.raises(MemoryError):
        carry_on(running)


needs_limits = pytest.mark.skipif(
    not Path("/proc/self/statm").exists() or "asan" in os.environ.get("LD_PRELOAD", ""),
    reason="there is no /proc here, or a sanitizer needs memory of its own",
)


@needs_limits
@pytest.mark.parametrize(
    "use",
    [
        lambda one: one.running,
        lambda one: one.num_seen,
        lambda one: one.step(),
        lambda one: one.give_up([0]),
        lambda one: one.hypotheses(),
        lambda one: one.values(0),
        lambda one: one.states(0, [[0]], 1),
    ],
)
def test_a_search_whose_step_failed_is_over(of: Any, use: Callable[[Any], Any]) -> None:
    config = SearchConfig(beam=3000, n_best=1, min_length=100)
    running = begun(of, SOURCES, config, keep_states=True)
    running.step()
    fail(running)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=FAILED):
            use(running)


@needs_limits
@pytest.mark.parametrize(
    "use",
    [
        lambda one: one.running,
        lambda one: one.step(),
        lambda one: one.headline(0),
        lambda one: one.values(0),
    ],
)
def test_headlines_are_not_followed_after_a_step_failed(of: Any, use: Callable[[Any], Any]) -> None:
    following = _runtime.Follow(of, SOURCES, [(1, [8, 9])] * 20_000, False)
    fail(following)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=FAILED):
            use(following)


def test_states_are_those_of_rows_that_there_were(of: Any) -> None:
    """The first step has one row, and later ones as many as are left."""
    running = begun(of, SOURCES, SearchConfig(beam=50, n_best=1), keep_states=True)
    running.step()
    running.step()
    assert len(running.states(1, [[0, 49]], 2)) == 2 * 512 * 4
    for path in ([1], [49], [0, 50], [1, 0]):
        with pytest.raises(ValueError, match=r"not seen|not an id"):
            running.states(1, [path], len(path))
    running.give_up([0])
    running.step()
    with pytest.raises(ValueError, match="not seen"):
        running.states(0, [[0, 0, 0]], 3)
