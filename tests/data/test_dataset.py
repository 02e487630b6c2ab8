import json
import shutil
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest

from ledeline.core.errors import DatasetError
from ledeline.core.shuffle import permutation, random_keys
from ledeline.data import dataset as dataset_module
from ledeline.data.batches import Batches, BatchPosition
from ledeline.data.dataset import Dataset, DatasetWriter, EncodedChunk
from ledeline.text.profiles import NATURAL, PAPER
from ledeline.text.subwords import EOS, PAD, Subwords
from ledeline.text.tokenizer import Tokenizer

Pairs = list[tuple[list[int], list[int]]]


def random_pairs(number: int, seed: int = 0, vocabulary: int = 300) -> Pairs:
    random = np.random.default_rng(seed)
    pairs = []
    for _ in range(number):
        source = random.integers(4, vocabulary, random.integers(3, 12)).tolist()
        headline = random.integers(4, vocabulary, random.integers(1, len(source))).tolist()
        pairs.append((source, headline))
    return pairs


def chunked(pairs: Pairs, size: int) -> Iterator[EncodedChunk]:
    for start in range(0, len(pairs), size):
        sides = zip(*pairs[start : start + size], strict=True)
        arrays = []
        for side in sides:
            arrays += [np.concatenate(side), np.array([len(one) for one in side])]
        yield EncodedChunk(*arrays)


@pytest.fixture(scope="module")
def subwords() -> Subwords:
    return Subwords.learn({"stocks": 5, "stock": 3, "shares": 4}, 10)


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    return random_pairs(1000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, pairs: Pairs, subwords: Subwords) -> Path:
    folder = tmp_path_factory.mktemp("dataset")
    writer = DatasetWriter(folder, Tokenizer(NATURAL, subwords))
    writer.write_split("train", chunked(pairs, 64))
    writer.write_split("valid", chunked(pairs[:7], 3))
    writer.write_split("empty", iter(()))
    writer.finish()
    return folder


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


