"""Dropout: how much, where, and the same for any number of processes."""

import numpy as np
import pytest
import torch

from ledeline.data.batches import Batches
from ledeline.data.dataset import Dataset, DatasetWriter, EncodedChunk
from ledeline.model.layers.dropout import WHOLE_BATCH, Dropout, Share, seed
from ledeline.text.profiles import NATURAL
from ledeline.text.subwords import Subwords
from ledeline.text.tokenizer import Tokenizer


@pytest.fixture
def dropout():
    return Dropout(0.3).train()


class TestRate:
    @pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
    def test_so_many_are_dropped_and_the_mean_stays(self, rate):
        seed(1, 1)
        values = Dropout(rate).train()(torch.ones(500, 400))
        dropped = values == 0
        assert torch.equal(values[~dropped], torch.full_like(values[~dropped], 1 / (1 - rate)))
        assert abs(dropped.float().mean() - rate) < 0.005
        assert abs(values.mean() - 1) < 0.01
        assert (dropped.float().mean(0) - rate).abs().max() < 0.12  # alike in all columns
        assert (dropped.float().mean(1) - rate).abs().max() < 0.12  # and rows

    def test_every_value_has_dice_of_its_own(self, dropout):
        seed(1, 1)
        mask = dropout.mask((3, 50, 60), torch.zeros(1))
        rows = mask.flatten(0, 1)
        assert len({tuple(row) for row in rows.tolist()}) == 150
        assert len({tuple(column) for column in rows.T.tolist()}) == 60

    def test_nothing_in_evaluation(self, dropout):
        values = torch.randn(5, 6)
        assert dropout.eval()(values) is values
        assert dropout.mask((5, 6), values) is None

    def test_nothing_at_rate_0(self):
        values = torch.randn(5, 6)
        assert Dropout(0.0).train()(values) is values

    def test_the_gradient_goes_where_the_values_went(self, dropout):
        values = torch.ones(20, 30, requires_grad=True)
        kept = dropout(values)
        kept.sum().backward()
        assert torch.equal(values.grad, kept.detach())

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
    def test_the_type_is_that_of_the_values(self, dropout, dtype):
        assert dropout(torch.ones(2, 3, dtype=dtype)).dtype == dtype

    def test_the_rate_is_printed(self, dropout):
        assert repr(dropout) == "Dropout(0.3)"


class TestSeed:
    def test_it_makes_the_dice_repeatable(self, dropout):
        seed(3, 7)
        first = [dropout(torch.ones(4, 50)) for _ in range(2)]
        torch.rand(5)
        seed(3, 7)
        again = [dropout(torch.ones(4, 50)) for _ in range(2)]
        assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))
        assert not torch.equal(*first)

    def test_seed_and_stream_both_count(self, dropout):
        drawn = []
        for number, stream in [(3, 7), (3, 8), (4, 7), (7, 3)]:
            seed(number, stream)
            drawn.append(tuple(dropout(torch.ones(200)).tolist()))
        assert len(set(drawn)) == 4


class TestShares:
    def test_a_process_alone_has_it_all(self, dropout):
        assert dropout.share == WHOLE_BATCH == Share(0, 1, None)

    @pytest.mark.parametrize("world_size", [2, 3])
    def test_the_rows_of_a_share_are_rows_of_the_whole(self, dropout, world_size):
        seed(1, 2)
        whole = dropout(torch.ones(7, 5, 4))
        for rank in range(world_size):
            dropout.share = Share(rank, world_size, 7)
            seed(1, 2)
            mine = whole[rank::world_size]
            assert torch.equal(dropout(torch.ones_like(mine)), mine)


# --- processes together ----------------------------------------------------------------------


LENGTHS = {  # of sources and headlines
    "one of each": [(7, 3)] * 15,
    "many headlines": [(16, length) for length in range(1, 16)],
    "many": [(length + 1, length) for length in range(1, 16)],
}


@pytest.fixture(scope="module")
def splits(tmp_path_factory):
    """For each case above a dataset; where there are many lengths, no two are the same."""

    def split(lengths):
        random = np.random.default_rng(5)
        sides = []
        for side in zip(*lengths, strict=True):
            sides += [random.integers(4, 11, sum(side)), np.array(side)]
        folder = tmp_path_factory.mktemp("dataset")
        writer = DatasetWriter(folder, Tokenizer(NATURAL, Subwords.learn({"stocks": 5}, 3)))
        writer.write_split("train", iter([EncodedChunk(*sides)]))
        writer.finish()
        return Dataset(folder)["train"]

    return {name: split(lengths) for name, lengths in LENGTHS.items()}


def trained(model, batch, rank, world_size):
    """The losses of each pair, and the gradients of their sum over the whole batch."""
    model.dropout.share = Share(rank, world_size, batch.num_pairs)
    seed(1, 9)
    model.zero_grad()
    losses = model(model.pairs(batch)).total()
    losses.sum().backward()
    return losses.detach(), [value.grad.clone() for value in model.parameters()]


@pytest.mark.parametrize("world_size", [2, 3])
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("name", ["EncDec", "EncDec+sGate", "EncDec+SPM", "EncDec+sGate+SPM"])
def test_processes_that_share_a_batch_learn_what_one_would(make, splits, lengths, name, world_size):
    model = make(name, dropout=0.3).train()

    def epoch(rank, world_size):
        settings = {"size": 8, "seed": 2, "equal_lengths": lengths != "many"}
        return Batches(splits[lengths], rank=rank, world_size=world_size, **settings).epoch(0)

    shares = zip(*(epoch(rank, world_size) for rank in range(world_size)), strict=True)
    for batch, parts in zip(epoch(0, 1), shares, strict=True):
        losses, gradients = trained(model, batch, 0, 1)
        results = [trained(model, part, rank, world_size) for rank, part in enumerate(parts)]
        for rank, (mine, _) in enumerate(results):
            torch.testing.assert_close(mine, losses[rank::world_size], rtol=0, atol=1e-11)
        for expected, *own in zip(gradients, *(one for _, one in results), strict=True):
            torch.testing.assert_close(sum(own), expected, rtol=0, atol=1e-11)
