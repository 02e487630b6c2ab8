"""Split pairs into training, validation and test."""

import datetime
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ledeline.config import SplitConfig
from ledeline.core.errors import ConfigError
from ledeline.core.shuffle import permutation
from ledeline.corpus.filters import FilterReport
from ledeline.corpus.pair_store import IntArray, StoredPairs

TRAIN, VALID, TEST = "train", "valid", "test"
SPLITS = (TRAIN, VALID, TEST)


def split_by_date(config: SplitConfig, date: datetime.date | None) -> str:
    """The split of a pair by its date; a pair without a date is for training."""
    if date and config.test_from and date >= config.test_from:
        return TEST
    if date and config.valid_from and date >= config.valid_from:
        return VALID
    return TRAIN


class DateRange:
    """The first and the last date of the pairs; as a string, advice about a date outside it."""

    def __init__(self) -> None:
        self._first, self._last = datetime.date.max, datetime.date.min

    def add(self, date: datetime.date | None) -> None:
        """Add the date of a pair."""
        if date:
            self._first, self._last = min(self._first, date), max(self._last, date)

    def __str__(self) -> str:
        if self._first > self._last:
            return "no pair has a date"
        return f"choose another date: the pairs are from {self._first} to {self._last}"


def small_training_warning(config: SplitConfig, read: Mapping[str, int], days: DateRange) -> str:
    """A warning if a split leaves fewer than half of the pairs for training, else nothing."""
    if config.by == "files" or (config.by == "random" and config.pool == VALID):
        return ""  # nothing is taken from training
    keys, valid, test = ("num_valid", "num_test"), config.num_valid, config.num_test
    advice = "draw fewer"
    if config.by == "date":
        keys, valid, test = ("valid_from", "test_from"), read.get(VALID, 0), read.get(TEST, 0)
        advice = str(days)
    train = read.get(TRAIN, 0)
    if train >= valid + test:
        return ""
    given = [f"split.{key} = {getattr(config, key)}" for key in keys if getattr(config, key)]
    leave = "leave" if len(given) > 1 else "leaves"
    return (
        f"{' and '.join(given)} {leave} only {train:,} of {train + valid + test:,} pairs for "
        f"training ({valid:,} for validation, {test:,} for the test); {advice}"
    )


def sample_held_out(config: SplitConfig, pairs: StoredPairs) -> tuple[IntArray, IntArray, IntArray]:
    """Sample validation and test pairs at random: rows of validation, of test, and the rest.

    No pair is sampled twice, even if the pool has it twice. Each part keeps the order of the pool.
    """
    order = permutation(config.seed, 0, len(pairs))
    _, firsts = np.unique(pairs.hashes[order], return_index=True)
    different = order[np.sort(firsts)]
    wanted = config.num_valid + config.num_test
    if wanted > len(different):
        raise ConfigError(
            f"split.num_valid + split.num_test = {wanted}, but the filters leave only "
            f"{len(different)} different pairs of corpus.{config.pool}; draw fewer, or relax the "
            "filters"
        )
    valid = np.sort(different[: config.num_valid])
    test = np.sort(different[config.num_valid : wanted])
    rest = np.setdiff1d(np.arange(len(pairs)), different[:wanted], assume_unique=True)
    return valid, test, rest


class SplitPart(NamedTuple):
    """Some of the stored pairs, by their rows."""

    pairs: StoredPairs
    rows: IntArray


def split_pools(
    config: SplitConfig, pools: Mapping[str, StoredPairs], days: DateRange, report: FilterReport
) -> dict[str, SplitPart]:
    """The parts of the pools for training, validation and test; empty ones are left out."""
    parts = {pool: SplitPart(pairs, np.arange(len(pairs))) for pool, pairs in pools.items()}
    if config.by == "date":
        for key, first, split in (
            ("valid_from", config.valid_from, VALID),
            ("test_from", config.test_from, TEST),
        ):
            if first and not len(parts[split].rows):
                raise ConfigError(
                    f"split.{key} = {first}: the split {split} would be empty; {days}"
                )
    if config.by == "random":
        pool = config.pool
        valid, test, rest = sample_held_out(config, pools[pool])
        if pool == TRAIN:
            parts[TRAIN] = SplitPart(pools[pool], rest)
        else:
            report.drop(pool, "not drawn", [], len(rest))
        for split, rows in ((VALID, valid), (TEST, test)):
            if len(rows) or split == pool:
                parts[split] = SplitPart(pools[pool], rows)
                report.move(pool, split, len(rows))
    return {split: part for split, part in parts.items() if len(part.rows) or split == TRAIN}


def held_out_duplicates(part: SplitPart, held_out: list[SplitPart]) -> IntArray:
    """The rows of a part whose pair, lede and headline, also occurs in a held-out part."""
    theirs = [other.pairs.hashes[other.rows] for other in held_out]
    ours = part.pairs.hashes[part.rows]
    suspects = part.rows[np.isin(ours, np.concatenate([ours[:0], *theirs]))]
    if not len(suspects):
        return suspects
    exact = {_content(other.pairs, row) for other in held_out for row in other.rows.tolist()}
    same = [_content(part.pairs, row) in exact for row in suspects.tolist()]
    found: IntArray = suspects[np.array(same)]
    return found


def _content(pairs: StoredPairs, row: int) -> tuple[bytes, ...]:
    return tuple(side.take(np.array([row]))[0].tobytes() for side in (pairs.ledes, pairs.headlines))
