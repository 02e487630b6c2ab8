"""Threads that each compute on one core."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Lock
from typing import Final

import torch

# Only one thread at a time may change torch's number of threads, because a thread keeps the number
# at its first computation.
_THREADS_LOCK: Final = Lock()


def num_threads() -> int:
    """Torch's number of threads; a thread that has not computed yet gets it by asking."""
    with _THREADS_LOCK:
        return torch.get_num_threads()


def single_threaded(threads: int) -> ThreadPoolExecutor:
    """A pool whose threads each compute on one core; other threads are not affected.

    It must be shut down after use: idle, its threads would slow down OpenMP's.
    """
    before, all_started = torch.get_num_threads(), Barrier(threads + 1)

    def begin() -> None:
        torch.set_num_threads(1)  # of this thread, and of all that start later
        all_started.wait()

    pool = ThreadPoolExecutor(threads, "headliner", initializer=begin)
    with _THREADS_LOCK:
        for _ in range(threads):
            pool.submit(int)
        all_started.wait()
        torch.set_num_threads(before)
    return pool
