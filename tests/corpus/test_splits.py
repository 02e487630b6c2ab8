import datetime
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ledeline.config import SplitConfig
from ledeline.core.errors import ConfigError
from ledeline.corpus.pair_store import PairStore, StoredPairs, WordIndex
from ledeline.corpus.splits import (
    DateRange,
    SplitPart,
    held_out_duplicates,
    sample_held_out,
    small_training_warning,
    split_by_date,
)


def stored(folder: Path, pairs: list[tuple[str, str]], name: str = "x") -> StoredPairs:
    store = PairStore(folder, name, NUMBERS)
    for lede, headline in pairs:
        store.append(lede.split(), headline.split())
    return store.close()


NUMBERS = WordIndex()


def test_store_gives_back_what_it_took(tmp_path: Path) -> None:
    numbers = WordIndex()
    store = PairStore(tmp_path, "x", numbers)
    pairs = [(["a", "b", "a"], ["c"]), ([], []), (["d"], ["a", "d"])]
    for lede, headline in pairs:
        store.append(lede, headline)
    got = store.close()
    words = list(numbers)
    assert len(got) == 3
    for row, pair in enumerate(pairs):
        for runs, side in zip((got.ledes, got.headlines), pair, strict=True):
            values, lengths = runs.take(np.array([row]))
            assert [words[number] for number in values] == side
            assert lengths.tolist() == [len(side)]
    values, lengths = got.ledes.take(np.array([2, 0, 1, 0]))
    assert [words[number] for number in values] == ["d", "a", "b", "a", "a", "b", "a"]
    assert lengths.tolist() == [1, 3, 0, 3]


def test_store_of_nothing(tmp_path: Path) -> None:
    assert len(PairStore(tmp_path, "x", WordIndex()).close()) == 0


def test_dates() -> None:
    config = SplitConfig(
        by="date", valid_from=datetime.date(2024, 1, 1), test_from=datetime.date(2024, 2, 1)
    )
    assert split_by_date(config, datetime.date(2023, 12, 31)) == "train"
    assert split_by_date(config, datetime.date(2024, 1, 1)) == "valid"
    assert split_by_date(config, datetime.date(2024, 1, 31)) == "valid"
    assert split_by_date(config, datetime.date(2024, 2, 1)) == "test"
    assert split_by_date(config, None) == "train"
    only_test = SplitConfig(by="date", test_from=datetime.date(2024, 2, 1))
    assert split_by_date(only_test, datetime.date(2024, 1, 31)) == "train"


def test_a_draw_is_exact_disjoint_and_fixed_by_its_seed(tmp_path: Path) -> None:
    pairs = stored(tmp_path, [(f"lede {i}", f"headline {i}") for i in range(100)])

    def drawn(seed: int) -> list[list[int]]:
        config = SplitConfig(by="random", num_valid=10, num_test=20, seed=seed)
        return [rows.tolist() for rows in sample_held_out(config, pairs)]

    valid, test, rest = drawn(1)
    assert [len(valid), len(test), len(rest)] == [10, 20, 70]
    assert sorted(valid + test + rest) == list(range(100))
    assert drawn(1) == [valid, test, rest]
    assert drawn(2)[0] != valid
    assert valid != list(range(10))


def test_a_pair_that_is_there_twice_is_drawn_once(tmp_path: Path) -> None:
    pairs = stored(tmp_path, [("same lede", "same"), ("other", "x")] * 50)
    config = SplitConfig(by="random", num_valid=1, num_test=1)
    valid, test, rest = sample_held_out(config, pairs)
    assert (valid[0] - test[0]) % 2
    assert len(rest) == 98
    with pytest.raises(ConfigError, match=r"= 3, but .* only 2 different pairs of corpus\.train"):
        sample_held_out(SplitConfig(by="random", num_valid=3), pairs)


def test_repeated_pairs_need_both_sides_alike(tmp_path: Path) -> None:
    train = stored(
        tmp_path, [("a b", "a"), ("a b", "b"), ("c d", "c"), ("c", "d c"), ("e", "f")], "t"
    )
    valid = stored(tmp_path, [("a b", "a"), ("c d", "x")], "v")
    test = stored(tmp_path, [("c d", "c"), ("a", "b a")], "s")
    held_out = [SplitPart(pairs, np.arange(2)) for pairs in (valid, test)]
    assert held_out_duplicates(SplitPart(train, np.arange(5)), held_out).tolist() == [0, 2]
    assert held_out_duplicates(SplitPart(train, np.array([1, 2])), held_out).tolist() == [2]
    assert held_out_duplicates(SplitPart(train, np.arange(5)), []).tolist() == []
    assert (
        held_out_duplicates(
            SplitPart(train, np.arange(5)), [SplitPart(test, np.array([1]))]
        ).tolist()
        == []
    )


def test_a_hash_alone_convinces_nobody(tmp_path: Path) -> None:
    train, valid = stored(tmp_path, [("a", "b")], "t"), stored(tmp_path, [("a", "c")], "v")
    forged = replace(valid, hashes=train.hashes)
    assert (
        held_out_duplicates(
            SplitPart(train, np.arange(1)), [SplitPart(forged, np.arange(1))]
        ).tolist()
        == []
    )


MAY, JUNE = datetime.date(1994, 5, 12), datetime.date(1994, 6, 12)
DAYS = DateRange()
for day in (MAY, None, MAY - datetime.timedelta(days=9)):
    DAYS.add(day)


@pytest.mark.parametrize(
    ("config", "read", "sentence"),
    [
        (
            SplitConfig(by="date", valid_from=MAY, test_from=JUNE),
            {"train": 200, "valid": 50, "test": 2750},
            "split.valid_from = 1994-05-12 and split.test_from = 1994-06-12 leave only 200 of 3,000 "
            "pairs for training (50 for validation, 2,750 for the test); choose another date: the pairs are from "
            "1994-05-03 to 1994-05-12",
        ),
        (
            SplitConfig(by="random", num_test=51),
            {"train": 50, "test": 51},
            "split.num_test = 51 leaves only 50 of 101 pairs for training (0 for validation, 51 for the test); "
            "draw fewer",
        ),
        (SplitConfig(by="random", num_test=50), {"train": 50, "test": 50}, ""),
        (SplitConfig(by="random", num_test=5), {"train": 50, "valid": 99, "test": 5}, ""),
        (SplitConfig(by="random", num_test=9, pool="valid"), {"train": 5, "test": 9}, ""),
        (SplitConfig(by="files"), {"train": 1, "test": 1000}, ""),
        (SplitConfig(by="date", test_from=MAY), {"train": 60, "test": 60}, ""),
    ],
)
def test_a_split_that_leaves_little_for_training_is_said(
    config: SplitConfig, read: dict[str, int], sentence: str
) -> None:
    assert small_training_warning(config, read, DAYS) == sentence


def test_days_of_pairs_without_dates() -> None:
    assert str(DateRange()) == "no pair has a date"