class TestFormat:
    def test_what_was_written_is_read(self, folder: Path, pairs: Pairs, subwords: Subwords) -> None:
        dataset = Dataset(folder)
        dataset.verify()
        assert dataset.tokenizer == Tokenizer(NATURAL, subwords)
        assert [dataset["train"][i] for i in range(1000)] == pairs
        assert len(dataset["valid"]) == 7
        assert len(dataset["empty"]) == 0

    def test_ids_take_two_bytes_while_they_can(self, folder: Path, pairs: Pairs) -> None:
        size = (folder / "train.source.ids.bin").stat().st_size
        assert size == 2 * sum(len(source) for source, _ in pairs)

    def test_the_documented_format_is_readable_by_hand(self, folder: Path, pairs: Pairs) -> None:
        ids = np.fromfile(folder / "train.headline.ids.bin", "<u2")
        starts = np.fromfile(folder / "train.headline.starts.bin", "<i8")
        assert ids[starts[41] : starts[42]].tolist() == pairs[41][1]

    def test_large_vocabularies_take_four_bytes(self, tmp_path: Path) -> None:
        alphabet = [chr(code) for code in range(0x4E00, 0x4E00 + 20_000)]
        alphabet += [chr(code) for code in range(0xAC00, 0xAC00 + 11_000)]
        alphabet += [chr(code) for code in range(0x20000, 0x20000 + 3000)]
        writer = DatasetWriter(tmp_path, Tokenizer(PAPER, Subwords([], alphabet)))
        pairs = [([65_535, 65_536, 68_003], [5])]
        writer.write_split("train", chunked(pairs, 1))
        writer.finish()
        assert Dataset(tmp_path)["train"][0] == pairs[0]

    def test_opening_reads_no_pairs(self, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (copy / "train.source.ids.bin").chmod(0o600)
        checked: list[Path] = []
        original = dataset_module._ChecksummedFile._check

        def spy(self: dataset_module._ChecksummedFile, blocks: dataset_module.Ids) -> None:
            checked.append(self._path)
            original(self, blocks)

        monkeypatch.setattr(dataset_module._ChecksummedFile, "_check", spy)
        Dataset(copy)
        assert {path.name for path in checked} == {"codes.txt", "subwords.json"}


class TestRefusal:
    @pytest.mark.parametrize(
        "name", ["train.source.ids.bin", "train.headline.starts.bin", "codes.txt", "subwords.json"]
    )
    def test_a_truncated_file(self, copy: Path, name: str) -> None:
        data = (copy / name).read_bytes()
        (copy / name).write_bytes(data[:-1])
        with pytest.raises(DatasetError, match=rf"{name} has \d+ bytes instead of \d+; prepare"):
            Dataset(copy)

    @pytest.mark.parametrize(
        "name", ["train.source.ids.bin", "train.headline.starts.bin", "valid.headline.ids.bin"]
    )
    def test_an_edited_file_is_never_used(self, copy: Path, name: str) -> None:
        data = bytearray((copy / name).read_bytes())
        data[len(data) // 2] ^= 1
        (copy / name).write_bytes(data)
        dataset = Dataset(copy)  # costs milliseconds, so it cannot have looked
        with pytest.raises(DatasetError, match=f"{name} was changed after it was written"):
            dataset.verify()
        split = dataset[name.split(".")[0]]
        with pytest.raises(DatasetError, match=f"{name} was changed"):
            list(Batches(split, size=64, seed=1).epoch(0))

    def test_an_edited_block_is_found_when_it_is_touched(
        self, copy: Path, monkeypatch: pytest.MonkeyPatch, pairs: Pairs, subwords: Subwords
    ) -> None:
        monkeypatch.setattr(dataset_module, "BLOCK", 256)
        writer = DatasetWriter(copy, Tokenizer(NATURAL, subwords))
        writer.write_split("train", chunked(pairs, 64))
        writer.finish()
        name = copy / "train.source.ids.bin"
        data = bytearray(name.read_bytes())
        data[-1] ^= 1
        name.write_bytes(data)
        split = Dataset(copy)["train"]
        assert split[0] == pairs[0]
        with pytest.raises(DatasetError, match="was changed"):
            split[999]
        with pytest.raises(DatasetError, match="was changed"):
            split.sources.padded(np.array([0, 999]))

    @pytest.mark.parametrize("name", ["codes.txt", "subwords.json"])
    def test_edited_subwords(self, copy: Path, name: str) -> None:
        data = (copy / name).read_text()
        (copy / name).write_text(data.replace("o", "O", 1))
        with pytest.raises(DatasetError, match=f"{name} was changed"):
            Dataset(copy)

    def test_a_missing_file(self, copy: Path) -> None:
        (copy / "valid.source.ids.bin").unlink()
        with pytest.raises(DatasetError, match=r"valid\.source\.ids\.bin: No such file"):
            Dataset(copy)

    def test_an_edited_manifest(self, copy: Path) -> None:
        manifest = json.loads((copy / "dataset.json").read_text())
        manifest["profile"] = "paper"
        (copy / "dataset.json").write_text(json.dumps(manifest))
        with pytest.raises(DatasetError, match=r"dataset\.json was changed"):
            Dataset(copy)

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            (
                '{"format": "ledeline-dataset", "version": 99}',
                "format version 99, but this ledeline",
            ),
            ('{"format": "other"}', "does not describe a dataset"),
            ("[]", "does not describe a dataset"),
            ("{", "is damaged"),
        ],
    )
    def test_foreign_manifests(self, copy: Path, text: str, sentence: str) -> None:
        (copy / "dataset.json").write_text(text)
        with pytest.raises(DatasetError, match=sentence):
            Dataset(copy)

    def test_no_dataset_at_all(self, tmp_path: Path) -> None:
        with pytest.raises(DatasetError, match="is not a dataset"):
            Dataset(tmp_path / "nothing")

    def test_a_split_that_is_not_there(self, folder: Path) -> None:
        with pytest.raises(DatasetError, match="has no split tset; it has: train, valid"):
            Dataset(folder)["tset"]


