"""What no caller should do with the types in C: it gets a sentence, never a crash or other memory."""

import importlib.util
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ledeline.config import SearchConfig
from native_models import begun, extreme_tensors, model
from pages import ROOT

_runtime = pytest.importorskip("ledeline.runtime._runtime")
sys.path.append(str(ROOT / "bench"))
import golden  # noqa: E402

SIZES = {"vocabulary": 4000, "embedding": 8, "hidden": 512, "layers": 1}
SOURCES = [[7, 8, 9], list(range(5, 65))]


@pytest.fixture(scope="module")
def of() -> Any:
    """A model whose rows of states are large."""
    kind, tensors = _runtime.kinds()[-1], extreme_tensors(4000, 8, 512)
    return model(kind, int8=True, tensors=tensors, **SIZES, gate=False, spm=False)


def carry_on(running: Any) -> None:
    while running.running:
        running.step()


@pytest.mark.skipif(
    not Path("/proc/self/statm").exists() or "asan" in os.environ.get("LD_PRELOAD", ""),
    reason="there is no /proc here, or a sanitizer needs memory of its own",
)
def test_after_a_step_failed_nothing_is_answered() -> None:
    program = [sys.executable, Path(__file__).with_name("out_of_memory.py")]
    shown = subprocess.run(program, capture_output=True, text=True)
    assert (shown.returncode, shown.stderr) == (0, "")


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


# --- objects --------------------------------------------------------------------------------------


def search_of(of: Any, module: Any = _runtime) -> Any:
    more = {"keep_states": False, "max_states": -1, "forbidden": None}
    counts = {"beam": 2, "n_best": 1, "min_length": 1, "max_length": 5}
    off = dict.fromkeys(
        ("block_ngrams", "recombine", "keep_finished", "forbid_unknown", "stop_early"), 0
    )
    return module.Search(of, SOURCES, **counts, **off, **more)


def test_what_only_says_that_it_is_a_model_is_none(of: Any) -> None:
    for other in (Mock(spec=_runtime.Model), Mock(spec=of), object(), _runtime, None, type(of)):
        with pytest.raises(TypeError, match="a Model is needed"):
            search_of([other])
        with pytest.raises(TypeError, match="a Model is needed"):
            _runtime.Follow(other, SOURCES, [], False)


def test_a_module_that_is_imported_again_takes_models_of_both(of: Any) -> None:
    spec = _runtime.__spec__
    again = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(again)
    assert again.Model is not _runtime.Model
    kind = _runtime.kinds()[-1]
    sizes = SIZES | {"vocabulary": 40, "hidden": 16, "gate": False, "spm": False}
    other = again.Model(extreme_tensors(40, 8, 16), int8=True, kind=kind, **sizes)
    for module in (_runtime, again):
        running = search_of(of, module)
        carry_on(running)
        assert running.hypotheses() == search_ended(of)
    with pytest.raises(ValueError, match="different vocabularies"):
        search_of([of, other])


def search_ended(of: Any) -> Any:
    running = search_of(of)
    carry_on(running)
    return running.hypotheses()


@pytest.mark.parametrize("name", ["Model", "Search", "Follow", "Verifier"])
def test_objects_are_made_whole_or_not_at_all(name: str) -> None:
    kind = getattr(_runtime, name)
    with pytest.raises(TypeError):
        kind.__new__(kind)
    with pytest.raises(TypeError):
        type("More", (kind,), {})
    with pytest.raises(TypeError):
        kind.__new__ = None


def is_busy(of: Any) -> bool:
    try:
        return of.running is None
    except RuntimeError:
        return True


def test_one_thread_at_a_time_uses_a_search_or_follows(of: Any) -> None:
    """A second one gets a sentence, whatever it asks for."""
    texts = [list(range(5, 2005))]
    following = _runtime.Follow(of, texts, [(0, [8, 9])] * 2000, False)
    running = begun(of, texts, SearchConfig(beam=2000, n_best=1, min_length=9))
    running.step()
    of_following = (
        following.step,
        lambda: following.headline(0),
        lambda: following.values(0),
    )
    of_search = (
        running.step,
        lambda: running.num_seen,
        lambda: running.give_up([0]),
        running.hypotheses,
        lambda: running.values(0),
        lambda: running.states(0, [], 0),
    )
    with ThreadPoolExecutor(1) as pool:
        for busy, uses in ((following, of_following), (running, of_search)):
            job = pool.submit(busy.step)
            while not is_busy(busy):
                assert not job.done()
            for use in uses:
                with pytest.raises(RuntimeError, match="another thread uses this"):
                    use()
            job.result()


def test_models_and_verifiers_are_made_while_other_threads_run() -> None:
    """Weights are packed without the global lock."""
    tensors, kind = extreme_tensors(4000, 8, 512), _runtime.kinds()[-1]
    shape, judge = golden.verifier_parts()
    for make in (
        lambda: model(kind, int8=True, tensors=tensors, **SIZES, gate=False, spm=False),
        lambda: _runtime.Verifier(judge, dict(shape), True, kind),
    ):
        turns = 0
        with ThreadPoolExecutor(1) as pool:
            for _ in range(10):  # a busy machine may give this thread no time at all
                job = pool.submit(make)
                while not job.done():
                    turns += 1
                    time.sleep(0)  # lets the other go on, if it wants the lock
        assert turns > 20
