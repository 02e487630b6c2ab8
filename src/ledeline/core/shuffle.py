"""Seeded shuffling that is the same on every machine and with every version of NumPy."""

import numpy as np
import numpy.typing as npt


def random_keys(seed: int, stream: int, count: int) -> npt.NDArray[np.uint64]:
    """One random 64-bit key per item, mixed as in SplitMix64; sorting by the keys shuffles."""
    keys = np.arange(count, dtype=np.uint64)
    for salt in (seed, stream):
        keys = keys + np.uint64((salt + 1) * 0x9E3779B97F4A7C15 % 2**64)
        keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        keys = keys ^ (keys >> np.uint64(31))
    return keys


def permutation(seed: int, stream: int, count: int) -> npt.NDArray[np.int64]:
    """The numbers below `count` in random order, fixed by seed and stream."""
    return np.argsort(random_keys(seed, stream, count), kind="stable")