class TestBatches:
    @pytest.mark.parametrize("equal_lengths", [True, False])
    def test_every_pair_comes_once_an_epoch(
        self, folder: Path, pairs: Pairs, equal_lengths: bool
    ) -> None:
        batches = Batches(Dataset(folder)["train"], size=32, seed=5, equal_lengths=equal_lengths)
        seen: Pairs = []
        for batch in batches.epoch(3):
            assert len(batch.sources) <= 32
            assert batch.num_pairs == len(batch.sources)
            for i in range(len(batch.sources)):
                source = batch.sources[i][: batch.source_lengths[i]].tolist()
                headline = batch.headlines[i][: batch.headline_lengths[i]].tolist()
                seen.append((source, headline))
                assert (batch.headlines[i][batch.headline_lengths[i] :] == PAD).all()
                assert (batch.sources[i][batch.source_lengths[i] :] == PAD).all()
        assert sorted(seen) == sorted(pairs)
        assert seen != pairs

    def test_equal_length_batches_have_no_padding(self, folder: Path) -> None:
        batches = list(Batches(Dataset(folder)["train"], size=32, seed=5).epoch(0))
        assert all((batch.source_lengths == batch.sources.shape[1]).all() for batch in batches)
        lengths = [batch.sources.shape[1] for batch in batches]
        assert lengths != sorted(lengths)  # the lengths come in random order

    def test_mixed_batches_are_full_and_padded(self, folder: Path) -> None:
        batches = list(
            Batches(Dataset(folder)["train"], size=32, seed=5, equal_lengths=False).epoch(0)
        )
        assert [len(batch.sources) for batch in batches].count(32) == 1000 // 32
        for batch in batches:
            mask = np.arange(batch.sources.shape[1]) < batch.source_lengths[:, None]
            assert (batch.sources[~mask] == PAD).all()
            assert (batch.sources[mask] != PAD).all()

    @pytest.mark.parametrize("equal_lengths", [True, False])
    @pytest.mark.parametrize("epoch", [0, 3])
    def test_the_order_is_that_of_keys_within_lengths(
        self, folder: Path, equal_lengths: bool, epoch: int
    ) -> None:
        """As it is written down, the slow way: it must never change, for runs go on by it."""
        split = Dataset(folder)["train"]
        batches = Batches(split, size=32, seed=5, equal_lengths=equal_lengths)
        lengths = split.sources.lengths() * equal_lengths
        order = np.lexsort((random_keys(5, 2 * epoch, 1000), lengths))
        cuts = [0, *(np.flatnonzero(np.diff(lengths[order])) + 1).tolist(), 1000]
        expected = [
            order[start : min(start + 32, stop)].tolist()
            for begin, stop in pairwise(cuts)
            for start in range(begin, stop, 32)
        ]
        expected = [expected[n] for n in permutation(5, 2 * epoch + 1, len(expected)).tolist()]
        draws = list(islice(batches.planned_from(BatchPosition(epoch, 0)), len(batches)))
        assert [draw.rows.tolist() for draw, _ in draws] == expected
        assert draws[-1][1] == BatchPosition(epoch + 1, 0)
        for draw, _ in draws:
            batch = batches.read(draw)
            assert [split[row] for row in draw.rows.tolist()] == _pairs_of(batch)
            assert batch.sources.shape[1] == draw.plan.source_widths[draw.number]
            assert batch.headlines.shape[1] == draw.plan.headline_widths[draw.number]
            assert batch.headlines.shape[1] == batch.headline_lengths.max()

    @pytest.mark.parametrize("world_size", [1, 3])
    @pytest.mark.parametrize("equal_lengths", [True, False])
    def test_headlines_with_their_end_are_as_wide_as_a_multiple(
        self, folder: Path, equal_lengths: bool, world_size: int
    ) -> None:
        rounded, exact = (
            Batches(
                Dataset(folder)["train"],
                size=5,
                seed=1,
                equal_lengths=equal_lengths,
                multiple=multiple,
                world_size=world_size,
            )
            for multiple in (4, 1)
        )
        widths = set()
        for wide, narrow in zip(rounded.epoch(0), exact.epoch(0), strict=True):
            length, width = wide.sources.shape[1], narrow.headlines.shape[1] + 1
            assert wide.headlines.shape[1] + 1 == min(-(-width // 4) * 4, length)
            assert _pairs_of(wide) == _pairs_of(narrow)
            widths.add(wide.headlines.shape[1] + 1)
        assert {4, 8} < widths

    def test_order_is_fixed_by_seed_and_epoch(self, folder: Path) -> None:
        split = Dataset(folder)["train"]

        def order(seed: int, epoch: int) -> list[list[list[int]]]:
            batches = Batches(split, size=32, seed=seed).epoch(epoch)
            return [batch.sources.tolist() for batch in batches]

        assert order(1, 0) == order(1, 0)
        assert order(1, 0) != order(2, 0)
        assert order(1, 0) != order(1, 1)
        assert sorted(order(1, 0)) != sorted(order(1, 1))  # other pairs share a batch, too

    @pytest.mark.parametrize("stop", [0, 1, 17, 40, 90])
    def test_a_saved_position_goes_on_exactly(self, folder: Path, stop: int) -> None:
        split = Dataset(folder)["train"]
        batches = Batches(split, size=32, seed=1)
        whole = list(islice(batches.iterate_from(), 100))
        position = whole[stop - 1][1] if stop else BatchPosition(0, 0)
        saved = BatchPosition(*json.loads(json.dumps(position)))
        again = list(islice(Batches(split, size=32, seed=1).iterate_from(saved), 100 - stop))
        assert len(batches) < 90  # the positions reach into the second epoch
        for (batch, behind), (same, same_behind) in zip(whole[stop:], again, strict=True):
            assert behind == same_behind
            assert batch.sources.tolist() == same.sources.tolist()
            assert batch.headlines.tolist() == same.headlines.tolist()

    def test_the_end_of_an_epoch_is_the_start_of_the_next(self, folder: Path) -> None:
        batches = Batches(Dataset(folder)["train"], size=100, seed=1)
        positions = [behind for _, behind in islice(batches.iterate_from(), len(batches))]
        assert positions[-1] == BatchPosition(1, 0)
        assert positions[0] == BatchPosition(0, 1)

    @pytest.mark.parametrize("world_size", [2, 3, 50])
    def test_ranks_share_a_batch_without_overlap_or_loss(
        self, folder: Path, world_size: int
    ) -> None:
        split = Dataset(folder)["train"]
        alone = Batches(split, size=32, seed=1)
        ranks = [
            Batches(split, size=32, seed=1, rank=rank, world_size=world_size).epoch(0)
            for rank in range(world_size)
        ]
        for whole, *shares in zip(alone.epoch(0), *ranks, strict=True):
            rows = [row for share in shares for row in _pairs_of(share)]
            assert sorted(rows) == sorted(_pairs_of(whole))
            assert all(share.num_pairs == len(whole.sources) for share in shares)
            sizes = [len(share.sources) for share in shares]
            assert max(sizes) - min(sizes) <= 1

    def test_targets_are_headline_eos_pad(self, folder: Path) -> None:
        for batch in Batches(Dataset(folder)["train"], size=32, seed=1).epoch(0):
            length = batch.sources.shape[1]
            for target, headline in zip(
                batch.targets(length).tolist(), _pairs_of(batch), strict=True
            ):
                written = [*headline[1], EOS]
                assert target == written + [PAD] * (length - len(written))
            shortest = int(batch.headline_lengths.max()) + 1
            assert batch.targets(shortest).shape == (len(batch.sources), shortest)
            with pytest.raises(ValueError, match="too short for headline"):
                batch.targets(shortest - 1)

    def test_an_empty_split_has_no_batches(self, folder: Path) -> None:
        batches = Batches(Dataset(folder)["empty"], size=32, seed=1)
        assert len(batches) == 0
        assert list(batches.iterate_from()) == []

    @pytest.mark.parametrize(("size", "rank"), [(0, 0), (1, 2), (1, -1)])
    def test_impossible_batches(self, folder: Path, size: int, rank: int) -> None:
        with pytest.raises(ValueError, match="impossible batches"):
            Batches(Dataset(folder)["train"], size=size, seed=1, rank=rank, world_size=2)


def _pairs_of(batch: dataset_module.Batch) -> Pairs:
    return [
        (source[:i].tolist(), headline[:j].tolist())
        for source, i, headline, j in zip(
            batch.sources,
            batch.source_lengths,
            batch.headlines,
            batch.headline_lengths,
            strict=True,
        )
    ]
