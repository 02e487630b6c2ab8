"""Batches as tensors, against values written by hand."""

import numpy as np
import pytest
import torch

from ledeline.data.dataset import Batch
from ledeline.model.pairs import Pairs
from ledeline.text.subwords import BOS, EOS, PAD

EQUAL = [([4, 5, 6, 7], [8, 9]), ([7, 6, 5, 4], [8])]
MIXED = [([4, 5, 6, 7, 8], [9]), ([10, 4, 5], [6, 7])]


def test_without_spm_the_decoder_stops_at_eos(make):
    pairs = make("EncDec").pairs(Batch.of(EQUAL))
    assert pairs.sources.tolist() == [[4, 5, 6, 7], [7, 6, 5, 4]]
    assert pairs.source_lengths is None
    assert pairs.source_mask is None
    assert pairs.targets.tolist() == [[8, 9, EOS], [8, EOS, PAD]]
    assert pairs.target_mask.tolist() == [[True, True, True], [True, True, False]]
    assert torch.equal(pairs.headline_mask, pairs.target_mask)
    assert pairs.previous.tolist() == [[BOS, 8, 9], [BOS, 8, EOS]]


def test_with_spm_it_goes_on_to_the_source_length(make):
    pairs = make("EncDec+SPM").pairs(Batch.of(EQUAL))
    assert pairs.source_lengths is None
    assert pairs.source_mask is None
    assert pairs.targets.tolist() == [[8, 9, EOS, PAD], [8, EOS, PAD, PAD]]
    assert pairs.target_mask is None
    assert pairs.headline_mask.tolist() == [[True, True, True, False], [True, True, False, False]]
    assert pairs.previous.tolist() == [[BOS, 8, 9, EOS], [BOS, 8, EOS, PAD]]


def test_mixed_lengths_are_masked(make):
    pairs = make("EncDec+SPM").pairs(Batch.of(MIXED))
    assert pairs.sources.tolist() == [[4, 5, 6, 7, 8], [10, 4, 5, PAD, PAD]]
    assert pairs.source_lengths.tolist() == [5, 3]
    assert pairs.source_lengths.device.type == "cpu"
    assert pairs.source_mask.tolist() == [[True] * 5, [True] * 3 + [False] * 2]
    assert pairs.targets.tolist() == [[9, EOS, PAD, PAD, PAD], [6, 7, EOS, PAD, PAD]]
    assert pairs.target_mask.tolist() == [[True] * 5, [True] * 3 + [False] * 2]
    assert pairs.headline_mask.tolist() == [[True] * 2 + [False] * 3, [True] * 3 + [False] * 2]


def test_mixed_lengths_without_spm(make):
    pairs = make("EncDec").pairs(Batch.of(MIXED))
    assert pairs.source_lengths.tolist() == [5, 3]
    assert pairs.targets.tolist() == [[9, EOS, PAD], [6, 7, EOS]]
    assert pairs.target_mask.tolist() == [[True, True, False], [True, True, True]]


def test_masks_that_would_be_true_throughout_are_none(make):
    pairs = make("EncDec").pairs(Batch.of([([4, 5, 6], [7]), ([6, 5, 4], [8])]))
    assert (pairs.source_lengths, pairs.source_mask, pairs.target_mask) == (None, None, None)
    assert pairs.headline_mask.all()
    assert pairs.targets.tolist() == [[7, EOS], [8, EOS]]


@pytest.mark.parametrize(
    ("others", "targets", "mask"),
    [
        ([], [[6, 7, 8, EOS]], None),
        (
            [([4, 5, 6, 7, 8], [9])],
            [[6, 7, 8, EOS, PAD], [9, EOS, PAD, PAD, PAD]],
            [[True] * 4 + [False], [True] * 5],
        ),
    ],
)
def test_a_test_pair_whose_headline_is_too_long(make, others, targets, mask):
    """J + 1 > I: the headline is written to its end, and no <pad> follows."""
    pairs = make("EncDec+SPM").pairs(Batch.of([([4, 5], [6, 7, 8]), *others]))
    assert pairs.targets.tolist() == targets
    assert pairs.headline_mask[0].tolist() == [True] * 4 + [False] * len(others)
    assert (pairs.target_mask is None) == (mask is None)
    if mask is not None:
        assert pairs.target_mask.tolist() == mask


def test_steps_can_be_given():
    pairs = Pairs.of(Batch.of(EQUAL), np.array([3, 5]), 5)
    assert pairs.targets.tolist() == [[8, 9, EOS, PAD, PAD], [8, EOS, PAD, PAD, PAD]]
    assert pairs.target_mask.tolist() == [[True] * 3 + [False] * 2, [True] * 5]


def test_ids_and_masks_have_the_types_that_torch_wants(make):
    pairs = make("EncDec+SPM").pairs(Batch.of(MIXED))
    assert {pairs.sources.dtype, pairs.targets.dtype, pairs.previous.dtype} == {torch.int64}
    assert {pairs.source_mask.dtype, pairs.target_mask.dtype, pairs.headline_mask.dtype} == {
        torch.bool
    }


def test_a_batch_stays_as_it_was(make):
    """Tensors may share memory with the batch, but nothing writes into it."""
    batch = Batch.of(MIXED)
    model = make("EncDec+sGate+SPM")
    model(model.pairs(batch)).total().sum().backward()
    assert batch.sources.tolist() == Batch.of(MIXED).sources.tolist()
    assert batch.headlines.tolist() == Batch.of(MIXED).headlines.tolist()


def test_pairs_lie_where_the_model_does(make):
    model = make("EncDec").to("meta")
    pairs = model.pairs(Batch.of(MIXED))
    assert pairs.sources.is_meta
    assert pairs.headline_mask.is_meta
    assert not pairs.source_lengths.is_meta  # torch wants lengths on the CPU


class TestSteps:
    SOURCES, HEADLINES = np.array([5, 3, 2]), np.array([1, 2, 4])

    def test_the_spm_wants_as_many_as_the_source_has(self, make):
        steps = make("EncDec+SPM").spm.num_steps(self.SOURCES, self.HEADLINES)
        assert steps.tolist() == [5, 3, 5]  # and the last one room for its headline

    @pytest.mark.parametrize(("wanted", "expected"), [([9, 0, 4], [9, 3, 5]), ([0] * 3, [2, 3, 5])])
    def test_a_head_never_cuts_a_headline(self, make, monkeypatch, wanted, expected):
        model = make("EncDec+SPM")
        monkeypatch.setattr(model.spm, "num_steps", lambda *_: np.array(wanted))
        rows = zip(self.SOURCES, self.HEADLINES, strict=True)
        pairs = model.pairs(Batch.of([([4] * places, [5] * steps) for places, steps in rows]))
        assert pairs.target_mask.sum(1).tolist() == expected
        assert (pairs.headline_mask.sum(1) == torch.from_numpy(self.HEADLINES) + 1).all()
