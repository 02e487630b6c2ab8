"""Training, validation and test: which pair belongs where."""

import datetime
from typing import NamedTuple

import numpy as np

from ledeline.config import SplitConfig
from ledeline.corpus.store import Numbers, StoredPairs
from ledeline.errors import ConfigError
from ledeline.shuffle import shuffled

TRAIN, VALID, TEST = "train", "valid", "test"
SPLITS = (TRAIN, VALID, TEST)


def split_by_date(config: SplitConfig, date: datetime.date | None) -> str:
    """The split of a pair by its date; one without a date trains."""
    if date and config.test_from and date >= config.test_from:
        return TEST
    if date and config.valid_from and date >= config.valid_from:
        return VALID
    return TRAIN


def draw(config: SplitConfig, pairs: StoredPairs) -> tuple[Numbers, Numbers, Numbers]:
    """Draw validation and test pairs at random: rows of validation, of test, and the rest.

    No pair is drawn twice, be it in the pool twice. Each part keeps the order of the pool.
    """
    order = shuffled(config.seed, 0, len(pairs))
    _, firsts = np.unique(pairs.hashes[order], return_index=True)
    different = order[np.sort(firsts)]
    wanted = config.num_valid + config.num_test
    if wanted > len(different):
        raise ConfigError(
            f"split.num_valid + split.num_test = {wanted}, and the pool ({config.pool}) has only "
            f"{len(different)} different pairs"
        )
    valid = np.sort(different[: config.num_valid])
    test = np.sort(different[config.num_valid : wanted])
    rest = np.setdiff1d(np.arange(len(pairs)), different[:wanted], assume_unique=True)
    return valid, test, rest


class Part(NamedTuple):
    """Some of the pairs of a store."""

    pairs: StoredPairs
    rows: Numbers


def repeated(part: Part, held_out: list[Part]) -> Numbers:
    """Those rows of a part whose pair, both sides alike, stands in a held-out part too."""
    theirs = [other.pairs.hashes[other.rows] for other in held_out]
    ours = part.pairs.hashes[part.rows]
    suspects = part.rows[np.isin(ours, np.concatenate([ours[:0], *theirs]))]
    if not len(suspects):
        return suspects
    exact = {_content(other.pairs, row) for other in held_out for row in other.rows.tolist()}
    same = [_content(part.pairs, row) in exact for row in suspects.tolist()]
    found: Numbers = suspects[np.array(same)]
    return found


def _content(pairs: StoredPairs, row: int) -> tuple[bytes, ...]:
    return tuple(side.take(np.array([row]))[0].tobytes() for side in (pairs.ledes, pairs.headlines))
