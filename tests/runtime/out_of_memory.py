"""Steps that fail for lack of memory, and what can be asked then.

Run by `test_native_misuse.py` as a program of its own: a process that has done much has free memory
of its own, so that a limit has no effect.
"""

import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ledeline.core.shipped import SHIPPED
from ledeline.inference.engine_bundle import read_engine_bundle
from ledeline.runtime.extension import extension

SOURCES = [[7, 8, 9], list(range(5, 65))]
SEARCH = {"beam": 3000, "n_best": 1, "min_length": 100, "max_length": -1, "block_ngrams": 0}
SEARCH |= {"recombine": 0, "keep_finished": False, "forbid_unknown": False, "stop_early": False}
SEARCH |= {"keep_states": True, "max_states": -1, "forbidden": None}

OF_A_SEARCH: dict[str, Callable[[Any], Any]] = {
    "running": lambda one: one.running,
    "num_seen": lambda one: one.num_seen,
    "step": lambda one: one.step(),
    "give_up": lambda one: one.give_up([0]),
    "hypotheses": lambda one: one.hypotheses(),
    "values": lambda one: one.values(0),
    "states": lambda one: one.states(0, [[0]], 1),
}
OF_HEADLINES: dict[str, Callable[[Any], Any]] = {
    "running": lambda one: one.running,
    "step": lambda one: one.step(),
    "headline": lambda one: one.headline(0),
    "values": lambda one: one.values(0),
}


def has_failed(running: Any) -> bool:
    """Carry on with no more memory than there is, until a step fails."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used, limits[1]))
    try:
        while running.running:
            running.step()
    except MemoryError:
        return True
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    return False


def is_refused(use: Callable[[Any], Any], running: Any) -> bool:
    try:
        use(running)
    except RuntimeError as error:
        return "failed for lack of memory" in str(error)
    return False


def main() -> None:
    bundle = read_engine_bundle(SHIPPED)
    assert bundle is not None
    model = bundle.model.engine("int8").native
    search = extension().Search(model, SOURCES, **SEARCH)
    search.step()
    headlines = extension().Follow(model, SOURCES, [(1, [8, 9])] * 20_000, False)
    for running, uses in ((search, OF_A_SEARCH), (headlines, OF_HEADLINES)):
        if not has_failed(running):
            sys.exit(f"no step of {running} failed")
        for name, use in uses.items():
            for _ in range(2):
                if not is_refused(use, running):
                    sys.exit(f"{name} of {running} was not refused")


if __name__ == "__main__":
    main()
