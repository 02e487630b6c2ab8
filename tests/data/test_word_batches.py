"""Batches of single words: each word of each headline once per epoch, in an order that is fixed."""

import json
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ledeline.data.batches import Batches, BatchPosition
from ledeline.data.dataset import Batch, Dataset, DatasetWriter, EncodedChunk, Split
from ledeline.model.pairs import Pairs
from ledeline.text.profiles import NATURAL
from ledeline.text.subwords import EOS, Subwords
from ledeline.text.tokenizer import Tokenizer

NUM_PAIRS = 200


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Split:
    """Every source is another one, so that a pair is known by its source; a headline is empty."""
    folder, random = tmp_path_factory.mktemp("dataset"), np.random.default_rng(1)
    sources = [
        [4 + number, *random.integers(4, 300, random.integers(2, 11))]
        for number in range(NUM_PAIRS)
    ]
    lengths = [0, *random.integers(1, 9, NUM_PAIRS - 1)]
    headlines = [random.integers(4, 300, length).tolist() for length in lengths]
    sides = [
        part
        for side in (sources, headlines)
        for part in (
            np.concatenate([np.array(one, np.int64) for one in side]),
            np.array([len(one) for one in side]),
        )
    ]
    writer = DatasetWriter(folder, Tokenizer(NATURAL, Subwords.learn({"stock": 3}, 1)))
    writer.write_split("train", iter([EncodedChunk(*sides)]))
    writer.write_split("empty", iter(()))
    writer.finish()
    return Dataset(folder)["train"]


def words_of(batch: Batch) -> list[tuple[int, int, int]]:
    """The first word of the source, which is the pair's own; the position; the word."""
    assert batch.positions is not None
    targets = batch.targets(batch.headlines.shape[1] + 1)
    rows = np.arange(len(targets))
    learned = batch.sources[:, 0], batch.positions, targets[rows, batch.positions]
    return list(zip(*(one.tolist() for one in learned), strict=True))


def all_words(split: Split) -> Counter[tuple[int, int, int]]:
    return Counter(
        (split[row][0][0], position, word)
        for row in range(len(split))
        for position, word in enumerate([*split[row][1], EOS])
    )


@pytest.mark.parametrize("equal_lengths", [True, False])
@pytest.mark.parametrize("size", [1, 7, 64, 5000])
def test_each_word_occurs_once_in_an_epoch(split: Split, size: int, equal_lengths: bool) -> None:
    batches = Batches(split, size=size, seed=1, unit="words", equal_lengths=equal_lengths)
    found: Counter[tuple[int, int, int]] = Counter()
    for batch in (whole := list(batches.epoch(3))):
        assert 1 <= len(batch.sources) == batch.num_pairs == batch.num_tokens <= size
        found.update(words_of(batch))
    assert found == all_words(split)
    assert len(whole) == len(batches)
    lengths = [len(set(batch.source_lengths.tolist())) for batch in whole]
    assert (max(lengths) == 1) == (equal_lengths or size == 1)


def test_words_of_a_pair_are_not_learned_together(split: Split) -> None:
    """Batches of words of one length are full, but for the last of each length."""
    batches = list(Batches(split, size=16, seed=1, unit="words").epoch(0))
    sizes: dict[int, list[int]] = {}
    for batch in batches:
        sizes.setdefault(int(batch.source_lengths[0]), []).append(len(batch.sources))
    assert all(sorted(one)[1:] == [16] * (len(one) - 1) for one in sizes.values())
    pairs = [len({pair for pair, _, _ in words_of(batch)}) for batch in batches]
    assert np.mean(pairs) > 8  # of 16 words, from some 20 pairs of a length


def test_a_batch_holds_the_pairs_of_its_words(split: Split) -> None:
    there = {split[row][0][0]: split[row] for row in range(len(split))}
    for batch in Batches(split, size=32, seed=1, unit="words").epoch(0):
        for row, (pair, _, _) in enumerate(words_of(batch)):
            source, headline = there[pair]
            assert batch.sources[row, : batch.source_lengths[row]].tolist() == source
            assert batch.headlines[row, : batch.headline_lengths[row]].tolist() == headline


def test_seed_and_epoch_fix_the_order(split: Split) -> None:
    def order(seed: int, epoch: int) -> list[Any]:
        batches = Batches(split, size=32, seed=seed, unit="words")
        return [words_of(batch) for batch in batches.epoch(epoch)]

    assert order(1, 0) == order(1, 0)
    assert order(1, 0) != order(1, 1)
    assert order(1, 0) != order(2, 0)


def test_resumed_at_any_batch_the_order_is_the_same(split: Split) -> None:
    def batches() -> Batches:
        return Batches(split, size=32, seed=1, unit="words")

    number = 2 * len(batches()) + 3
    whole = [(words_of(one), behind) for one, behind in islice(batches().iterate_from(), number)]
    for stop in (1, 17, len(batches()), number - 2):
        position = BatchPosition(*json.loads(json.dumps(whole[stop - 1][1])))
        again = islice(batches().iterate_from(position), number - stop)
        assert [(words_of(one), behind) for one, behind in again] == whole[stop:]


@pytest.mark.parametrize("world_size", [2, 3, 50])
def test_ranks_share_a_batch_without_overlap_or_loss(split: Split, world_size: int) -> None:
    ranks = [
        Batches(split, size=32, seed=1, unit="words", rank=rank, world_size=world_size).epoch(0)
        for rank in range(world_size)
    ]
    alone = Batches(split, size=32, seed=1, unit="words").epoch(0)
    for whole, *shares in zip(alone, *ranks, strict=True):
        for rank, share in enumerate(shares):
            assert words_of(share) == words_of(whole)[rank::world_size]
            assert share.num_pairs == len(whole.sources)
            assert share.headlines.shape[1] == whole.headlines.shape[1]


def test_a_split_without_pairs_has_no_words(split: Split, tmp_path: Path) -> None:
    empty = split.first(0)
    assert len(Batches(empty, size=4, seed=1, unit="words")) == 0
    assert len(Batches(split.first(1), size=4, seed=1, unit="words")) == 1  # <eos> alone


def test_masks_are_true_at_the_word_alone(split: Split) -> None:
    batch = next(Batches(split, size=16, seed=1, unit="words").epoch(0))
    assert batch.positions is not None
    width = batch.headlines.shape[1] + 1
    pairs = Pairs.of(batch, batch.headline_lengths + 1, width)
    assert pairs.positions is not None
    assert pairs.positions.tolist() == batch.positions.tolist()
    for mask in (pairs.target_mask, pairs.headline_mask):
        assert mask is not None
        assert mask.sum(1).tolist() == [1] * len(batch.sources)
        assert mask.int().argmax(1).tolist() == batch.positions.tolist()


def test_batches_of_pairs_know_nothing_of_words(split: Split) -> None:
    for batch in Batches(split, size=16, seed=1).epoch(0):
        assert batch.positions is None
        assert batch.num_tokens == int(batch.headline_lengths.sum()) + len(batch.sources)
        pairs = Pairs.of(batch, batch.headline_lengths + 1, batch.headlines.shape[1] + 1)
        assert pairs.positions is None
