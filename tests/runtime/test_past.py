"""What a Transformer's decoder remembers in a search: only what hypotheses that are alive have written."""

# mypy: disable-error-code="no-untyped-call"

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ledeline.config import SearchConfig
from ledeline.core.steps import run_steps
from ledeline.inference.engine_weights import engine_of
from ledeline.model.systems.transformer import TransformerConfig
from ledeline.runtime.engine import Engine
from ledeline.search.engine_search import EngineSearch
from ledeline.text.subwords import EOS
from pages import ROOT
from systems import random_system

pytest.importorskip("ledeline.runtime._runtime")
sys.path.append(str(ROOT / "bench"))
import native_driver

VOCABULARY, STATM = 80, Path("/proc/self/statm")
SANITIZE = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror")


def engine(**sizes: int) -> Engine:
    own = TransformerConfig(encoder_layers=1, heads=2, dropout=0.0, **sizes)  # type: ignore[arg-type]
    of = random_system(system=own, vocabulary=VOCABULARY, std=0.2)
    of.state_dict()["output.bias"][EOS] += 2  # headlines end as soon as they may
    return engine_of(of, "float32")


def source(length: int) -> list[int]:
    drawn: list[int] = np.random.default_rng(length).integers(4, VOCABULARY, length).tolist()
    return drawn


@pytest.fixture(scope="module")
def beams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if reason := native_driver.missing("gcc"):
        pytest.skip(reason)
    more = () if native_driver.cannot_link("gcc", *SANITIZE) else SANITIZE
    folder = tmp_path_factory.mktemp("past")
    past = [native_driver.NATIVE / "past.c"]
    flags = [*WARNINGS, *more]
    return native_driver.build("gcc", folder / "beams", flags, main=["beams.c"], engine=past)


@pytest.mark.parametrize(
    ("beam", "steps"), [(1, 200), (2, 500), (5, 300), (20, 900), (200, 60)], ids=str
)
def test_slots_that_no_hypothesis_reaches_are_used_again(
    beams: Path, beam: int, steps: int
) -> None:
    for seed in range(5):
        asked = [str(beams), str(seed), str(beam), str(steps)]
        done = subprocess.run(asked, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        made, most = map(int, done.stdout.split())
        assert made == most  # never more than were reached at a time
        assert beam == 1 or made < beam * steps * 0.6


@pytest.mark.skipif(
    not STATM.exists() or "asan" in os.environ.get("LD_PRELOAD", ""),
    reason="there is no /proc here, or a sanitizer keeps what is released",
)
def test_a_long_search_needs_little_memory() -> None:
    """Slots of all words that were tried would be 90 MB."""
    own = engine(embedding_size=256, hidden_size=64, decoder_layers=6)
    config = SearchConfig(beam=20, n_best=20, min_length=399, max_length=400)
    page = os.sysconf("SC_PAGESIZE")
    running = EngineSearch([own], [source(200)], config)
    before = int(STATM.read_text().split()[1]) * page
    while running.running:
        running.step()
    assert int(STATM.read_text().split()[1]) * page - before < 45e6
    assert len(running.hypotheses[0][0].ids) >= 399


@pytest.mark.parametrize("members", [1, 2])
def test_a_long_search_sees_what_following_sees(members: int) -> None:
    """Following uses no slot twice. A source that is given up has no past any more."""
    own = engine(embedding_size=24, hidden_size=16, decoder_layers=3)
    sources = [source(length) for length in (40, 60, 3, 50)]
    config = SearchConfig(beam=12, n_best=12, min_length=55, max_length=100)
    keep: dict[str, Any] = {"keep_states": 200} if members == 1 else {}
    running, steps = EngineSearch([own] * members, sources, config, **keep), 0
    while running.running:
        running.step()
        steps += 1
        if steps == 20:
            running.give_up([1])
    headlines = [
        (row, one) for row in (0, 2, 3) for one in running.hypotheses[row] if len(one.ids) > 50
    ]
    assert len(headlines) > 20
    seen = run_steps(own.follow(sources, [(row, one.ids) for row, one in headlines]))
    for number, (row, one) in enumerate(headlines):
        followed, length = seen.headline(number), len(one.path.slots) if one.path else 0
        assert sum(followed.logs[:length]) == pytest.approx(-one.cost, rel=1e-5)
        if members == 1:
            kept = running.seen(row, [one])
            assert kept.states == bytes(followed.states)[: length * own.size * 4]
